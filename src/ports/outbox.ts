import type { Release } from './settlement-ledger.js';

/**
 * The payload of an outbox row of kind `batch_recorded`, one per batch and committed with its rows. Payment deadlines
 * and order events are made of it. The key of the row is the batch id, its `created_at` the time of the orders.
 */
export interface BatchRecorded {
  readonly batchId: string;
  readonly saleId: string;
  /** Order ids that are live. */
  readonly orders: readonly string[];
  /** Order ids of rows that were written as `failed`. */
  readonly failed: readonly string[];
  /** From the time of the transaction, ms. */
  readonly paymentWindowMs: number;
}

/**
 * The payload of an outbox row of kind `orders_moved`: orders of one sale that made the same move in one transaction.
 * The key of the row is the first order id.
 */
export interface OrdersMoved {
  readonly move: 'paid' | 'cancelled' | 'expired';
  readonly saleId: string;
  readonly orders: readonly string[];
}

/** An undone outbox row that asks for units to go back. */
export interface ReleaseTask {
  readonly outboxId: string;
  readonly releases: readonly Release[];
}

/** Work that a committed transaction has promised. */
export interface ReleaseOutbox {
  /**
   * The oldest undone releases that are due, at most `max` rows.
   * @throws OperationalError mysql
   */
  dueReleases(max: number): Promise<ReleaseTask[]>;

  /** @throws OperationalError mysql */
  markDone(outboxIds: readonly string[]): Promise<void>;
}
