import type { Batch } from '../batch.js';
import type { FailureReason, Order, ShownOrder } from '../order.js';
import type { Purchase } from '../purchase.js';
import type { Release } from './batch-store.js';

/** What a writer of orders needs of a sale. */
export interface SaleTerms {
  readonly saleId: string;
  readonly epoch: number;
  readonly priceCents: number;
  readonly limitPerBuyer: number;
  /** Redis may have forgotten it. */
  readonly retired: boolean;
}

/** A row to be written. `failed` rows carry their reason and count as nothing sold. */
export interface NewOrder {
  readonly orderId: string;
  readonly batch: Batch;
  readonly purchase: Purchase;
  readonly failure: FailureReason | null;
}

/** The rows of one writer transaction. */
export interface WritePlan {
  readonly terms: ReadonlyMap<string, SaleTerms>;
  readonly orders: readonly NewOrder[];
  /**
   * Requests whose row ended under another batch: their units go back, driven by the outbox. The releases of the
   * `failed` rows in `orders` are written with them and are not listed here.
   */
  readonly releases: readonly Release[];
  /** Sales whose guard refused: there each purchase is tried alone, so that exactly the surplus fails. */
  readonly oneByOne: ReadonlySet<string>;
  /**
   * Set after `value_refused`: purchases whose values MySQL does not take become `failed/refused_by_database`, in the
   * same transaction as the others. Default false.
   */
  readonly singleOut?: boolean;
  /** How long a buyer may take to pay, from the time of the transaction. */
  readonly paymentWindowMs: number;
}

/**
 * - `written`: committed; `surplus` holds the order ids that the guard turned into `failed/oversold_guard`, `refused`
 *   those that became `failed/refused_by_database` (absent: none)
 * - `row_exists`: a purchase has its row, or `active_key` exists; nothing was written, look up, plan again
 * - `order_id_taken`: an equal order id exists; nothing was written, mint new ones
 * - `oversold`: the guard of these sales refused; nothing was written, plan them one by one
 * - `epoch_changed`: the sale was rebuilt meanwhile; nothing was written
 * - `value_refused`: MySQL does not take some value; nothing was written, single it out
 * - `again`: deadlock or lock wait; nothing was written, the same plan may be tried at once
 */
export type WriteOutcome =
  | { readonly outcome: 'written'; readonly surplus: ReadonlySet<string>; readonly refused?: ReadonlySet<string> }
  | { readonly outcome: 'row_exists' | 'order_id_taken' }
  | { readonly outcome: 'oversold'; readonly saleIds: readonly string[] }
  | { readonly outcome: 'epoch_changed' | 'value_refused' }
  | { readonly outcome: 'again' };

/** The expired orders of one buyer in one sale. */
export interface ExpiredOrders {
  readonly count: number;
  /** How long ago the last of them could still be paid, ms. */
  readonly lastAgoMs: number;
}

/** Writes and finds orders. Every deadline is on the time of MySQL. */
export interface OrderRepository {
  /**
   * Terms of the sales that exist; a missing one is absent from the map.
   * @throws OperationalError mysql
   */
  termsOf(saleIds: readonly string[]): Promise<Map<string, SaleTerms>>;

  /**
   * Writes rows, outbox and the `sold` count in one transaction, or nothing. With `singleOut` a refused value is thrown
   * when its purchase cannot be singled out: its failed row is refused as well, none stands beside it, or many are.
   * @throws OperationalError mysql; after a lost reply to COMMIT the rows may be there (look up before planning again)
   * Source: protocol rule 6
   */
  write(plan: WritePlan): Promise<WriteOutcome>;

  /**
   * The rows of these purchases, found by (userId, saleId, requestId), whatever batch wrote them.
   * @throws OperationalError mysql
   */
  findByPurchases(saleId: string, purchases: readonly Pick<Purchase, 'userId' | 'requestId'>[]): Promise<Order[]>;

  /**
   * Those of these batches that have a row, maybe not of all their purchases.
   * @throws OperationalError mysql
   */
  writtenBatches(batchIds: readonly string[]): Promise<Set<string>>;

  /**
   * Which of these buyers hold a live order in a sale with limit 1.
   * @throws OperationalError mysql
   */
  liveBuyers(saleId: string, userIds: readonly string[]): Promise<Set<string>>;

  /** @throws OperationalError mysql */
  findOrder(orderId: string): Promise<ShownOrder | null>;

  /** Orders of this sale that the buyer has cancelled; 0 of a sale in the archive. @throws OperationalError mysql */
  countCancelled(saleId: string, userId: string): Promise<number>;

  /** Of those of these buyers who left orders of this sale unpaid until they expired. @throws OperationalError mysql */
  expiredOf(saleId: string, userIds: readonly string[]): Promise<Map<string, ExpiredOrders>>;
}

/** The right to mint order ids with one of 256 slots, held for a while. */
export interface WorkerSlotLease {
  readonly slot: number;
  /** When the lease of the owner before ended, Unix ms on the clock of MySQL; 0 when it was ours already. */
  readonly restedSinceMs: number;
  /** Now, Unix ms on the clock of MySQL. */
  readonly nowMs: number;
}

/** Hands out slots so that no two processes mint the same ids. */
export interface WorkerSlots {
  /**
   * Takes a free slot, or keeps the one this owner already has.
   * @param owner unique per process
   * @throws OperationalError mysql, also when all 256 slots are taken
   */
  acquire(owner: string, leaseMs: number): Promise<WorkerSlotLease>;

  /** @throws OperationalError mysql */
  free(owner: string): Promise<void>;
}

/** Coupons: at most one per paid order, ever. */
export interface CouponRepository {
  /**
   * Gives each of these orders that is paid its coupon, if it has none yet.
   * @returns how many coupons are new, and the orders that are not paid (or not there) and so have none
   * @throws OperationalError mysql; some may have theirs, so ask again
   */
  issue(orderIds: readonly string[]): Promise<{ readonly issued: number; readonly unpaid: readonly string[] }>;

  /**
   * Those of these orders that have no coupon, also because they are not paid or not there.
   * @throws OperationalError mysql
   */
  withoutCoupon(orderIds: readonly string[]): Promise<string[]>;
}
