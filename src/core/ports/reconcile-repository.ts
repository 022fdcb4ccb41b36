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
  /** May be empty. */
  readonly rows: readonly AgedOrder[];
  /** Null if there are no more orders. */
  readonly next: OrderCursor | null;
}

/** Reads a sale and all its rows. */
export interface SaleRows {
  /** @throws OperationalError mysql */
  findSale(saleId: string): Promise<Sale | null>;

  /**
   * Returns the next orders of the sale, by ascending id. Uses the ranges that the writers recorded with the orders, so
   * it reads nothing of other sales.
   * @param from null starts at the first orders
   * @throws OperationalError mysql
   */
  orderPage(saleId: string, from: OrderCursor | null): Promise<OrderPage>;

  /**
   * Returns orders of the sale that are in no recorded range, because a worker of an older version wrote them, or
   * someone by hand. Reads all orders since the sale opened, so call this only if the orders of `orderPage` do not add
   * up to `sold`.
   * @throws OperationalError mysql
   */
  unlistedOrders(sale: Sale): AsyncIterable<readonly AgedOrder[]>;
}

/** Reads the rows for a comparison with a live sale. */
export interface ReconcileRepository extends SaleRows {
  /**
   * Returns the rows of these purchases, no matter which batch wrote them.
   * @throws OperationalError mysql
   */
  rowsOf(saleId: string, purchases: readonly Pick<PurchaseName, 'userId' | 'requestId'>[]): Promise<AgedOrder[]>;

  /**
   * Counts the releases of this sale in the outbox that are not done.
   * @throws OperationalError mysql
   */
  undoneReleases(saleId: string): Promise<number>;

  /**
   * Returns whether the stock of the sale is being changed, or has changed since the sale was read. Redis and MySQL
   * then differ for a moment although nothing is wrong.
   * @throws OperationalError mysql
   */
  isRestocked(sale: Pick<Sale, 'saleId' | 'stock'>): Promise<boolean>;

  /**
   * Returns which of these batches have a parked dead letter.
   * @throws OperationalError mysql
   */
  parkedBatches(batchIds: readonly string[]): Promise<Set<string>>;

  /**
   * Returns the stuck outbox rows of this sale, oldest first.
   * @throws OperationalError mysql
   */
  stuckRows(saleId: string, limits: StuckLimits, max: number): Promise<StuckRow[]>;

  /**
   * Returns whether this outbox row is done. A missing row was done and then removed.
   * @throws OperationalError mysql
   */
  isDone(outboxId: string): Promise<boolean>;
}

/** The fields of an order that are compared with Redis. */
export type AuditedOrder = Pick<
  Order,
  'orderId' | 'userId' | 'requestId' | 'batchId' | 'quantity' | 'state' | 'reason'
>;
