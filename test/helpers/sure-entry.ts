import type { RequestEntry } from '../../src/core/outcome.js';
import type { RequestLook } from '../../src/core/ports/stock-store.js';

/** The entry of a bucket that nothing has happened to. */
export async function sureEntry(look: Promise<RequestLook>): Promise<RequestEntry | null> {
  const entry = await look;
  if (entry === 'unsure') throw new Error('the bucket may have lost it');
  return entry;
}
