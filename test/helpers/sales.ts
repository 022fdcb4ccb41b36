import { randomInt } from 'node:crypto';
import { newBatchId, sealBatch, type Batch } from '../../src/core/batch.js';
import type { RequestEntry } from '../../src/core/outcome.js';
import type { LiveOrder } from '../../src/core/ports/batch-store.js';
import type { StockStore } from '../../src/core/ports/stock-store.js';
import type { Purchase } from '../../src/core/purchase.js';
import type { Sale } from '../../src/core/sale.js';

let lastSaleId = 0n;

/**
 * A sale id that no other test and no other run has: time and random digits, 18 in all, as MySQL allows. Ids ascend within a
 * process, as those of MySQL do: a later sale is a newer one.
 */
export function freshSaleId(): string {
  const byTime = BigInt(Date.now()) * 100_000n + BigInt(randomInt(100_000));
  lastSaleId = byTime > lastSaleId ? byTime : lastSaleId + BigInt(1 + randomInt(1_000));
  return String(lastSaleId);
}

/** An open sale of ten units, two a buyer, whose window is wide around now; change what the test is about. */
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
    state: 'open',
    epoch: 1,
    retiredAtMs: null,
    ...parts,
  };
}

/** `buyer`, `buyer/key` or `buyer/key*quantity`; the key is `k1` and the quantity 1 by default. */
export function purchaseOf(text: string): Purchase {
  const [, userId, requestId, quantity] = /^([^/*]+)(?:\/([^*]+))?(?:\*(\d+))?$/.exec(text) ?? [];
  if (userId === undefined) throw new Error(`not a purchase: ${text}`);
  return { userId, requestId: requestId ?? 'k1', quantity: Number(quantity ?? 1) };
}

export const purchasesOf = (...texts: string[]): Purchase[] => texts.map(purchaseOf);

/** A batch of one sale, ready to be deducted. */
export function batchOf(
  sale: { readonly saleId: string; readonly epoch?: number; readonly bucket?: number },
  purchases: readonly Purchase[],
  batchId: string = newBatchId(),
): Batch {
  const { saleId, epoch = 1, bucket = 0 } = sale;
  return sealBatch({ batchId, saleId, bucket, epoch, createdAtMs: Date.now(), traceparent: '', purchases });
}

/** The live order of a purchase. */
export const liveOrderOf = (userId: string, orderId: string, requestId = 'k1'): LiveOrder => ({
  userId,
  requestId,
  orderId,
  state: 'pending_payment',
});

/** What `findRequest` answers, which must not be `unsure`: nothing has happened to the bucket. */
export async function certainEntry(answer: ReturnType<StockStore['findRequest']>): Promise<RequestEntry | null> {
  const entry = await answer;
  if (entry === 'unsure') throw new Error('the bucket may have lost the entry');
  return entry;
}

/** In place of the order id in the entry of a purchase that `reacquire` has closed. */
export const lostIn = (batchId: string): string => `lost-${batchId}`;
