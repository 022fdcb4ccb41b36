import type { Order, OrderState, ShownOrder } from '../order.js';

/** Conditions that must all hold. An absent condition matches every order. */
export interface OrderFilter {
  readonly userId?: string;
  readonly saleId?: string;
  readonly state?: OrderState;
  /** Earliest minting time, Unix ms. */
  readonly fromMs?: number;
  /** Minted before this time, Unix ms. */
  readonly toMs?: number;
  /** Earliest time of the payment, Unix ms. Then the orders come in the order in which they were paid. */
  readonly paidFromMs?: number;
  /** Paid before this time, Unix ms. Needs `paidFromMs`. */
  readonly paidToMs?: number;
}

/** What a shop needs of an order besides its row. */
export interface OrderDetails {
  /** Sku and title of its sale, as they are now. */
  readonly sku: string;
  readonly title: string;
  /** Price of its sale; a coupon lowers the amount of the order, not this price. Absent: the sale is unknown. */
  readonly unitPriceCents?: number;
  /** The payment that paid the order. Null: it was never paid. */
  readonly paymentId: string | null;
}

/** A page of the result. A short or empty page may be followed by more pages. The search ends where `next` is null. */
export interface OrderPage {
  readonly orders: readonly ShownOrder[];
  /** Start of the next page; opaque. */
  readonly next: string | null;
}

/** Why a filter is refused: it would read every order. */
export const ORDER_FILTER_NEEDS =
  'Give a user, a sale or a start time (from or paidFrom). Without one of them, the search would read every order.';

/** Says whether an index leads to the orders of this filter, or bounds the rows that are read. */
export const isServed = ({ userId, saleId, fromMs, paidFromMs, paidToMs }: OrderFilter): boolean =>
  paidFromMs !== undefined ||
  (paidToMs === undefined && (userId !== undefined || saleId !== undefined || fromMs !== undefined));

/**
 * Finds orders without an index of its own: the orders of a user by the unique key of their requests, newest sale
 * first; the orders of a sale by its ranges; paid orders by the time of their payment; all others by order id, which is
 * in order of time. Each page reads a bounded number of rows.
 */
export interface OrderSearch {
  /**
   * @param after `next` of the page before. Null: the first page
   * @returns null when `after` does not belong to this search
   * @throws OperationalError mysql
   */
  page(filter: OrderFilter, after: string | null, max: number): Promise<OrderPage | null>;

  /**
   * Returns the currency of each order, by order id. An order that does not exist is missing.
   * @param orderIds a small number of ids
   * @throws OperationalError mysql
   */
  currenciesOf(orderIds: readonly string[]): Promise<ReadonlyMap<string, string>>;

  /**
   * Returns the details of these orders, by order id.
   * @throws OperationalError mysql
   */
  detailsOf(orders: readonly Order[]): Promise<ReadonlyMap<string, OrderDetails>>;
}
