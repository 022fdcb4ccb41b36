import type { Order, OrderState, ShownOrder } from '../order.js';

/** Conditions that must all hold. An absent condition matches every order. */
export interface OrderFilter {
  readonly userId?: string;
  readonly saleId?: string;
  readonly state?: OrderState;
  /** Minted at this time or later, Unix ms. */
  readonly fromMs?: number;
  /** Minted before this time, Unix ms. */
  readonly toMs?: number;
  /** Paid at this time or later, Unix ms. The result is then sorted by the time of payment. */
  readonly paidFromMs?: number;
  /** Paid before this time, Unix ms. Needs `paidFromMs`. */
  readonly paidToMs?: number;
}

/** The facts about an order that a shop needs besides its row. */
export interface OrderDetails {
  /** Current sku and title of its sale. */
  readonly sku: string;
  readonly title: string;
  /** Price of its sale. A coupon lowers the amount of the order, not this price. Absent if the sale is unknown. */
  readonly unitPriceCents?: number;
  /** The payment that paid the order. Null if it was never paid. */
  readonly paymentId: string | null;
}

/**
 * A page of the result. Even a short or empty page may be followed by more pages: the search ends where `next` is null.
 */
export interface OrderPage {
  readonly orders: readonly ShownOrder[];
  /** Start of the next page, an opaque text. */
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
 * Finds orders without needing an index of its own: the orders of a user by the unique key of their requests, newest
 * sale first; the orders of a sale by its ranges of ids; paid orders by the time of their payment; all others by order
 * id, which follows the order of time. Each page reads a bounded number of rows.
 */
export interface OrderSearch {
  /**
   * Returns the next page.
   * @param after `next` of the previous page; null for the first page
   * @returns null if `after` does not belong to this search
   * @throws OperationalError mysql
   */
  page(filter: OrderFilter, after: string | null, max: number): Promise<OrderPage | null>;

  /**
   * Returns the currency of each order, by order id. Orders that do not exist are left out.
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
