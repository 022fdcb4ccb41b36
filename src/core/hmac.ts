import { createHmac, createPublicKey, createSecretKey, type KeyObject } from 'node:crypto';
import { isId } from './ids.js';

/** A secret, ready for `hmacSha256`. Made once: a key object costs a fifth less per use than its text. */
export const hmacKey = (secret: string): KeyObject => createSecretKey(secret, 'utf8');

/** HMAC-SHA-256 of a text in UTF-8, as base64url. */
export const hmacSha256 = (key: KeyObject, text: string): string =>
  createHmac('sha256', key).update(text).digest('base64url');

/** Compares two ASCII texts in a time that depends on their lengths only, so that it does not show where they differ. */
export function sameText(one: string, other: string): boolean {
  if (one.length !== other.length) return false;
  let difference = 0;
  for (let i = 0; i < one.length; i++) difference |= one.charCodeAt(i) ^ other.charCodeAt(i);
  return difference === 0;
}

/** Keys by id, in the order of their list. The first one makes what we give out; all of them are accepted. */
export type Keyring = ReadonlyMap<string, KeyObject>;

/**
 * Reads `id:secret,id:secret`. An empty text is an empty ring.
 * @throws RangeError as readKeyList
 */
export const readKeyring = (text: string): Keyring =>
  new Map([...readKeyList(text)].map(([id, secret]) => [id, hmacKey(secret)]));

/** An HMAC key shorter than its hash can be searched offline (RFC 7518, 3.2). */
const SECRET_BYTES_MIN = 32;
/** Of 32 random hexadecimal digits fewer are different in one case of ten million; of a word that is repeated, often. */
const DIFFERENT_MIN = 8;
/** Two are needed while keys change; the rest is for partners. */
const KEYS_MAX = 64;

/** Why a text must not be a shared secret, as a predicate that never shows it; null: it may be one. */
export function flawOfSecret(secret: string): string | null {
  if (Buffer.byteLength(secret) < SECRET_BYTES_MIN) return `needs at least ${SECRET_BYTES_MIN} bytes`;
  if (new Set(secret).size < DIFFERENT_MIN) return `needs at least ${DIFFERENT_MIN} different characters`;
  return isAsymmetricKey(secret) ? 'is a key of RSA, EC or Ed25519, whose public half everybody may have' : null;
}

/** In a form in which people keep one: PEM, also on one line, JWK or JWKS, OpenSSH, or DER in base64. */
function isAsymmetricKey(text: string): boolean {
  if (/-----BEGIN [A-Z0-9 ]+-----|^\s*(ssh|ecdsa)-[a-z0-9-]+ /.test(text)) return true;
  if (/"kty"\s*:\s*"(RSA|EC|OKP)"/.test(text)) return true;
  try {
    createPublicKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'spki' });
    return true;
  } catch {
    return false;
  }
}

/**
 * Reads `id:secret,id:secret`, in its order. An empty text is an empty list.
 * @throws RangeError that counts the keys and never shows what could be a secret, not even in the wrong place
 */
export function readKeyList(text: string): ReadonlyMap<string, string> {
  const keys = new Map<string, string>();
  for (const [index, part] of (text === '' ? [] : text.split(',')).entries()) {
    const colon = part.indexOf(':');
    const id = part.slice(0, Math.max(0, colon));
    const secret = part.slice(colon + 1);
    if (!isId(id)) throw new RangeError(`key ${index + 1} needs the form id:secret, with an id of A-Z a-z 0-9 _ -`);
    if (keys.has(id)) throw new RangeError(`key ${index + 1} has the id of one before it`);
    const flaw = flawOfSecret(secret);
    if (flaw !== null) throw new RangeError(`the secret of key ${index + 1} ${flaw}`);
    keys.set(id, secret);
  }
  if (keys.size > KEYS_MAX) throw new RangeError(`at most ${KEYS_MAX} keys may be there`);
  return keys;
}
