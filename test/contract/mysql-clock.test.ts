import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { composeOrderId } from '../../src/core/order-id.js';
import { createCompensationRepository } from '../../src/mysql/compensation-repository.js';
import { createDueWork } from '../../src/mysql/due-work.js';
import { createJobLeases } from '../../src/mysql/job-leases.js';
import { createOrderRefunds } from '../../src/mysql/order-refunds.js';
import { createOrderRepository } from '../../src/mysql/order-repository.js';
import { createOrderTransitions } from '../../src/mysql/order-transitions.js';
import { createOutbox } from '../../src/mysql/outbox.js';
import { createOverdueRepository } from '../../src/mysql/overdue-repository.js';
import { createPaymentAttempts } from '../../src/mysql/payment-attempts.js';
import type { MysqlPool, Statements, Transaction } from '../../src/mysql/pool.js';
import { readMysqlClock } from '../../src/mysql/read-facts.js';
import { createReconcileRuns } from '../../src/operate/reconcile/reconcile-runs.js';
import { createRefundRepository } from '../../src/mysql/refund-repository.js';
import { createDeliveryStore } from '../../src/operate/webhooks/delivery-store.js';
import { createEndpointStore } from '../../src/operate/webhooks/endpoint-store.js';
import { createWorkerSlots } from '../../src/mysql/worker-slots.js';
import { ClockWatch } from '../../src/orders/clock-watch.js';
import { expireBySweep } from '../../src/orders/expire-orders.js';
import { batchOf, purchasesOf } from '../helpers/sales.js';
import { silentLog } from '../helpers/silent-log.js';
import { newSale, ownMysqlWorld, systemClock } from './repository-worlds.js';
import { useWorld } from './on-each-world.js';
import { partial } from '../helpers/partial.js';
import type { OrderJobMetrics } from '../../src/orders/metrics.js';

const MINUTE = 60_000;
const WINDOW_MS = 15 * MINUTE;

/** Returns the same MySQL with its clock moved by this time. `SET timestamp` would stop the clock. */
function withClock(pool: MysqlPool, aheadMs: number): MysqlPool {
  const shifted = (sql: string): string =>
    sql.replaceAll(/(UTC_TIMESTAMP|NOW)\(3\)/g, (now) => `(${now} + INTERVAL ${aheadMs * 1000} MICROSECOND)`);
  const on = <S extends Statements>(to: S): S => ({
    ...to,
    query: <Row>(sql: string, values?: Parameters<Statements['query']>[1]) => to.query<Row>(shifted(sql), values),
    execute: (sql: string, values?: Parameters<Statements['execute']>[1]) => to.execute(shifted(sql), values),
  });
  return {
    ...on(pool),
    transaction: <T>(work: (tx: Transaction) => Promise<T>) => pool.transaction((tx) => work(on(tx))),
    probe: () => pool.probe(),
    writeRefusal: () => pool.writeRefusal(),
    close: () => pool.close(),
  };
}

/** Own database, because a sweep expires every due order and a lease takes every free row. */
describe('contract: wrong MySQL clock, on real MySQL statements', () => {
  const world = useWorld(() => ownMysqlWorld(4));

  const transitionsOn = (pool: MysqlPool) => createOrderTransitions(pool, { clock: systemClock, log: silentLog });
  const stateOf = async (orderId: string): Promise<string | undefined> =>
    (await world.orders.findOrder(orderId))?.state;
  /** Writes an unpaid order as a worker with a correct clock does. */
  async function orderOn(pool: MysqlPool, paymentWindowMs = WINDOW_MS): Promise<string> {
    const { saleId } = await world.sales.create(newSale({ stock: 10 }));
    const batch = batchOf({ saleId }, purchasesOf(`u${randomBytes(6).toString('hex')}`));
    const orders = batch.purchases.map((purchase) => {
      const orderId = composeOrderId(Date.now(), 3, purchase.userId, Math.floor(Math.random() * 256));
      return { orderId, batch, purchase, failure: null };
    });
    const repository = createOrderRepository(pool);
    const terms = await repository.termsOf([saleId]);
    const plan = { terms, orders, releases: [], oneByOne: new Set<string>(), paymentWindowMs };
    expect((await repository.write(plan)).outcome).to.equal('written');
    return (orders[0] as (typeof orders)[number]).orderId;
  }

  it('ends no order before its deadline, however wrong the clock of MySQL is or was [D10]', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: -50 * MINUTE, max: 3 * 24 * 60 * MINUTE }),
        fc.integer({ min: -50 * MINUTE, max: 3 * 24 * 60 * MINUTE }),
        async (writtenAheadMs, sweptAheadMs) => {
          const orderId = await orderOn(withClock(world.pool, writtenAheadMs));
          const transitions = transitionsOn(withClock(world.pool, sweptAheadMs));
          await transitions.expireDue(100);
          await transitions.expire([orderId]);
          expect(await stateOf(orderId)).to.equal('pending_payment');
        },
      ),
      { numRuns: 25 },
    );
  });

  it('expires nothing while MySQL is ahead, and due orders once the clock is right [D10]', async () => {
    const due = await orderOn(world.pool, -MINUTE);
    const sweepOn = (pool: MysqlPool) => {
      const servers = { mysql: () => readMysqlClock(pool), redis: () => [] };
      const metrics: OrderJobMetrics = partial({ clockAhead: () => undefined, expired: () => undefined });
      const clocks = new ClockWatch({ servers, clock: systemClock, metrics });
      return expireBySweep({ transitions: transitionsOn(pool), clocks, metrics }, { max: 10 }).runOnce();
    };
    for (const aheadMs of [20 * MINUTE, -20 * MINUTE]) {
      const said = await sweepOn(withClock(world.pool, aheadMs)).catch((error: Error) => error.message);
      expect(said).to.match(/^the clock of MySQL is 1\d{6} ms (ahead of|behind) the clock of this machine/);
      expect(await stateOf(due)).to.equal('pending_payment');
    }
    await sweepOn(world.pool);
    expect(await stateOf(due)).to.equal('expired');
  });

  describe('leases and pauses written before the clock was set back [D10]', () => {
    const LEASE_MS = 60_000;
    /** Longer than any lease or pause. */
    const JUMP_MS = 3 * 24 * 60 * MINUTE;
    /** Takes a free row, each time as a new owner. @returns whether a row was free */
    type Take = (pool: MysqlPool, owner: string) => Promise<boolean>;
    const deliveryTo = (endpointId: number): string =>
      `INSERT INTO webhook_deliveries (endpoint_id, order_id, sequence, type, sale_id, happened_at)
        VALUES (${endpointId}, 1, 1, 'order.paid', 999999, UTC_TIMESTAMP(3))`;
    const TAKES: Record<string, { readonly insert?: string | readonly string[]; readonly take: Take }> = {
      outbox: {
        insert: "INSERT INTO outbox (kind, `key`, payload) VALUES ('release', 'k', '[]')",
        take: async (pool) => (await createOutbox(pool).lease('release', 10, LEASE_MS)).length > 0,
      },
      refunds: {
        insert: "INSERT INTO refunds (payment_id, order_id, amount_cents, reason) VALUES ('p', 1, 5, 'already_paid')",
        take: async (pool) => (await createRefundRepository(pool).lease(10, LEASE_MS)).length > 0,
      },
      order_refunds: {
        insert:
          "INSERT INTO order_refunds (order_id, payment_id, `key`, amount_cents, restock, reason, actor) VALUES (1, 'p', 'k', 5, 0, '', 'a')",
        take: async (pool) => (await createOrderRefunds(pool, { clock: systemClock }).lease(10, LEASE_MS)).length > 0,
      },
      payment_attempts: {
        insert: "INSERT INTO payment_attempts (order_id, `key`, amount_cents) VALUES (1, 'k', 5)",
        take: async (pool) =>
          (await createPaymentAttempts(pool, { clock: systemClock }).lease(10, LEASE_MS)).length > 0,
      },
      compensation_jobs: {
        insert: "INSERT INTO compensation_jobs (kind, subject, sale_id, detail) VALUES ('leak', '1/u/k', 1, '')",
        take: async (pool) =>
          (await createCompensationRepository(pool).claim({ max: 10, leaseMs: LEASE_MS })).length > 0,
      },
      reconcile_leases: {
        take: async (pool, owner) =>
          (await createReconcileRuns(pool, systemClock).lease('1', owner, LEASE_MS)).outcome === 'held',
      },
      job_leases: { take: (pool, owner) => createJobLeases(pool).hold('a job', owner, LEASE_MS) },
      worker_slots: {
        insert: 'DELETE FROM worker_slots WHERE slot > 0',
        take: (pool, owner) =>
          createWorkerSlots(pool)
            .acquire(owner, LEASE_MS)
            .then(
              ({ restedSinceMs, nowMs }) => restedSinceMs <= nowMs,
              () => false,
            ),
      },
      webhook_endpoints: {
        insert: [
          "INSERT INTO webhook_endpoints (id, url, secret, events) VALUES (1, 'https://a.example', 's', 'order.paid')",
          deliveryTo(1),
        ],
        take: async (pool) => {
          const [endpointId] = await createDeliveryStore(pool).endpointsDue();
          if (endpointId !== undefined) await createEndpointStore(pool).noteTrouble(endpointId, '', LEASE_MS);
          return endpointId !== undefined;
        },
      },
      webhook_deliveries: {
        insert: deliveryTo(2),
        take: async (pool) => {
          const { orders } = await createDeliveryStore(pool).due('2', 10);
          for (const [first] of orders) await createDeliveryStore(pool).postpone('2', first, LEASE_MS, '');
          return orders.length > 0;
        },
      },
    };

    it('exist in no other table', async () => {
      const tables = await world.pool.query<{ name: string }>(
        `SELECT DISTINCT table_name AS name FROM information_schema.columns
          WHERE table_schema = DATABASE() AND column_name IN ('available_at', 'leased_until')`,
      );
      expect(tables.map(({ name }) => name)).to.have.members(Object.keys(TAKES));
    });

    for (const [table, { insert = [], take }] of Object.entries(TAKES)) {
      it(`frees ${table} after a jump of the clock, but keeps its owner while the clock is right`, async () => {
        for (const sql of [insert].flat()) await world.pool.execute(sql);
        expect(await take(withClock(world.pool, JUMP_MS), 'first'), 'under a clock that is ahead').to.equal(true);
        expect(await take(world.pool, 'second'), 'after it was set back').to.equal(true);
        expect(await take(world.pool, 'third'), 'the lease of the second').to.equal(false);
      });
    }

    it('are reported to the keeper as due', async () => {
      const later = 'UTC_TIMESTAMP(3) + INTERVAL 2 HOUR';
      await world.pool.execute(`UPDATE outbox SET available_at = ${later} WHERE kind = 'release'`);
      for (const table of ['refunds', 'order_refunds', 'payment_attempts', 'compensation_jobs'])
        await world.pool.execute(`UPDATE ${table} SET available_at = ${later}`);
      const due = await createDueWork(world.pool)();
      expect([...due]).to.include.members(['release', 'refund', 'order_refund', 'payment', 'compensation']);
    });

    it('counts rows dated in the future as overdue, because their age is unknown [D10]', async () => {
      const overdue = createOverdueRepository(withClock(world.pool, -60 * MINUTE));
      const counted = await overdue.overdue({ outbox: 60_000, refund: 60_000, payment_open: 60_000 });
      for (const [state, { count }] of Object.entries(counted)) expect(count, state).to.be.at.least(1);
      expect((await createOverdueRepository(world.pool).overdue({ refund: 60_000 })).refund.count).to.equal(0);
    });
  });
});
