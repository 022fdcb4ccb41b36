import { createPublicKey, hash } from 'node:crypto';
import { isId } from './ids.js';

/** Block size of SHA-256, in bytes. */
const BLOCK_BYTES = 64;
const HASH_BYTES = 32;
/** Maximum length of a text that needs no separate buffer. Bearer tokens, seals and signed requests are shorter. */
const SHORT_CHARS_MAX = 1024;
/** Maximum number of UTF-8 bytes per UTF-16 unit. */
const BYTES_PER_CHAR_MAX = 3;

/**
 * Signs with HMAC-SHA-256 (RFC 2104) without `createHmac`, whose object costs more than the two hashes.
 * Nearly every request of a rush brings a new token to verify (docs/decisions/0021).
 */
export class HmacKey {
  /** The key XOR 0x36, followed by room for a short text. */
  readonly #inner = Buffer.alloc(BLOCK_BYTES + SHORT_CHARS_MAX * BYTES_PER_CHAR_MAX, 0x36);
  /** The key XOR 0x5c, followed by the inner hash. */
  readonly #outer = Buffer.alloc(BLOCK_BYTES + HASH_BYTES, 0x5c);

  /** @param secret read as UTF-8 */
  constructor(secret: string) {
    const bytes = Buffer.from(secret);
    const key = bytes.length > BLOCK_BYTES ? hash('sha256', bytes, 'buffer') : bytes;
    for (const [index, byte] of key.entries()) {
      this.#inner.writeUInt8(0x36 ^ byte, index);
      this.#outer.writeUInt8(0x5c ^ byte, index);
    }
  }

  /** @returns base64url, of the text in UTF-8 */
  sign(text: string): string {
    // `binary` gives one character per byte: cheaper than a Buffer
    this.#outer.write(hash('sha256', this.#keyAnd(text), 'binary'), BLOCK_BYTES, 'binary');
    return hash('sha256', this.#outer, 'base64url');
  }

  #keyAnd(text: string): Buffer {
    if (text.length <= SHORT_CHARS_MAX) {
      return this.#inner.subarray(0, BLOCK_BYTES + this.#inner.write(text, BLOCK_BYTES));
    }
    return Buffer.concat([this.#inner.subarray(0, BLOCK_BYTES), Buffer.from(text)]);
  }
}

/** Compares two ASCII texts. The time depends on their lengths only, so it does not reveal where they differ. */
export function sameText(one: string, other: string): boolean {
  if (one.length !== other.length) return false;
  let difference = 0;
  for (let i = 0; i < one.length; i++) difference |= one.charCodeAt(i) ^ other.charCodeAt(i);
  return difference === 0;
}

/** Keys by id, in list order. The first key signs, and all keys are accepted. */
export type Keyring = ReadonlyMap<string, HmacKey>;

/**
 * @param text `id:secret,id:secret`, or empty
 * @throws RangeError as readKeyList
 */
export const readKeyring = (text: string): Keyring =>
  new Map([...readKeyList(text)].map(([id, secret]) => [id, new HmacKey(secret)]));

/** Minimum length: a key shorter than the hash can be found by an offline search (RFC 7518, 3.2). */
const SECRET_BYTES_MIN = 32;
/** Minimum of different characters. One in 10 million random keys of 32 hex digits has fewer, a repeated word often. */
const DIFFERENT_MIN = 8;
/** A change of keys needs two keys. The others are for partners. */
const KEYS_MAX = 64;

/** Returns why a text must not be a shared secret, as a predicate that never shows the text. Null if it may be one. */
export function flawOfSecret(secret: string): string | null {
  if (Buffer.byteLength(secret) < SECRET_BYTES_MIN) return `needs at least ${SECRET_BYTES_MIN} bytes`;
  if (new Set(secret).size < DIFFERENT_MIN) return `needs at least ${DIFFERENT_MIN} different characters`;
  return isAsymmetricKey(secret) ? 'is an RSA, EC or Ed25519 key, whose public half is not secret' : null;
}

/** Recognizes the common forms of a key: PEM (even on one line), JWK or JWKS, OpenSSH, or DER in base64. */
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
 * @param text `id:secret,id:secret`, or empty
 * @returns in list order
 * @throws RangeError that never shows what may be a secret, not even in the wrong place
 */
export function readKeyList(text: string): ReadonlyMap<string, string> {
  const keys = new Map<string, string>();
  for (const [index, part] of (text === '' ? [] : text.split(',')).entries()) {
    const colon = part.indexOf(':');
    const id = part.slice(0, Math.max(0, colon));
    const secret = part.slice(colon + 1);
    if (!isId(id)) throw new RangeError(`key ${index + 1} needs the form id:secret, with an id of A-Z a-z 0-9 _ -`);
    if (keys.has(id)) throw new RangeError(`key ${index + 1} repeats the id of an earlier key`);
    const flaw = flawOfSecret(secret);
    if (flaw !== null) throw new RangeError(`the secret of key ${index + 1} ${flaw}`);
    keys.set(id, secret);
  }
  if (keys.size > KEYS_MAX) throw new RangeError(`at most ${KEYS_MAX} keys are allowed`);
  return keys;
}
