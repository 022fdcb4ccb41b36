import type { FailureReason, Order, OrderState } from '../core/order.js';

/** A row of `orders` as the driver gives it: BIGINT as a string, DATETIME as a Date. */
export interface OrderRow {
  readonly id: string;
  readonly sale_id: string;
  readonly user_id: string;
  readonly request_id: string;
  readonly batch_id: string;
  readonly quantity: number;
  readonly amount_cents: string;
  readonly state: OrderState;
  readonly reason: FailureReason | null;
  readonly created_at: Date;
  readonly expires_at: Date | null;
  readonly paid_at: Date | null;
}

export const ORDER_COLUMNS =
  'id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, state, reason, created_at, expires_at, paid_at';

export function orderOf(row: OrderRow): Order {
  return {
    orderId: row.id,
    userId: row.user_id,
    saleId: row.sale_id,
    requestId: row.request_id,
    batchId: row.batch_id,
    quantity: row.quantity,
    amountCents: Number(row.amount_cents),
    state: row.state,
    reason: row.reason,
    createdAtMs: row.created_at.getTime(),
    expiresAtMs: row.expires_at?.getTime() ?? null,
    paidAtMs: row.paid_at?.getTime() ?? null,
  };
}
