/** By sale, or by second (Unix ms, a multiple of 1000): how many orders were written. */
export type OrdersBySale = ReadonlyMap<string, number>;
export type OrdersBySecond = ReadonlyMap<number, number>;

/**
 * How many orders were written when. What one transaction wrote counts in the second in which it began; one that is not
 * committed yet is missing.
 */
export interface LandedOrders {
  /**
   * @param saleIds some at most
   * @returns only sales that have some
   * @throws OperationalError mysql
   */
  bySale(saleIds: readonly string[], fromMs: number, toMs: number): Promise<OrdersBySale>;

  /**
   * Of one sale, those in the archive too.
   * @returns the seconds that have some, and the end of what was read: before `toMs` where there are very many
   * @throws OperationalError mysql
   */
  bySecond(
    saleId: string,
    fromMs: number,
    toMs: number,
  ): Promise<{ readonly seconds: OrdersBySecond; readonly readToMs: number }>;
}
