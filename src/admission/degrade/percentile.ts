import { hash32 } from '../../core/sale.js';

const TWO_TO_32 = 2 ** 32;

/**
 * Where somebody stands among all, from 0 to just below 100: the same at any time and in every process. The hash is
 * stirred once more (the last steps of MurmurHash3), or who is chosen would hang together with who shares a bucket.
 */
export function percentileOf(who: string): number {
  let hash = hash32(who);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (((hash ^ (hash >>> 16)) >>> 0) * 100) / TWO_TO_32;
}
