import { createSigner } from 'fast-jwt';

/** An HMAC key shorter than its hash can be searched offline (RFC 7518, 3.2). */
const SECRET_BYTES_MIN = 32;

export interface TokenClaims {
  readonly userId: string;
  readonly roles: readonly string[];
  /** Life of the token in ms, at least one second: `exp` counts whole seconds. */
  readonly ttlMs: number;
}

/** Refuses a secret that is too short. Called at start-up, so that no weak key ever serves. */
export function assertStrongSecret(secret: string): void {
  if (Buffer.byteLength(secret) >= SECRET_BYTES_MIN) return;
  throw new RangeError(`the HS256 secret needs at least ${SECRET_BYTES_MIN} bytes`);
}

/** Prepares a key once and returns the function that signs with it, for a bench that needs thousands of tokens. */
export function createTokenSigner(secret: string): (claims: TokenClaims) => string {
  assertStrongSecret(secret);
  const sign = createSigner({ key: secret, algorithm: 'HS256' });
  return ({ userId, roles, ttlMs }) => {
    const nowSeconds = Math.floor(Date.now() / 1000);
    return sign({ sub: userId, roles, iat: nowSeconds, exp: nowSeconds + Math.ceil(ttlMs / 1000) });
  };
}

/** An HS256 token as `auth.ts` accepts it. @throws RangeError when the secret is too short */
export const signToken = (claims: TokenClaims, secret: string): string => createTokenSigner(secret)(claims);
