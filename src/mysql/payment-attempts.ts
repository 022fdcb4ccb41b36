import { assert } from '../core/errors.js';
import { isOrderId } from '../core/ids.js';
import { freePaymentId, isUnpaid } from '../core/order.js';
import type { Clock } from '../core/ports/clock.js';
import type {
  AttemptEnd,
  AttemptName,
  CouponUse,
  DeclineBound,
  OpenAttempt,
  OpenOutcome,
  PaymentAttempts,
} from '../core/ports/payment-attempts.js';
import { ageOf, execute, inMs, knex, msAgo, PAUSE_MAX_MS, select, waitOver } from './knex.js';
import { freeReserved, reserveCoupon } from './coupon-codes.js';
import { lockOrder, moveOrders } from './move-orders.js';
import type { MysqlPool, Statements, Transaction } from './pool.js';
import { retryConflicts } from './retry-conflicts.js';
import { withoutUndefined } from '../core/without-undefined.js';

const ERROR_MAX = 1000;
const OF_ORDER_MAX = 10;
const HOUR_MS = 3_600_000;

/** If a second request has the same key, it reopens the attempt. */
const OPEN = `INSERT INTO payment_attempts (order_id, sale_id, \`key\`, amount_cents, available_at)
  VALUES (:orderId, :saleId, :key, :amountCents, :availableAt)
  ON DUPLICATE KEY UPDATE state = 'open', version = version + 1, opened_at = UTC_TIMESTAMP(3),
    available_at = VALUES(available_at)`;

/** The clock of MySQL decides which attempts are due. A transaction that loses its locks is retried. */
export function createPaymentAttempts(pool: MysqlPool, { clock }: { readonly clock: Clock }): PaymentAttempts {
  const transaction = <T>(work: (tx: Transaction) => Promise<T>): Promise<T> =>
    retryConflicts(clock, () => pool.transaction(work));
  return {
    async open(orderId, key, amountCents, askAfterMs, bound = null, coupon = null): Promise<OpenOutcome> {
      if (!isOrderId(orderId)) return { outcome: 'wrong_state' }; // MySQL would read 12x as 12
      return transaction((tx) => open(tx, { orderId, key }, { amountCents, askAfterMs, bound, coupon }));
    },
    async close({ orderId, key, version }, end: AttemptEnd): Promise<void> {
      const same = { order_id: orderId, key, ...withoutUndefined({ version }) };
      await transaction(async (tx) => {
        const closed = knex('payment_attempts').where(same).update({ state: end, last_error: null });
        if ((await execute(tx, closed)).affectedRows > 0) await freeReserved(tx, [orderId], key);
      });
    },
    async openOf(orderId): Promise<OpenAttempt[]> {
      if (!isOrderId(orderId)) return []; // MySQL would read 12x as 12
      const ofOrder = columns().where({ order_id: orderId, state: 'open' }).limit(OF_ORDER_MAX);
      return (await select(pool, ofOrder)).map(attemptOf);
    },
    /** The lock lasts only for these statements, so no row is locked while the provider is asked. */
    lease(max, leaseMs) {
      return pool.transaction(async (tx) => {
        const due = columns()
          .where({ state: 'open' })
          .whereRaw(waitOver('available_at', Math.max(leaseMs, PAUSE_MAX_MS)));
        const rows = await select(tx, due.orderBy('available_at').limit(max).forUpdate().skipLocked());
        for (const row of rows) await keep(tx, { orderId: row.order_id, key: row.key }, leaseMs);
        return rows.map((row) => attemptOf({ ...row, version: row.version + 1 }));
      });
    },
    async postpone({ orderId, key }, delayMs, error): Promise<void> {
      const changes = { available_at: inMs(delayMs), last_error: error.slice(0, ERROR_MAX) };
      await execute(pool, knex('payment_attempts').where({ order_id: orderId, key, state: 'open' }).update(changes));
    },
  };
}

interface AttemptRow {
  readonly order_id: string;
  readonly key: string;
  readonly amount_cents: string;
  readonly version: number;
  readonly age_us: string;
}

const columns = () =>
  knex('payment_attempts').select<AttemptRow[]>('order_id', 'key', 'amount_cents', 'version', ageOf('opened_at'));

const attemptOf = (row: AttemptRow): OpenAttempt => ({
  orderId: row.order_id,
  key: row.key,
  amountCents: Number(row.amount_cents),
  version: row.version,
  ageMs: Number(row.age_us) / 1000,
});

interface Opening {
  readonly amountCents: number;
  readonly askAfterMs: number;
  readonly bound: DeclineBound | null;
  readonly coupon: CouponUse | null;
}

/** Locks the order first, so that requests and moves follow each other. Commits before the provider is asked. */
async function open(
  tx: Transaction,
  { orderId, key }: AttemptName,
  { amountCents, askAfterMs, bound, coupon }: Opening,
): Promise<OpenOutcome> {
  const [order] = await select(
    tx,
    knex('orders').select('sale_id', 'state', 'user_id').where({ id: orderId }).forUpdate(),
  );
  if (order === undefined || !isUnpaid(order.state)) return { outcome: 'wrong_state' };
  const ofOrder = columns().where({ order_id: orderId, state: 'open' }).whereNot({ key });
  const [other] = await select(tx, ofOrder.limit(1));
  if (other !== undefined) return { outcome: 'in_progress', other: attemptOf(other) };
  const [same] = await select(tx, columns().where({ order_id: orderId, key }));
  if (same !== undefined && Number(same.amount_cents) !== amountCents) {
    return { outcome: 'coupon_refused', why: 'other_key' }; // a key is one charge, of one amount
  }
  if (bound !== null && (await isBeyond(tx, { orderId, key }, order.user_id, bound)) && bound.refuses()) {
    return { outcome: 'decline_limit_reached' };
  }
  const attempt = { orderId, saleId: order.sale_id, key, amountCents, availableAt: inMs(askAfterMs) };
  await execute(tx, knex.raw(OPEN, attempt));
  if (coupon === null) return { outcome: 'opened' };
  const why = await reserveCoupon(tx, { orderId, key }, coupon);
  if (why !== 'reserved') {
    await tx.rollback();
    return { outcome: 'coupon_refused', why };
  }
  if (amountCents > 0) return { outcome: 'opened' };
  await payFree(tx, { orderId, key }, coupon);
  return { outcome: 'paid' };
}

/** Pays an order whose whole amount is covered by its coupon, and closes the attempt. */
async function payFree(tx: Transaction, { orderId, key }: AttemptName, { discountCents }: CouponUse): Promise<void> {
  const order = (await lockOrder(tx, orderId))?.order;
  assert(order !== undefined && Number(order.amount_cents) === discountCents, `order ${orderId} costs the discount`);
  const payment = { payment_id: freePaymentId(orderId), order_id: orderId, sale_id: order.sale_id, amount_cents: '0' };
  await execute(tx, knex('payments').insert(payment));
  await moveOrders(tx, [order], 'paid', discountCents);
  await execute(tx, knex('payment_attempts').where({ order_id: orderId, key }).update({ state: 'charged' }));
}

/** A key that was charged before may be charged again to learn its result, because the provider takes no other card. */
async function isBeyond(
  tx: Transaction,
  { orderId, key }: AttemptName,
  userId: string,
  { perOrder, perBuyerHour }: DeclineBound,
): Promise<boolean> {
  const ofOrder = await select(tx, knex('payment_attempts').select('key', 'state').where({ order_id: orderId }));
  if (ofOrder.some((row) => row.key === key)) return false;
  if (ofOrder.filter(({ state }) => state === 'declined').length >= perOrder) return true;
  const ofBuyer = knex
    .from('orders as o')
    .join('payment_attempts as a', 'a.order_id', 'o.id')
    .where({ 'o.user_id': userId, 'a.state': 'declined' })
    .where('a.opened_at', '>', msAgo(HOUR_MS))
    .select('a.key')
    .limit(perBuyerHour);
  return (await select(tx, ofBuyer)).length >= perBuyerHour;
}

async function keep(tx: Statements, { orderId, key }: AttemptName, leaseMs: number): Promise<void> {
  const changes = { version: knex.raw('version + 1'), available_at: inMs(leaseMs) };
  await execute(tx, knex('payment_attempts').where({ order_id: orderId, key }).update(changes));
}
