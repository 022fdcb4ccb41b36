import { createPublicKey, type JsonWebKeyInput, type KeyObject } from 'node:crypto';

/** Algorithms whose private key stays with the issuer, so that we need only the public key. */
export const PUBLIC_ALGORITHMS = ['RS256', 'ES256', 'EdDSA'] as const;
export type PublicAlgorithm = (typeof PUBLIC_ALGORITHMS)[number];

/** Minimum of NIST SP 800-131A for RSA. */
const RSA_BITS_MIN = 2048;

/** Why a key is refused, as a predicate that never shows the key. */
export interface KeyFlaw {
  readonly flaw: string;
}

/** A key of RFC 7517, unchecked. Versions of Node's types have this type in different places. */
export interface Jwk {
  readonly [name: string]: unknown;
}

/** Reads a public key in PEM or JWK, with the only algorithm of ours that fits the key. */
export function readPublicKey(
  source: string | Jwk,
): { readonly algorithm: PublicAlgorithm; readonly pem: string } | KeyFlaw {
  if (typeof source === 'string' && source.includes('PRIVATE KEY')) {
    return { flaw: 'is a private key, which only the signer of tokens may have; set the public key' };
  }
  let key: KeyObject;
  try {
    key =
      typeof source === 'string'
        ? createPublicKey(source)
        : createPublicKey({ key: source as JsonWebKeyInput['key'], format: 'jwk' });
  } catch {
    return { flaw: 'is not a public key' };
  }
  const algorithm = algorithmOf(key);
  if (typeof algorithm !== 'string') return algorithm;
  return { algorithm, pem: key.export({ type: 'spki', format: 'pem' }).toString() };
}

function algorithmOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): PublicAlgorithm | KeyFlaw {
  if (type === 'ed25519') return 'EdDSA';
  if (type === 'ec') {
    return details?.namedCurve === 'prime256v1' ? 'ES256' : { flaw: 'is on a curve other than P-256' };
  }
  if (type !== 'rsa') return { flaw: `is of the type ${type}, which none of ${PUBLIC_ALGORITHMS.join(', ')} uses` };
  const bits = details?.modulusLength ?? 0;
  return bits >= RSA_BITS_MIN ? 'RS256' : { flaw: `has ${bits} bits, but RSA needs ${RSA_BITS_MIN}` };
}
