import type { OrderState, ShownOrder } from '../order.js';

/** Conditions that must all hold. An absent condition matches every order. */
export interface OrderFilter {
  readonly userId?: string;
  readonly saleId?: string;
  readonly state?: OrderState;
  /** Earliest minting time, Unix ms. */
  readonly fromMs?: number;
  /** Minted before this time, Unix ms. */
  readonly toMs?: number;
}

/** A page of the result. A short or empty page may be followed by more pages. The search ends where `next` is null. */
export interface OrderPage {
  readonly orders: readonly ShownOrder[];
  /** Start of the next page; opaque. */
  readonly next: string | null;
}

/** Why a filter is refused: it would read every order. */
export const ORDER_FILTER_NEEDS =
  'Give a user, a sale or a start time (from). Without one of them, the search would read every order.';

/** Says whether an index leads to the orders of this filter, or bounds the rows that are read. */
export const isServed = ({ userId, saleId, fromMs }: OrderFilter): boolean =>
  userId !== undefined || saleId !== undefined || fromMs !== undefined;

/**
 * Finds orders without an index of its own: the orders of a user by the unique key of their requests, newest sale
 * first; the orders of a sale by its ranges; all others by order id, which is in order of time. Each page reads a
 * bounded number of rows.
 */
export interface OrderSearch {
  /**
   * @param after `next` of the page before. Null: the first page
   * @returns null when `after` is no place of this search
   * @throws OperationalError mysql
   */
  page(filter: OrderFilter, after: string | null, max: number): Promise<OrderPage | null>;

  /**
   * Returns the currency of each order, by order id. An order that does not exist is missing.
   * @param orderIds a small number of ids
   * @throws OperationalError mysql
   */
  currenciesOf(orderIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
}
