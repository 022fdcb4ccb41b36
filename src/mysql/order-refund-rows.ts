import { randomBytes } from 'node:crypto';
import type { OrderRefund, RefundWish } from '../core/ports/order-refunds.js';
import { actorColumn } from './audit-log.js';
import { findInBoth, type OrderTable } from './both-tables.js';
import { bigint, knex, select } from './knex.js';
import type { LockedOrder } from './move-orders.js';
import type { Statements } from './pool.js';
import type { OrderRefundRow } from './tables.js';

interface NewRefund extends RefundWish {
  readonly order: LockedOrder;
  readonly paymentId: string;
  readonly amountCents: number;
  readonly actor: string;
}

/** Builds a due refund. A key that the caller has not chosen is never repeated. */
export const newRefund = ({ order, paymentId, amountCents, actor, restock, reason, key }: NewRefund) => ({
  order_id: order.id,
  sale_id: order.sale_id,
  payment_id: paymentId,
  key: key ?? `auto-${randomBytes(12).toString('hex')}`,
  amount_cents: String(amountCents),
  restock: restock ? 1 : 0,
  reason,
  actor: actorColumn(actor),
});

export async function paymentsOf(tx: Statements, orderIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const find = (table: OrderTable, ids: readonly string[]) =>
    select(
      tx,
      knex
        .from(`${table === 'orders' ? 'payments' : 'payments_archive'} as p`)
        .leftJoin('refunds as r', 'r.payment_id', 'p.payment_id')
        .whereIn('p.order_id', ids.map(bigint))
        .whereNull('r.payment_id')
        .select<{ payment_id: string; order_id: string }[]>('p.payment_id', 'p.order_id'),
    );
  const rows = await findInBoth(orderIds, find, (row: { order_id: string }) => row.order_id);
  return new Map(rows.map((row) => [row.order_id, row.payment_id]));
}

export async function refundsOf(on: Statements, orderId: string): Promise<OrderRefund[]> {
  const ofOrder = knex('order_refunds').select('*').where({ order_id: orderId });
  const rows = await select(on, ofOrder.orderBy('id'));
  const byKey = new Map(rows.map(({ key, id }) => [key, id]));
  return rows.map((row) => refundOf(row, byKey.get(keyAfter(row.id))));
}

/** The key of the refund that retries a failed refund. Callers cannot choose it, because they cannot use a slash. */
export const keyAfter = (refundId: string): string => `again/${refundId}`;

export const refundOf = (row: OrderRefundRow, followedBy: string | null = null): OrderRefund => ({
  refundId: row.id,
  orderId: row.order_id,
  paymentId: row.payment_id,
  key: row.key,
  amountCents: Number(row.amount_cents),
  restock: row.restock === 1,
  reason: row.reason,
  actor: row.actor,
  state: row.state,
  attempts: row.attempts,
  lastError: row.last_error,
  followedBy,
  createdAtMs: row.created_at.getTime(),
});
