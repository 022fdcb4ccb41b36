import { sign, type KeyObject } from 'node:crypto';

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Signs a token like an identity provider: RS256, ES256 or EdDSA, by the kind of the key. */
export function signedToken(
  header: { readonly alg: string; readonly kid?: string },
  claims: object,
  key: KeyObject,
): string {
  const text = `${part({ typ: 'JWT', ...header })}.${part(claims)}`;
  const hash = key.asymmetricKeyType === 'ed25519' ? null : 'sha256';
  return `${text}.${sign(hash, Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
}
