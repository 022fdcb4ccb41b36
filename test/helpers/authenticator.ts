import { createAuthenticator, type AuthOptions, type Authenticator } from '../../src/http/auth.js';
import { hs256Key, publicKey, type IssuerKeys, type OwnKeys } from '../../src/http/token-keys.js';
import { ownTerms } from '../../src/http/token-terms.js';

export const ANY_TERMS = ownTerms({ issuer: '', audience: '' });
const OPTIONS: AuthOptions = { cacheMax: 100, lifeMaxMs: 86_400_000, toleranceMs: 0, isRevoked: () => false };

/** Accepts tokens of a secret, as a small installation does. */
export const hmacAuth = (
  secret: string,
  options: Partial<AuthOptions> = {},
  byId: ReadonlyMap<string, string> = new Map(),
): Authenticator => {
  const hs256ById = new Map([...byId].map(([id, one]) => [id, hs256Key(one, ANY_TERMS)]));
  return authOf({ algorithm: 'HS256', key: hs256Key(secret, ANY_TERMS), hs256ById }, [], options);
};

/** Accepts tokens of a private key. */
export const publicKeyAuth = (
  algorithm: 'RS256' | 'ES256' | 'EdDSA',
  pem: string,
  options: Partial<AuthOptions> = {},
): Authenticator => authOf({ algorithm, key: publicKey(pem, algorithm, ANY_TERMS), hs256ById: new Map() }, [], options);

/** Accepts tokens of identity providers, and of an optional own key. */
export const issuersAuth = (
  issuers: readonly IssuerKeys[],
  options: Partial<AuthOptions> = {},
  own: OwnKeys = { algorithm: 'HS256', key: null, hs256ById: new Map() },
): Authenticator => authOf(own, issuers, options);

const authOf = (own: OwnKeys, issuers: readonly IssuerKeys[], options: Partial<AuthOptions>): Authenticator =>
  createAuthenticator({ own, issuers }, { ...OPTIONS, ...options });
