/** Whom a token speaks of, as far as a page needs to know. It is checked by the server alone. */
export interface SignIn {
  readonly token: string;
  /** Claim `sub`. */
  readonly userId: string;
  /** Claim `exp`, Unix ms; null: it has none. */
  readonly endsAtMs: number | null;
}

/** @returns null: this is no token */
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

/** A user as a page shows them: enough to know oneself, and not for who looks over a shoulder. */
export function maskedName(userId: string): string {
  const letters = Array.from(userId);
  const last = letters.length >= LONG_NAME ? letters.slice(-2) : [];
  return [...letters.slice(0, 2), '…', ...last].join('');
}

/** What a link hands over behind its `#`, where no server and no log sees it: `#token=…&lang=zh`. */
export function readFragment(fragment: string): { readonly token: string | null; readonly lang: string | null } {
  const parts = new URLSearchParams(fragment.replace(/^#/, ''));
  return { token: parts.get('token'), lang: parts.get('lang') };
}
