import { randomInt } from 'node:crypto';
import { newBatchId, sealBatch, type Batch } from '../../src/core/batch.js';
import type { RequestEntry } from '../../src/core/outcome.js';
import type { Order } from '../../src/core/order.js';
import type { LiveOrder, Release } from '../../src/core/ports/batch-store.js';
import type { BucketRef } from '../../src/core/bucket.js';
import type { StockStore } from '../../src/core/ports/stock-store.js';
import type { Purchase } from '../../src/core/purchase.js';
import type { Sale } from '../../src/core/sale.js';

let lastSaleId = 0n;

/**
 * Returns a unique sale id of 18 digits, as MySQL allows: time and random digits. Ids ascend within a process, as in
 * MySQL.
 */
export function freshSaleId(): string {
  const byTime = BigInt(Date.now()) * 100_000n + BigInt(randomInt(100_000));
  lastSaleId = byTime > lastSaleId ? byTime : lastSaleId + BigInt(1 + randomInt(1_000));
  return String(lastSaleId);
}

/** Returns an open sale of ten units, two per buyer, with a wide window around now, and `parts` changed. */
export function saleOf(parts: Partial<Sale> = {}, nowMs: number = Date.now()): Sale {
  return {
    saleId: freshSaleId(),
    sku: 'sku-1',
    title: 'A thing',
    priceCents: 1999,
    currency: 'EUR',
    stock: 10,
    sold: 0,
    limitPerBuyer: 2,
    buckets: 1,
    opensAtMs: nowMs - 60_000,
    closesAtMs: nowMs + 3_600_000,
    warmBeforeMs: null,
    paymentWindowMs: null,
    state: 'open',
    epoch: 1,
    retiredAtMs: null,
    ...parts,
  };
}

/** Parses `buyer`, `buyer/key` or `buyer/key*quantity`. The key defaults to `k1` and the quantity to 1. */
export function purchaseOf(text: string): Purchase {
  const [, userId, requestId, quantity] = /^([^/*]+)(?:\/([^*]+))?(?:\*(\d+))?$/.exec(text) ?? [];
  if (userId === undefined) throw new Error(`not a purchase: ${text}`);
  return { userId, requestId: requestId ?? 'k1', quantity: Number(quantity ?? 1) };
}

export const purchasesOf = (...texts: string[]): Purchase[] => texts.map(purchaseOf);

/** Returns a batch of one sale, ready to be deducted. */
export function batchOf(
  sale: { readonly saleId: string; readonly epoch?: number; readonly bucket?: number },
  purchases: readonly Purchase[],
  batchId: string = newBatchId(),
): Batch {
  const { saleId, epoch = 1, bucket = 0 } = sale;
  return sealBatch({ batchId, saleId, bucket, epoch, createdAtMs: Date.now(), traceparent: '', purchases });
}

/** Returns the live order of a purchase. */
export const liveOrderOf = (userId: string, orderId: string, requestId = 'k1'): LiveOrder => ({
  userId,
  requestId,
  orderId,
  state: 'pending_payment',
});

/** Returns an order of one unit that waits for its payment. */
export const orderOf = (parts: Partial<Order> & Pick<Order, 'saleId'>): Order => ({
  orderId: '101',
  userId: 'u1',
  requestId: 'k1',
  batchId: 'b1',
  quantity: 1,
  amountCents: 1,
  state: 'pending_payment',
  reason: null,
  createdAtMs: 1,
  expiresAtMs: 2,
  paidAtMs: null,
  refundedCents: 0,
  ...parts,
});

/** Returns the release of an order of any batch, with its units. */
export const releaseOf = (
  { saleId, bucket }: BucketRef,
  userId: string,
  orderId: string,
  parts: Partial<Release> = {},
): Release => ({ saleId, bucket, userId, requestId: 'k1', orderId, batchId: '', withUnits: true, ...parts });

/** Returns the answer of `findRequest`, which must not be `unsure` for an intact bucket. */
export async function certainEntry(answer: ReturnType<StockStore['findRequest']>): Promise<RequestEntry | null> {
  const entry = await answer;
  if (entry === 'unsure') throw new Error('the bucket may have lost the entry');
  return entry;
}

/** Replaces the order id in the entry of a purchase that `reacquire` has closed. */
export const lostIn = (batchId: string): string => `lost-${batchId}`;
