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

/** Where a walk over the orders of a sale has come to. */
export interface OrderCursor {
  /** The first id of the last range that was read, decimal. */
  readonly afterFirst: string;
  /** Up to this id all orders of the sale were read, decimal. */
  readonly readTo: string;
}

export interface OrderPage {
  /** May be empty. */
  readonly rows: readonly AgedOrder[];
  /** Null: these were the last ones. */
  readonly next: OrderCursor | null;
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
   * The next orders of the sale, by ascending id, from what its writers noted beside them: nothing of other sales is read.
   * @param from null: the first ones
   * @throws OperationalError mysql
   */
  orderPage(saleId: string, from: OrderCursor | null): Promise<OrderPage>;

  /**
   * Orders of the sale that no writer noted: those of a worker of an older version, or written by hand. Reads all orders
   * since the sale opened, so to be asked only when those of `orderPage` do not add up to `sold`.
   * @throws OperationalError mysql
   */
  unlistedOrders(sale: Sale): AsyncIterable<readonly AgedOrder[]>;

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
