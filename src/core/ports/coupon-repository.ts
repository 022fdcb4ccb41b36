/** Thanks for a paid order: one coupon, for ever. */
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
