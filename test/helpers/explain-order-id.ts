import { ORDER_ID_EPOCH_MS } from '../../src/core/order-id.js';

/**
 * Splits an order id. From the low end: 8 bits sequence, 6 bits hash of the user, 8 bits worker slot, then the time.
 */
export function explainOrderId(orderId: string): { atMs: number; slot: number; userHash: number; sequence: number } {
  const id = BigInt(orderId);
  return {
    atMs: Number(id >> 22n) + ORDER_ID_EPOCH_MS,
    slot: Number((id >> 14n) & 0xffn),
    userHash: Number((id >> 8n) & 0x3fn),
    sequence: Number(id & 0xffn),
  };
}
