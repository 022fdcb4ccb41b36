import { laneOf } from '../../src/core/bucket.js';

/** Returns the lane of the buyer in a token, for the proxy. Null: the token cannot be read, and any api will do. */
export function laneIn(token: string): string | null {
  try {
    const payload = (token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/');
    const { sub } = JSON.parse(atob(payload)) as { readonly sub?: unknown };
    return typeof sub === 'string' ? String(laneOf(sub)) : null;
  } catch {
    return null;
  }
}
