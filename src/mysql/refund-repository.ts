import { isOrderId } from '../core/ids.js';
import type {
  LeasedRefund,
  Refund,
  RefundRepository,
  RefundFilter,
  RefundPage,
  StoredRefund,
  TakeOnOutcome,
} from '../core/ports/refund-repository.js';
import { insertAudit } from './audit-log.js';
import { execute, inMs, knex, PAUSE_MAX_MS, select, waitOver } from './knex.js';
import type { MysqlPool, Statements } from './pool.js';
import type { RefundRow } from './tables.js';
import { withoutUndefined } from '../core/without-undefined.js';

const ERROR_MAX = 1000;
/** Remains if a keeper dies while it asks: a person should then ask the provider before paying. */
const ASKED = 'a keeper asked the provider, and has no answer yet';

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
    list: (filter, page) => list(pool, filter, page),
    takeOn: (paymentId, actor) => takeOn(pool, paymentId, actor),
  };
}

/**
 * Leases due refunds. The lock lasts for these two statements, the lease in `available_at` for the work: no money moves
 * under a lock.
 */
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

async function markRefunded(on: Statements, paymentId: string): Promise<boolean> {
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

/** Without `available_at`, which tells an operator nothing. */
const STORED_COLUMNS = [
  'payment_id',
  'order_id',
  'amount_cents',
  'reason',
  'state',
  'attempts',
  'last_error',
  'created_at',
  'updated_at',
] as const satisfies (keyof RefundRow)[];

async function list(
  pool: MysqlPool,
  { state }: RefundFilter,
  { afterPaymentId, max }: RefundPage,
): Promise<StoredRefund[]> {
  let page = knex('refunds')
    .select(...STORED_COLUMNS)
    .where(withoutUndefined({ state }));
  if (afterPaymentId !== undefined) {
    const [after] = await select(pool, knex('refunds').select('created_at').where({ payment_id: afterPaymentId }));
    if (after === undefined) return [];
    // An index can follow the first condition. The second condition leaves out the rows of the previous page.
    const since = after.created_at;
    page = page.where('created_at', '>=', since).whereNot((had) => {
      void had.where({ created_at: since }).where('payment_id', '<=', afterPaymentId);
    });
  }
  return (await select(pool, page.orderBy(['created_at', 'payment_id']).limit(max))).map(storedOf);
}

function takeOn(pool: MysqlPool, paymentId: string, actor: string): Promise<TakeOnOutcome> {
  const ofPayment = knex('refunds')
    .select(...STORED_COLUMNS)
    .where({ payment_id: paymentId });
  return pool.transaction(async (tx) => {
    const [row] = await select(tx, ofPayment.clone().forUpdate());
    if (row === undefined) return { outcome: 'not_found' };
    if (row.state === 'refunded') return { outcome: 'already_refunded', refund: storedOf(row) };
    const leased = knex('refunds')
      .select('payment_id')
      .where({ payment_id: paymentId })
      .whereRaw(`NOT ${waitOver('leased_until', PAUSE_MAX_MS)}`);
    if ((await select(tx, leased)).length > 0) return { outcome: 'being_asked', refund: storedOf(row) };
    await markRefunded(tx, paymentId);
    const { state, attempts, lastError, orderId, amountCents } = storedOf(row);
    const before = { state, attempts, lastError };
    const after = { state: 'refunded', orderId, amountCents };
    await insertAudit(tx, { actor, action: 'refund.taken_on', subject: `refund:${paymentId}`, before, after });
    const [changed] = await select(tx, ofPayment);
    return { outcome: 'done', refund: storedOf(changed ?? row) };
  });
}

const refundOf = (row: Pick<RefundRow, 'payment_id' | 'order_id' | 'amount_cents' | 'reason' | 'state'>): Refund => ({
  paymentId: row.payment_id,
  orderId: row.order_id,
  amountCents: Number(row.amount_cents),
  reason: row.reason,
  state: row.state,
});

const storedOf = (row: Pick<RefundRow, (typeof STORED_COLUMNS)[number]>): StoredRefund => ({
  ...refundOf(row),
  attempts: row.attempts,
  lastError: row.last_error,
  createdAtMs: row.created_at.getTime(),
  updatedAtMs: row.updated_at.getTime(),
});
