import type { OrderNews } from '../order-news.js';

/** How orders stand, with the buyers who may wait for them. */
export interface NewsRows {
  /**
   * @param orderIds at most some hundred
   * @returns those that are there, as they stand now
   * @throws OperationalError mysql
   */
  newsOf(orderIds: readonly string[]): Promise<OrderNews[]>;
}
