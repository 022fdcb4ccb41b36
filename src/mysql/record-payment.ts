import { mayMove } from '../core/order.js';
import type { Payment, PayOutcome } from '../core/ports/order-transitions.js';
import { MysqlError } from './errors.js';
import { LOCKED_COLUMNS, moveOrders, type LockedOrder } from './move-orders.js';
import type { MysqlPool } from './pool.js';

/**
 * Records a payment once, by its id, and pays the order with it; where that cannot be, a `refunds` row owes the money
 * back. Every payment that came has its `payments` row, so payments less refunds are the amounts of the paid orders.
 */
export async function recordPayment(pool: MysqlPool, orderId: string, payment: Payment): Promise<PayOutcome> {
  const { paymentId, amountCents } = payment;
  try {
    return await pool.transaction(async (tx) => {
      const [order] = await tx.query<LockedOrder>(`SELECT ${LOCKED_COLUMNS} FROM orders WHERE id = ? FOR UPDATE`, [
        orderId,
      ]);
      if (order === undefined) return 'not_found';
      await tx.execute('INSERT INTO payments (payment_id, order_id, amount_cents) VALUES (?, ?, ?)', [
        paymentId,
        orderId,
        amountCents,
      ]);
      const reason = whyNot(order, amountCents);
      if (reason === null) {
        await moveOrders(tx, [order], 'paid');
        return 'paid';
      }
      await tx.execute('INSERT INTO refunds (payment_id, order_id, amount_cents, reason) VALUES (?, ?, ?, ?)', [
        ...[paymentId, orderId, amountCents, reason],
      ]);
      return 'refund_due';
    });
  } catch (error) {
    if (error instanceof MysqlError && error.kind === 'duplicate') return toldBefore(pool, orderId, payment, error);
    throw error;
  }
}

/** Why this payment does not pay the order; null when it does. The deadline does not count until somebody acts on it. */
function whyNot(order: LockedOrder, amountCents: number): string | null {
  if (!mayMove(order.state, 'paid')) return order.state === 'paid' ? 'already_paid' : `order_${order.state}`;
  return Number(order.amount_cents) === amountCents ? null : 'wrong_amount';
}

/** The key of `payments` has refused: the first telling is committed, so its answer can be read. */
async function toldBefore(
  pool: MysqlPool,
  orderId: string,
  { paymentId, amountCents }: Payment,
  duplicate: MysqlError,
): Promise<PayOutcome> {
  const [row] = await pool.query<{ order_id: string; amount_cents: string; refund: string | null }>(
    'SELECT p.order_id, p.amount_cents, r.payment_id AS refund FROM payments p' +
      ' LEFT JOIN refunds r ON r.payment_id = p.payment_id WHERE p.payment_id = ?',
    [paymentId],
  );
  if (row === undefined) throw duplicate;
  if (row.order_id !== orderId || Number(row.amount_cents) !== amountCents) return 'payment_conflict';
  return row.refund === null ? 'paid' : 'refund_due';
}
