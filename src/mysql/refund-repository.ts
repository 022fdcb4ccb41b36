import { isOrderId } from '../core/ids.js';
import type { LeasedRefund, Refund, RefundRepository } from '../core/ports/refund-repository.js';
import { execute, inMs, knex, PAUSE_MAX_MS, select, waitOver } from './knex.js';
import type { MysqlPool, Statements } from './pool.js';
import type { RefundRow } from './tables.js';

const ERROR_MAX = 1000;
/** This text stays if a keeper dies while it is asking. A person should then ask the provider before paying. */
export const ASKED = 'a keeper asked the provider, and no answer was recorded';

/** Refunds owed to buyers, in MySQL, whose clock decides which refunds are due. */
export function createRefundRepository(pool: MysqlPool): RefundRepository {
  return {
    lease: (max, leaseMs) => lease(pool, max, leaseMs),
    markRefunded: (paymentId) => markRefunded(pool, paymentId),
    async postpone({ paymentId, attempts }, delayMs, error): Promise<void> {
      const changes = { available_at: inMs(delayMs), leased_until: null, last_error: error.slice(0, ERROR_MAX) };
      await execute(pool, knex('refunds').where({ payment_id: paymentId, state: 'due', attempts }).update(changes));
    },
    refundsOf: (orderId) => refundsOf(pool, orderId),
    has: async (paymentId) =>
      (await select(pool, knex('refunds').select('payment_id').where({ payment_id: paymentId }))).length > 0,
  };
}

/** The lock lasts for two statements. The lease in `available_at` covers the work. No money moves under a lock. */
function lease(pool: MysqlPool, max: number, leaseMs: number): Promise<LeasedRefund[]> {
  return pool.transaction(async (tx) => {
    const rows = await select(
      tx,
      knex('refunds')
        .select('payment_id', 'order_id', 'amount_cents', 'attempts')
        .where({ state: 'due' })
        .whereRaw(waitOver('available_at', Math.max(leaseMs, PAUSE_MAX_MS)))
        .orderBy('available_at')
        .limit(max)
        .forUpdate()
        .skipLocked(),
    );
    if (rows.length === 0) return [];
    const paymentIds = rows.map((row) => row.payment_id);
    const until = inMs(leaseMs);
    const changes = { attempts: knex.raw('attempts + 1'), available_at: until, leased_until: until, last_error: ASKED };
    await execute(tx, knex('refunds').whereIn('payment_id', paymentIds).update(changes));
    return rows.map((row) => ({
      paymentId: row.payment_id,
      orderId: row.order_id,
      amountCents: Number(row.amount_cents),
      attempts: row.attempts + 1,
    }));
  });
}

/** Returns false if the refund was no longer due. */
export async function markRefunded(on: Statements, paymentId: string): Promise<boolean> {
  const due = knex('refunds').where({ payment_id: paymentId, state: 'due' });
  const { affectedRows } = await execute(on, due.update({ state: 'refunded', leased_until: null, last_error: null }));
  return affectedRows > 0;
}

async function refundsOf(pool: MysqlPool, orderId: string): Promise<Refund[]> {
  if (!isOrderId(orderId)) return []; // MySQL would read 12x as 12
  const rows = await select(
    pool,
    knex('refunds')
      .select('payment_id', 'order_id', 'amount_cents', 'reason', 'state')
      .where({ order_id: orderId })
      .orderBy('created_at'),
  );
  return rows.map(refundOf);
}

const refundOf = (row: Pick<RefundRow, 'payment_id' | 'order_id' | 'amount_cents' | 'reason' | 'state'>): Refund => ({
  paymentId: row.payment_id,
  orderId: row.order_id,
  amountCents: Number(row.amount_cents),
  reason: row.reason,
  state: row.state,
});
