/** Number of written orders, by sale or by second (Unix ms, a multiple of 1000). */
type OrdersBySale = ReadonlyMap<string, number>;
export type OrdersBySecond = ReadonlyMap<number, number>;

/**
 * Counts the orders written over time. All orders of a transaction count in the second in which it began. A transaction
 * that is not committed yet is missing.
 */
export interface LandedOrders {
  /**
   * @param saleIds a small number of sales
   * @returns only the sales that have orders
   * @throws OperationalError mysql
   */
  bySale(saleIds: readonly string[], fromMs: number, toMs: number): Promise<OrdersBySale>;

  /**
   * Counts the orders of one sale, archived orders included.
   * @returns the seconds that have orders, and the end of the range that was read: before `toMs` if there are very many
   * @throws OperationalError mysql
   */
  bySecond(
    saleId: string,
    fromMs: number,
    toMs: number,
  ): Promise<{ readonly seconds: OrdersBySecond; readonly readToMs: number }>;
}
