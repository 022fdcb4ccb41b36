/** The user of a token, as far as a page needs to know. Only the server verifies the token. */
export interface SignIn {
  readonly token: string;
  /** Claim `sub`. */
  readonly userId: string;
  /** Claim `exp`, Unix ms. Null if the token has no such claim. */
  readonly endsAtMs: number | null;
}

/** @returns null if the text is not a token */
export function readToken(token: string): SignIn | null {
  try {
    const payload = (token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/');
    const bytes = Uint8Array.from(atob(payload), (letter) => letter.charCodeAt(0));
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes));
    const { sub, exp } = claims as { readonly sub?: unknown; readonly exp?: unknown };
    if (typeof sub !== 'string' || sub === '') return null;
    return { token, userId: sub, endsAtMs: typeof exp === 'number' ? exp * 1000 : null };
  } catch {
    return null;
  }
}

const LONG_NAME = 6;

/**
 * Returns a user id as a page shows it: enough for users to recognize themselves, but not for a person looking over
 * their shoulder.
 */
export function maskedName(userId: string): string {
  const letters = Array.from(userId);
  const last = letters.length >= LONG_NAME ? letters.slice(-2) : [];
  return [...letters.slice(0, 2), '…', ...last].join('');
}

/** Reads the part of a link behind its `#`, which no server and no log sees: `#token=…&lang=zh`. */
export function readFragment(fragment: string): { readonly token: string | null; readonly lang: string | null } {
  const parts = new URLSearchParams(fragment.replace(/^#/, ''));
  return { token: parts.get('token'), lang: parts.get('lang') };
}
