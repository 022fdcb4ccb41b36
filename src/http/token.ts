import { createSigner } from 'fast-jwt';
import { flawOfSecret } from '../core/hmac.js';
import { withoutUndefined } from '../core/without-undefined.js';

interface TokenClaims {
  readonly userId: string;
  readonly roles: readonly string[];
  /** Lifetime of the token in ms, at least one second, because `exp` counts whole seconds. */
  readonly ttlMs: number;
  /** The id by which this token can be revoked. Without it, only all tokens of its user can be revoked. */
  readonly tokenId?: string;
}

/** The fields that all tokens of a signer share. */
export interface SignerTerms {
  /** The id of the key, if the api has several keys. */
  readonly keyId?: string;
  readonly issuer?: string;
  readonly audience?: string;
}

/** Refuses a secret that others could guess. Called at start-up, so that a weak key is never used. */
export function assertStrongSecret(secret: string): void {
  const flaw = flawOfSecret(secret);
  if (flaw !== null) throw new RangeError(`the HS256 secret ${flaw}`);
}

/**
 * Prepares a key once and returns a function that signs HS256 tokens that `auth.ts` accepts.
 * @throws RangeError for a secret that others could guess
 */
export function createTokenSigner(
  secret: string,
  { keyId, issuer, audience }: SignerTerms = {},
): (claims: TokenClaims) => string {
  assertStrongSecret(secret);
  const sign = createSigner({ key: secret, algorithm: 'HS256', ...withoutUndefined({ kid: keyId }) });
  const common = withoutUndefined({ iss: issuer, aud: audience });
  return ({ userId, roles, ttlMs, tokenId }) => {
    const nowSeconds = Math.floor(Date.now() / 1000);
    const exp = nowSeconds + Math.ceil(ttlMs / 1000);
    return sign({
      sub: userId,
      roles,
      iat: nowSeconds,
      exp,
      ...common,
      ...withoutUndefined({ jti: tokenId }),
    });
  };
}
