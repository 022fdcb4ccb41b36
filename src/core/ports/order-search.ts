import type { OrderState, ShownOrder } from '../order.js';

/** Which orders; every condition that is there must hold. */
export interface OrderFilter {
  readonly userId?: string;
  readonly saleId?: string;
  readonly state?: OrderState;
  /** Minted at this time or later, Unix ms. */
  readonly fromMs?: number;
  /** Minted before this time, Unix ms. */
  readonly toMs?: number;
}

/** A part of the answer. It may be short, or empty, and more may come: it ends where `next` is null. */
export interface OrderPage {
  readonly orders: readonly ShownOrder[];
  /** Where the next page begins; opaque. */
  readonly next: string | null;
}

/** Why a filter is not served: it would read every order there is. */
export const ORDER_FILTER_NEEDS =
  'Name a user, a sale or a time from which on (from): without one of them every order would have to be read.';

/** Whether an index leads to the orders of this filter, or bounds what is read. */
export const isServed = ({ userId, saleId, fromMs }: OrderFilter): boolean =>
  userId !== undefined || saleId !== undefined || fromMs !== undefined;

/**
 * Finds orders without an index of its own: those of a user by the unique key of their requests, newest sale first; those of
 * a sale by its ranges; all others in the order of their ids, which is that of time. Each page reads a bounded number of rows.
 */
export interface OrderSearch {
  /**
   * @param after `next` of the page before; null: from the beginning
   * @returns null when `after` is no place of this search
   * @throws OperationalError mysql
   */
  page(filter: OrderFilter, after: string | null, max: number): Promise<OrderPage | null>;

  /**
   * The currency of each of these orders, by order id; an order that does not exist is missing.
   * @param orderIds some at most
   * @throws OperationalError mysql
   */
  currenciesOf(orderIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
}
