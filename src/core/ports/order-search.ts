import type { Order, OrderState, ShownOrder } from '../order.js';

/** Conditions that must all hold. An absent condition matches every order. */
export interface OrderFilter {
  readonly userId?: string;
  readonly saleId?: string;
  /** `paid` includes orders of which only a part was refunded. */
  readonly state?: OrderState;
  /** Orders whose id was minted at this time or later, Unix ms. */
  readonly fromMs?: number;
  /** Orders whose id was minted before this time, Unix ms. */
  readonly toMs?: number;
  /** Paid at this time or later, Unix ms. Sorts by payment. */
  readonly paidFromMs?: number;
  /** Paid before this time, Unix ms. Needs `paidFromMs`. */
  readonly paidToMs?: number;
}

/** The facts about an order that a shop needs besides its row. */
interface OrderDetails {
  /** Current sku and title of its sale. */
  readonly sku: string;
  readonly title: string;
  /** Price of its sale. A coupon lowers the amount of the order, not this price. Absent if the sale is unknown. */
  readonly unitPriceCents?: number;
  /** The payment that paid the order. Null if it was never paid. */
  readonly paymentId: string | null;
}

/** A short or empty page is not the last: the search ends when `next` is null. */
export interface OrderPage {
  readonly orders: readonly ShownOrder[];
  /** Start of the next page, an opaque text. Of a user: the last order id, which has the same place in each cell. */
  readonly next: string | null;
}

/** Why a filter is refused: it would have to read every order. */
export const ORDER_FILTER_NEEDS =
  'Give a user, a sale or a start time (from or paidFrom). Without one of them, the search would read every order.';

/** Returns whether an index leads to the orders of this filter, or at least bounds the rows that are read. */
export const isServed = ({ userId, saleId, fromMs, paidFromMs, paidToMs }: OrderFilter): boolean =>
  paidFromMs !== undefined ||
  (paidToMs === undefined && (userId !== undefined || saleId !== undefined || fromMs !== undefined));

/**
 * Needs no index of its own. Finds the orders of a user by the unique key of their requests, newest first; of a
 * sale by its ranges of ids; paid orders by the time of payment; others by order id, which follows time. Each page
 * reads a bounded number of rows. Methods throw OperationalError mysql.
 */
export interface OrderSearch {
  /** Returns null if `after` is not of this search. @param after `next` of the previous page, or null */
  page(filter: OrderFilter, after: string | null, max: number): Promise<OrderPage | null>;

  /** Returns currencies by order id, without orders that do not exist. @param orderIds only a few */
  currenciesOf(orderIds: readonly string[]): Promise<ReadonlyMap<string, string>>;

  /** Returns the details by order id. */
  detailsOf(orders: readonly Order[]): Promise<ReadonlyMap<string, OrderDetails>>;
}
