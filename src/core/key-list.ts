import { isId } from './ids.js';

/** An HMAC key shorter than its hash can be searched offline (RFC 7518, 3.2). */
const SECRET_BYTES_MIN = 32;
/** Two are needed while keys change; the rest is for partners. */
const KEYS_MAX = 64;

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
    if (Buffer.byteLength(secret) < SECRET_BYTES_MIN) {
      throw new RangeError(`the secret of key ${index + 1} needs at least ${SECRET_BYTES_MIN} bytes`);
    }
    keys.set(id, secret);
  }
  if (keys.size > KEYS_MAX) throw new RangeError(`at most ${KEYS_MAX} keys may be there`);
  return keys;
}
