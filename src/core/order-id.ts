import { hash32 } from './bucket.js';

/**
 * Layout, 64 bits: sign 0, 41 bits ms since 2024-01-01, 8 bits worker slot, 6 bits hash of the user (finds the shard of
 * the buyer without a look-up), 8 bits sequence.
 */
export const ORDER_ID_EPOCH_MS = Date.UTC(2024, 0, 1);
export const WORKER_SLOTS = 256;
export const SEQUENCE_PER_MS = 256;
const USER_HASH_BITS = 6n;
const SEQUENCE_BITS = 8n;
const SLOT_BITS = 8n;

/** A worker whose clock is further behind mints no ids. Reads by key begin this long before a sale's first order. */
export const MINT_BEHIND_MAX_MS = 3_600_000;

/** Composes an order id. `atMs` is Unix ms, `slot` 0 to 255, `sequence` 0 to 255. */
export function composeOrderId(atMs: number, slot: number, userId: string, sequence: number): string {
  const time = BigInt(atMs - ORDER_ID_EPOCH_MS);
  const user = BigInt(hash32(userId) & 63);
  const id = (((((time << SLOT_BITS) | BigInt(slot)) << USER_HASH_BITS) | user) << SEQUENCE_BITS) | BigInt(sequence);
  return id.toString();
}

export const slotOf = (orderId: string): number =>
  Number((BigInt(orderId) >> (USER_HASH_BITS + SEQUENCE_BITS)) & BigInt(WORKER_SLOTS - 1));

/** Number of bits below the time of an id. */
export const ORDER_ID_TIME_SHIFT = Number(SLOT_BITS + USER_HASH_BITS + SEQUENCE_BITS);

/** Returns when an id was minted, Unix ms of its worker, right before its row was written. */
export const mintedAtMs = (orderId: string): number =>
  ORDER_ID_EPOCH_MS + Number(BigInt(orderId) >> BigInt(ORDER_ID_TIME_SHIFT));

/** Returns the lowest id of orders minted at `atMs` (Unix ms) or later. It bounds ranges of the primary key. */
export function lowestOrderIdAt(atMs: number): string {
  const time = BigInt(Math.max(0, Math.floor(atMs) - ORDER_ID_EPOCH_MS));
  return (time << BigInt(ORDER_ID_TIME_SHIFT)).toString();
}

/** The highest possible order id, of 63 bits. */
export const ORDER_ID_MAX = '9223372036854775807';

/** Returns the next lower id, at least 0. A read of all ids greater than the result begins with `orderId`. */
export function idBelow(orderId: string): string {
  const id = BigInt(orderId);
  return String(id > 0n ? id - 1n : 0n);
}
