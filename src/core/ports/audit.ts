import type { Order } from '../order.js';
import type { RequestEntry } from '../outcome.js';
import type { Sale } from '../sale.js';
import type { BucketTransfers } from '../unit-transfer.js';
import type { BucketRef } from './stock-store.js';

/** Everything Redis says of one bucket. Each part is read on its own: compare only when nothing moves. */
export interface BucketSnapshot {
  readonly unitsLeft: number;
  /** `userId/requestId` → entry. */
  readonly requests: ReadonlyMap<string, RequestEntry>;
  /** userId → units held or ordered. */
  readonly buyers: ReadonlyMap<string, number>;
  /** Ids of batches that are deducted and not settled. */
  readonly pending: readonly string[];
  /** Units that it lent to other buckets and borrowed from them. */
  readonly transfers: BucketTransfers;
}

/** The ledger as an auditor reads it: whole, and in no hurry. */
export interface BucketAudit {
  /** @throws OperationalError redis; null: the bucket is not loaded */
  snapshot(ref: BucketRef): Promise<BucketSnapshot | null>;
  /** Batches deducted and not settled. @throws OperationalError redis */
  pendingCount(ref: BucketRef): Promise<number>;
  /** Units that the bucket lent to others and borrowed from them. @throws OperationalError redis */
  transfers(ref: BucketRef): Promise<BucketTransfers>;
}

/** The part of an order that an audit compares. */
export type AuditedOrder = Pick<
  Order,
  'orderId' | 'userId' | 'requestId' | 'batchId' | 'quantity' | 'state' | 'reason'
>;

/** With what only an audit of a sale at rest compares. */
export type AuditedRow = AuditedOrder & Pick<Order, 'paidAtMs'>;

/** The book as an auditor reads it. */
export interface OrderAudit {
  /** @throws OperationalError mysql */
  findSale(saleId: string): Promise<Sale | null>;
  /**
   * Every row of the sale, in chunks.
   * @throws OperationalError mysql
   */
  orders(saleId: string): AsyncIterable<readonly AuditedRow[]>;
  /**
   * Outbox rows that must be done before the sale is at rest: releases that are not done.
   * @throws OperationalError mysql
   */
  undoneReleases(saleId: string): Promise<number>;
}
