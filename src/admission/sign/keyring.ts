import { HmacSha256 } from '../../core/hmac.js';
import { readKeyList } from '../../core/key-list.js';

/** Secrets by the id of their key, ready to sign. The first one signs what we give out; all of them are believed. */
export type Keyring = ReadonlyMap<string, HmacSha256>;

/**
 * Reads `id:secret,id:secret`. An empty text is an empty ring.
 * @param textBytesMax length of the longest text that will ever be signed
 * @throws RangeError as readKeyList
 */
export const readKeyring = (text: string, textBytesMax: number): Keyring =>
  new Map([...readKeyList(text)].map(([id, secret]) => [id, new HmacSha256(secret, textBytesMax)]));
