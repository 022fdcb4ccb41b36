import type { Batch } from '../batch.js';
import type { FailureReason, Order, ShownOrder } from '../order.js';
import type { Purchase, PurchaseName } from '../purchase.js';
import type { Release } from './batch-store.js';

/** The fields of a sale that a writer of orders needs. */
export interface SaleTerms {
  readonly saleId: string;
  readonly epoch: number;
  readonly priceCents: number;
  readonly limitPerBuyer: number;
  /** How long a buyer of this sale has to pay. Null: the payment window of the plan. */
  readonly paymentWindowMs: number | null;
  /** Whether Redis may have forgotten the sale. */
  readonly retired: boolean;
}

/** A `failed` row has a reason, and its units do not count as sold. */
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
  /** Releases of requests whose row ended under another batch. Each `failed` row in `orders` has its own release. */
  readonly releases: readonly Release[];
  /** Sales that the guard has refused. Each of their purchases is tried alone, so that only the surplus fails. */
  readonly oneByOne: ReadonlySet<string>;
  /** Set after `value_refused`: purchases with bad values become `failed/refused_by_database`. Default false. */
  readonly singleOut?: boolean;
  /** Set for rows that MySQL had lost, because the range of their ids may still be stored. Default: false. */
  readonly again?: boolean;
  /** Time to pay, counted from the transaction, for sales that set no time of their own. */
  readonly paymentWindowMs: number;
}

/**
 * Only `written` writes anything.
 * - `written`: committed; `surplus`: order ids that the guard turned into `failed/oversold_guard`; `refused`: ids
 *   that became `failed/refused_by_database` (absent if none)
 * - `row_exists`: a purchase already has its row, or `active_key` exists; look up the rows and plan again
 * - `order_id_taken`: an equal order id exists; mint new ids
 * - `oversold`: the guard of these sales refused; plan their purchases one by one
 * - `epoch_changed`: the sale has been rebuilt in the meantime
 * - `value_refused`: MySQL does not accept some value; single it out
 * - `again`: a deadlock or a lock wait time-out; try the same plan again at once
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
  /** Time since the last of these orders expired, ms. */
  readonly lastAgoMs: number;
}

/** Writes and finds orders. Every deadline uses the time of MySQL. Methods throw OperationalError mysql. */
export interface OrderRepository {
  /** Sales that do not exist are missing in the map. */
  termsOf(saleIds: readonly string[]): Promise<Map<string, SaleTerms>>;

  /**
   * Writes the rows, the outbox and the `sold` count in one transaction, or nothing. With `singleOut`, throws for a
   * refused value only if its purchase cannot be singled out: MySQL even refuses its failed row, the plan has no other
   * purchase, or many are refused. After a lost reply to COMMIT the rows may be there: look up before planning again.
   * Source: protocol rule 6
   */
  write(plan: WritePlan): Promise<WriteOutcome>;

  /** Finds rows by (userId, saleId, requestId), whichever batch wrote them. */
  findByPurchases(saleId: string, purchases: readonly PurchaseName[]): Promise<Order[]>;

  /** Returns the batches that have at least one row. */
  writtenBatches(batchIds: readonly string[]): Promise<Set<string>>;

  /** Returns the buyers with a live order in a sale with limit 1. */
  liveBuyers(saleId: string, userIds: readonly string[]): Promise<Set<string>>;

  findOrder(orderId: string): Promise<ShownOrder | null>;

  /** Counts the orders of this sale that the buyer has cancelled; 0 for an archived sale. */
  countCancelled(saleId: string, userId: string): Promise<number>;

  /** Finds which of these buyers let orders of this sale expire unpaid. */
  expiredOf(saleId: string, userIds: readonly string[]): Promise<Map<string, ExpiredOrders>>;
}

/** The right to mint order ids with a slot (0 to 255). */
export interface WorkerSlotLease {
  readonly slot: number;
  /** When the previous owner's lease ended, Unix ms of MySQL. 0 if this owner already had the slot. */
  readonly restedSinceMs: number;
  /** The current time, Unix ms on the clock of MySQL. */
  readonly nowMs: number;
}

/** Leases slots, so that no two processes mint the same ids. Methods throw OperationalError mysql. */
export interface WorkerSlots {
  /** Takes a free slot, or keeps the owner's. Throws also when all slots are taken. @param owner unique per process */
  acquire(owner: string, leaseMs: number): Promise<WorkerSlotLease>;

  free(owner: string): Promise<void>;
}

/** Coupons. A paid order gets at most one, ever. Methods throw OperationalError mysql. */
export interface CouponRepository {
  /**
   * Gives each paid order its coupon. After an error, call again.
   * @returns the number of new coupons, and the orders without one: unpaid or missing
   */
  issue(orderIds: readonly string[]): Promise<{ readonly issued: number; readonly unpaid: readonly string[] }>;

  /** Returns the orders without a coupon, including unpaid and missing orders. */
  withoutCoupon(orderIds: readonly string[]): Promise<string[]>;
}
