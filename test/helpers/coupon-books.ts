import type { Statements } from '../../src/mysql/pool.js';

/**
 * Returns the rows that break a rule of coupons and money. A coupon is free, reserved by the one open charge of an
 * unpaid order, or redeemed by one order, whose amount is the reduced price. A revoked coupon has no order. A paid order
 * has payments of its amount, and an order that ended unpaid has no payment that is not owed back.
 * @param isOurs condition on the orders `o` whose money is compared
 */
export async function brokenBooks(mysql: Statements, isOurs = 'TRUE'): Promise<object[]> {
  const coupons = await mysql.query<object>(
    `SELECT c.code, c.state, o.state AS order_state, o.after_paid, o.amount_cents, c.discount_cents
       FROM coupon_codes AS c LEFT JOIN orders AS o ON o.id = c.used_order LEFT JOIN sales AS s ON s.id = o.sale_id
      WHERE COALESCE(CASE c.state
        WHEN 'free' THEN c.used_order IS NULL AND c.used_key IS NULL AND c.discount_cents IS NULL
          AND c.redeemed_at IS NULL
        WHEN 'revoked' THEN c.used_order IS NULL AND c.used_key IS NULL AND c.discount_cents IS NULL
        WHEN 'reserved' THEN o.state = 'pending_payment' AND o.amount_cents = s.price_cents * o.quantity
          AND (SELECT COUNT(*) FROM payment_attempts AS a WHERE a.order_id = o.id AND a.state = 'open') = 1
          AND EXISTS (SELECT 1 FROM payment_attempts AS a WHERE a.order_id = o.id AND a.state = 'open'
            AND a.\`key\` = c.used_key AND a.amount_cents = o.amount_cents - c.discount_cents)
        ELSE c.redeemed_at IS NOT NULL AND (c.used_order IS NULL AND c.used_key IS NOT NULL OR o.state = 'paid'
          AND o.amount_cents + c.discount_cents = s.price_cents * o.quantity) END, FALSE) = FALSE`,
  );
  const usedTwice = await mysql.query<object>(
    `SELECT used_order AS order_with_two_coupons FROM coupon_codes WHERE used_order > 0
      GROUP BY used_order HAVING COUNT(*) > 1`,
  );
  const wrongMoney = await mysql.query<object>(
    `SELECT o.id AS order_with_wrong_money, o.state, o.amount_cents FROM orders AS o
      WHERE ${isOurs} AND (o.state = 'paid' OR o.state IN ('cancelled', 'expired') AND o.after_paid IS NULL)
        AND NOT IF(o.state = 'paid', o.amount_cents, NULL) <=>
          (SELECT SUM(p.amount_cents) FROM payments AS p LEFT JOIN refunds AS r ON r.payment_id = p.payment_id
            WHERE p.order_id = o.id AND r.payment_id IS NULL)`,
  );
  return [...coupons, ...usedTwice, ...wrongMoney];
}
