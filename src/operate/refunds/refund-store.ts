import type { Refund, RefundState } from '../../core/ports/refund-repository.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { insertAudit } from '../../mysql/audit-log.js';
import { createOrderRefunds } from '../../mysql/order-refunds.js';
import { systemClock as clock } from '../../process/system-clock.js';
import { knex, PAUSE_MAX_MS, select, waitOver } from '../../mysql/knex.js';
import type { MysqlPool } from '../../mysql/pool.js';
import { markRefunded, refundOf } from '../../mysql/refund-repository.js';
import type { RefundRow } from '../../mysql/tables.js';

/** A refund as an operator sees it. Times are Unix ms on the clock of MySQL. */
export interface StoredRefund extends Refund {
  /** How often the provider was asked. */
  readonly attempts: number;
  /** Error of the last try. Null: no error, or not tried. */
  readonly lastError: string | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** Conditions that must all hold. An absent condition matches every refund. */
export interface RefundFilter {
  readonly state?: RefundState;
}

/** A page of refunds, oldest first. */
export interface RefundPage {
  /** Returns refunds after the refund of this payment. Absent: starts at the oldest. */
  readonly afterPaymentId?: string;
  readonly max: number;
}

/**
 * - `done`: the refund was due and is now yours to pay by hand: no keeper will pay it
 * - `already_refunded`: the provider gave the money back, or a person took the refund on before: do not pay it
 * - `being_asked`: a keeper is asking the provider for the refund right now, which may give the money back; ask again
 *   in a minute
 */
export type TakeOnOutcome =
  | { readonly outcome: 'done' | 'already_refunded' | 'being_asked'; readonly refund: StoredRefund }
  | { readonly outcome: 'not_found' };

/** The refunds that operators see. */
export interface RefundStore {
  /** @throws OperationalError mysql */
  list(filter: RefundFilter, page: RefundPage): Promise<StoredRefund[]>;

  /**
   * Claims a refund for a person who then pays it by hand, so that no keeper pays it too. Writes an entry of `actor` to
   * the audit log, in the same transaction.
   * @throws OperationalError mysql; the refund may be claimed, so check before paying
   */
  takeOn(paymentId: string, actor: string): Promise<TakeOnOutcome>;
}

export function createRefundStore(pool: MysqlPool): RefundStore {
  return {
    list: (filter, page) => list(pool, filter, page),
    async takeOn(paymentId, actor) {
      const taken = await takeOn(pool, paymentId, actor);
      return taken.outcome === 'not_found' ? takeOnOrderRefund(pool, paymentId, actor) : taken;
    },
  };
}

/** The payment paid its order, so the refund is one that an operator has ordered. */
async function takeOnOrderRefund(pool: MysqlPool, paymentId: string, actor: string): Promise<TakeOnOutcome> {
  const taken = await createOrderRefunds(pool, { clock }).takeOn(paymentId, actor);
  if (taken.outcome === 'not_found') return taken;
  const { orderId, amountCents, reason, attempts, lastError, createdAtMs } = taken.refund;
  const state = taken.outcome === 'done' ? 'refunded' : 'due';
  const stored = { paymentId, orderId, amountCents, reason, attempts, lastError, createdAtMs };
  return { outcome: taken.outcome, refund: { ...stored, state, updatedAtMs: createdAtMs } };
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
    await insertAudit(tx, { actor, action: 'refund.claimed', subject: `refund:${paymentId}`, before, after });
    const [changed] = await select(tx, ofPayment);
    return { outcome: 'done', refund: storedOf(changed ?? row) };
  });
}

const storedOf = (row: Pick<RefundRow, (typeof STORED_COLUMNS)[number]>): StoredRefund => ({
  ...refundOf(row),
  attempts: row.attempts,
  lastError: row.last_error,
  createdAtMs: row.created_at.getTime(),
  updatedAtMs: row.updated_at.getTime(),
});
