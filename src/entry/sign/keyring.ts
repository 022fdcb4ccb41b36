import { HmacSha256 } from '../../domain/hmac.js';
import { isId } from '../../domain/ids.js';

/** Secrets by the id of their key, ready to sign. The first one signs what we give out; all of them are believed. */
export type Keyring = ReadonlyMap<string, HmacSha256>;

/** An HMAC key shorter than its hash can be searched offline (RFC 7518, 3.2). */
const SECRET_BYTES_MIN = 32;
/** Two are needed while keys change; the rest is for partners. */
const KEYS_MAX = 64;

/**
 * Reads `id:secret,id:secret`. An empty text is an empty ring.
 * @param textBytesMax length of the longest text that will ever be signed
 * @throws RangeError that names the id and never shows a secret
 */
export function readKeyring(text: string, textBytesMax: number): Keyring {
  const ring = new Map<string, HmacSha256>();
  for (const [index, part] of (text === '' ? [] : text.split(',')).entries()) {
    const colon = part.indexOf(':');
    const id = part.slice(0, Math.max(0, colon));
    const secret = part.slice(colon + 1);
    if (!isId(id)) throw new RangeError(`key ${index + 1} needs the form id:secret, with an id of A-Z a-z 0-9 _ -`);
    if (ring.has(id)) throw new RangeError(`the key ${id} is there twice`);
    if (Buffer.byteLength(secret) < SECRET_BYTES_MIN) {
      throw new RangeError(`the secret of the key ${id} needs at least ${SECRET_BYTES_MIN} bytes`);
    }
    ring.set(id, new HmacSha256(secret, textBytesMax));
  }
  if (ring.size > KEYS_MAX) throw new RangeError(`at most ${KEYS_MAX} keys may be there`);
  return ring;
}
