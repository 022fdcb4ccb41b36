import type { Order } from '../order.js';
import type { Purchase } from '../purchase.js';
import type { Sale } from '../sale.js';

/** A row with its age: ms since it was last changed, on the clock of MySQL. */
export interface AgedOrder extends AuditedOrder {
  readonly ageMs: number;
}

/** A row of the outbox that was not done in time. */
export interface StuckRow {
  /** Decimal. */
  readonly outboxId: string;
  readonly attempts: number;
  /** Since its transaction, ms on the clock of MySQL. */
  readonly ageMs: number;
}

/** A row is stuck when either limit is reached. */
export interface StuckLimits {
  readonly olderThanMs: number;
  readonly attemptsMin: number;
}

/** Orders by the time at which their ids were minted, Unix ms: from the first one, before the second one. */
export interface MintedWindow {
  readonly fromMs?: number;
  readonly toMs?: number;
}

/** The rows that a comparison with a live sale reads. */
export interface ReconcileRepository {
  /** @throws OperationalError mysql */
  findSale(saleId: string): Promise<Sale | null>;

  /**
   * The rows of these purchases, whatever batch wrote them.
   * @throws OperationalError mysql
   */
  rowsOf(saleId: string, purchases: readonly Pick<Purchase, 'userId' | 'requestId'>[]): Promise<AgedOrder[]>;

  /**
   * Every row of the sale that was written after it was opened, in chunks. One may be empty: so far the table was read,
   * and nothing of this sale stands there.
   * @param window only those minted in it
   * @throws OperationalError mysql
   */
  agedOrders(sale: Sale, window?: MintedWindow): AsyncIterable<readonly AgedOrder[]>;

  /**
   * Releases of this sale that are in the outbox and not done.
   * @throws OperationalError mysql
   */
  undoneReleases(saleId: string): Promise<number>;

  /**
   * Whether the stock of the sale is being changed, or was since the sale was read: then Redis and MySQL differ for a
   * moment, and nothing is wrong.
   * @throws OperationalError mysql
   */
  isRestocked(sale: Pick<Sale, 'saleId' | 'stock'>): Promise<boolean>;

  /**
   * Which of these batches have a dead letter that is still parked.
   * @throws OperationalError mysql
   */
  parkedBatches(batchIds: readonly string[]): Promise<Set<string>>;

  /**
   * Outbox rows of this sale that are stuck, oldest first.
   * @throws OperationalError mysql
   */
  stuckRows(saleId: string, limits: StuckLimits, max: number): Promise<StuckRow[]>;

  /**
   * Whether this outbox row is done; a row that is missing was done and removed.
   * @throws OperationalError mysql
   */
  isDone(outboxId: string): Promise<boolean>;
}

/** The part of an order that is compared with Redis. */
export type AuditedOrder = Pick<
  Order,
  'orderId' | 'userId' | 'requestId' | 'batchId' | 'quantity' | 'state' | 'reason'
>;

/** The columns that an audit of a sale at rest compares in addition. */
export type AuditedRow = AuditedOrder & Pick<Order, 'paidAtMs'>;

/** All rows of a sale at rest, for an audit. */
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
