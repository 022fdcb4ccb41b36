import type { Order } from '../order.js';
import type { PurchaseName } from '../purchase.js';
import type { Sale } from '../sale.js';

/** A row with the time since its last change, ms on the clock of MySQL. */
export interface AgedOrder extends AuditedOrder {
  readonly ageMs: number;
}

/** An outbox row that was not done in time. */
export interface StuckRow {
  /** Decimal. */
  readonly outboxId: string;
  readonly attempts: number;
  /** Time since the transaction, ms on the clock of MySQL. */
  readonly ageMs: number;
}

/** Limits beyond which a row counts as stuck. Reaching either of them is enough. */
export interface StuckLimits {
  readonly olderThanMs: number;
  readonly attemptsMin: number;
}

/** Position in a walk over the orders of a sale. */
export interface OrderCursor {
  /** The first id of the last range that was read, decimal. */
  readonly afterFirst: string;
  /** The walk has read all orders of the sale up to this id, decimal. */
  readonly readTo: string;
}

export interface OrderPage {
  readonly rows: readonly AgedOrder[];
  /** Null if there are no more orders. */
  readonly next: OrderCursor | null;
}

/** Reads a sale and all its rows. Methods throw OperationalError mysql. */
export interface SaleRows {
  findSale(saleId: string): Promise<Sale | null>;

  /**
   * Returns the next orders by ascending id. Uses the ranges recorded with the orders, so it reads nothing of other
   * sales.
   * @param from null starts at the first orders
   */
  orderPage(saleId: string, from: OrderCursor | null): Promise<OrderPage>;

  /**
   * Returns orders in no recorded range: written by a worker of an older version, or by hand. Reads all orders since
   * the sale opened, so call it only if the orders of `orderPage` do not add up to `sold`.
   */
  unlistedOrders(sale: Sale): AsyncIterable<readonly AgedOrder[]>;
}

/** Reads the rows for a comparison with a live sale. Methods throw OperationalError mysql. */
export interface ReconcileRepository extends SaleRows {
  /** Returns the rows of these purchases, whichever batch wrote them. */
  rowsOf(saleId: string, purchases: readonly PurchaseName[]): Promise<AgedOrder[]>;

  /** Counts the releases of this sale in the outbox that are not done. */
  undoneReleases(saleId: string): Promise<number>;

  /**
   * Returns whether the stock is being changed, or has changed since the sale was read: Redis and MySQL then differ for
   * a moment although nothing is wrong.
   */
  isRestocked(sale: Pick<Sale, 'saleId' | 'stock'>): Promise<boolean>;

  /** Returns the batches that have a parked dead letter. */
  parkedBatches(batchIds: readonly string[]): Promise<Set<string>>;

  /** Returns the stuck outbox rows of this sale, oldest first. */
  stuckRows(saleId: string, limits: StuckLimits, max: number): Promise<StuckRow[]>;

  /** Returns true also for a missing row, which was done and then removed. */
  isDone(outboxId: string): Promise<boolean>;
}

/** The fields of an order that are compared with Redis. */
export type AuditedOrder = Pick<
  Order,
  'orderId' | 'userId' | 'requestId' | 'batchId' | 'quantity' | 'state' | 'reason'
>;
