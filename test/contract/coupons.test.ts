import { expect } from 'chai';
import { COUPON_CODE } from '../../src/core/coupon.js';
import { OperationalError } from '../../src/core/errors.js';
import type { Order } from '../../src/core/order.js';
import type { PaymentProvider } from '../../src/core/ports/payment-provider.js';
import { createCoupons } from '../../src/mysql/coupon-codes.js';
import { createCouponRepository } from '../../src/mysql/coupon-repository.js';
import { createOrderRefunds } from '../../src/mysql/order-refunds.js';
import { createOrderRepository } from '../../src/mysql/order-repository.js';
import { createOrderTransitions } from '../../src/mysql/order-transitions.js';
import { createPaymentAttempts } from '../../src/mysql/payment-attempts.js';
import { openMysqlPool, type MysqlPool, type Transaction } from '../../src/mysql/pool.js';
import { createCouponDesk } from '../../src/operate/coupons/coupon-desk.js';
import { payOrder, type PayAnswer } from '../../src/orders/buyer-orders.js';
import { resolveAttempt } from '../../src/orders/resolve-payments.js';
import { partial } from '../helpers/partial.js';
import { mysqlIn } from '../helpers/servers.js';
import { silentLog } from '../helpers/silent-log.js';
import { stackEnv } from '../helpers/stack-env.js';
import { DUE_MS, mysqlMoves, ordersIn } from './order-transitions-worlds.js';
import { useWorld } from './on-each-world.js';
import { systemClock as clock } from './repository-worlds.js';

const PRICE = 1000;
const TERMS = '300 30d';

/** A provider that remembers its charges. Keys that begin with `decline` or `lost` are declined, or lose an answer. */
class Till {
  readonly charges = new Map<string, number | 'declined'>();
  readonly #lost = new Set<string>();

  readonly provider: PaymentProvider = partial<PaymentProvider>({
    needsMethod: false,
    charge: async (orderId, { amountCents }, key) => {
      const name = `${orderId}-${key}`;
      const charged = this.charges.get(name) ?? (key.startsWith('decline') ? 'declined' : amountCents);
      this.charges.set(name, charged);
      if (key.startsWith('lost') && !this.#lost.has(name)) {
        this.#lost.add(name);
        return { outcome: 'unknown' };
      }
      return this.#answer(name, charged);
    },
    lookUp: async (orderId, _price, key) => {
      const name = `${orderId}-${key}`;
      const charged = this.charges.get(name) ?? 'declined'; // its call never arrived, and never will
      this.charges.set(name, charged);
      return this.#answer(name, charged);
    },
  });

  #answer(paymentId: string, charged: number | 'declined') {
    return charged === 'declined'
      ? ({ outcome: 'declined' } as const)
      : ({ outcome: 'succeeded', payment: { paymentId, amountCents: charged, currency: 'EUR' } } as const);
  }
}

describe('contract coupons on MySQL', () => {
  const world = useWorld(mysqlMoves);
  let killer: MysqlPool;
  before(() => {
    killer = openMysqlPool({ ...mysqlIn(stackEnv()), poolMax: 1, queryTimeoutMs: 5000 });
  });
  after(() => killer?.close());
  let till: Till;
  beforeEach(() => {
    till = new Till();
  });

  const on = (pool: MysqlPool) => ({
    repository: createOrderRepository(pool),
    transitions: createOrderTransitions(pool, { clock, log: silentLog }),
    attempts: createPaymentAttempts(pool, { clock }),
    refunds: world.refunds,
    coupons: createCoupons(pool),
    provider: till.provider,
    clock: { ...clock, sleep: () => clock.sleep(1) }, // a request need not wait long for the charge of another key
    log: silentLog,
  });
  const pay = (
    { orderId, userId }: Order,
    key: string | null,
    coupon?: string,
    { pool = world.pool, ...ports }: { readonly pool?: MysqlPool; readonly provider?: null } = {},
  ): Promise<PayAnswer> =>
    payOrder(
      { orderId, userId, key, method: null, ...(coupon === undefined ? {} : { coupon }) },
      { ...on(pool), ...ports },
    );
  const find = async (code: string) => (await createCoupons(world.pool).find(code)) ?? expect.fail('no such coupon');
  const shown = async ({ orderId }: Order) => world.orders.findOrder(orderId);
  const desk = () => createCouponDesk(world.pool);
  const orders = async (count: number, parts: Parameters<typeof ordersIn>[2] = {}): Promise<Order[]> => {
    const texts = Array.from({ length: count }, (_, index) => `ann/k${index}`);
    const sale = { priceCents: PRICE, limitPerBuyer: 1000, ...parts.sale };
    return (await ordersIn(world, texts, { ...parts, sale })).orders;
  };
  /** Coupons of ann, each brought by a paid order. */
  async function coupons(count: number, terms = TERMS): Promise<string[]> {
    const brought = await orders(count, { sale: { coupon: terms } });
    for (const order of brought) expect((await pay(order, null)).outcome).to.equal('paid');
    const ids = brought.map(({ orderId }) => orderId);
    await createCouponRepository(world.pool).issue(ids);
    const found = await createCoupons(world.pool).list({ saleId: brought[0]?.saleId ?? '' }, { max: count });
    return found.map(({ code }) => code);
  }
  const one = async (terms?: string): Promise<{ readonly code: string; readonly order: Order }> => {
    const [[code], [order]] = [await coupons(1, terms), await orders(1)];
    return { code: code as string, order: order as Order };
  };
  /** A keeper asks the provider about each open charge. */
  async function resolve(): Promise<void> {
    const sql = "SELECT CAST(order_id AS CHAR) AS id FROM payment_attempts WHERE state = 'open'";
    for (const { id } of await world.pool.query<{ id: string }>(sql)) {
      for (const attempt of await world.attempts.openOf(id)) await resolveAttempt(attempt, on(world.pool), true);
    }
  }

  /**
   * Each coupon is free, reserved by the one open charge of an unpaid order, or redeemed by one order, whose amount is
   * the reduced price and whose payment is that amount.
   */
  async function checkBooks(what = ''): Promise<void> {
    const broken = await world.pool.query(
      `SELECT c.code, c.state, o.state AS order_state, o.after_paid, o.amount_cents, c.discount_cents
         FROM coupon_codes AS c LEFT JOIN orders AS o ON o.id = c.used_order LEFT JOIN sales AS s ON s.id = o.sale_id
        WHERE COALESCE(CASE c.state
          WHEN 'free' THEN c.used_order IS NULL AND c.used_key IS NULL AND c.discount_cents IS NULL
          WHEN 'reserved' THEN o.state = 'pending_payment' AND o.amount_cents = s.price_cents * o.quantity
            AND (SELECT COUNT(*) FROM payment_attempts AS a WHERE a.order_id = o.id AND a.state = 'open') = 1
            AND EXISTS (SELECT 1 FROM payment_attempts AS a WHERE a.order_id = o.id AND a.state = 'open'
              AND a.\`key\` = c.used_key AND a.amount_cents = o.amount_cents - c.discount_cents)
          ELSE c.used_order IS NULL AND c.used_key IS NOT NULL OR o.state = 'paid'
            AND o.amount_cents + c.discount_cents = s.price_cents * o.quantity END, FALSE) = FALSE`,
    );
    expect(broken, `coupons ${what}`).to.deep.equal([]);
    const twice = 'SELECT used_order FROM coupon_codes WHERE used_order > 0 GROUP BY used_order HAVING COUNT(*) > 1';
    expect(await world.pool.query(twice), `orders with two coupons ${what}`).to.deep.equal([]);
    const unpaid = await world.pool.query(
      `SELECT o.id, o.amount_cents FROM orders AS o WHERE o.state = 'paid' AND o.amount_cents <>
         (SELECT SUM(p.amount_cents) FROM payments AS p LEFT JOIN refunds AS r ON r.payment_id = p.payment_id
           WHERE p.order_id = o.id AND r.payment_id IS NULL)`,
    );
    expect(unpaid, `paid orders without their money ${what}`).to.deep.equal([]);
  }

  it('issues one code per paid order by the terms of its sale at that time, however often the event arrives', async () => {
    const brought = await orders(3, { sale: { coupon: '10% 30d min 2000' } });
    const ids = brought.map(({ orderId }) => orderId);
    await pay(brought[0] as Order, null);
    await pay(brought[1] as Order, null);
    const keepers = Array.from({ length: 4 }, () => createCouponRepository(world.pool));
    const issued = await Promise.all(keepers.map((keeper) => keeper.issue(ids)));
    expect(issued.reduce((sum, { issued: count }) => sum + count, 0)).to.equal(2);
    const { saleId } = brought[0] as Order;
    await world.pool.execute("UPDATE sales SET coupon = '500 1d' WHERE id = ?", [saleId]);
    await pay(brought[2] as Order, null);
    await createCouponRepository(world.pool).issue(ids);
    const store = createCoupons(world.pool);
    const found = await store.list({ saleId, userId: 'ann' }, { max: 10 });
    const byOrder = new Map(found.map((coupon) => [coupon.orderId, coupon]));
    expect(found.map(({ percent, valueCents }) => percent ?? valueCents).sort()).to.deep.equal([10, 10, 500]);
    const first = byOrder.get(ids[0] ?? '');
    expect(first?.code).to.match(COUPON_CODE);
    expect(first).to.include({ state: 'free', currency: 'EUR', minCents: 2000, percent: 10, usedOrderId: null });
    expect((first?.expiresAtMs ?? 0) - (first?.createdAtMs ?? 0)).to.be.within(30 * 86_399_000, 30 * 86_401_000);
    const [newest, ...older] = found;
    expect(await store.list({ saleId }, { max: 10, afterOrderId: newest?.orderId ?? '' })).to.deep.equal(older);
    expect(await store.list({ orderId: ids[0] ?? '' }, { max: 10 })).to.deep.equal([first]);
    await world.pool.execute('UPDATE coupon_codes SET expires_at = UTC_TIMESTAMP(3) WHERE order_id = ?', [
      ids[0] ?? '',
    ]);
    expect((await store.list({ saleId, state: 'expired' }, { max: 10 })).map(({ orderId }) => orderId)).to.deep.equal([
      ids[0],
    ]);
    expect(await store.list({ saleId, state: 'free' }, { max: 10 })).to.have.length(2);
  });

  it('issues no code for a sale without terms', async () => {
    const [order] = (await orders(1)) as [Order];
    await pay(order, null);
    expect(await createCouponRepository(world.pool).issue([order.orderId])).to.deep.equal({ issued: 1, unpaid: [] });
    expect(await createCoupons(world.pool).list({ saleId: order.saleId }, { max: 10 })).to.deep.equal([]);
  });

  it('lets the shop redeem a coupon once: the same reference repeats its answer, and any other is refused', async () => {
    const [code] = (await coupons(1)) as [string];
    const references = Array.from({ length: 10 }, (_, index) => `shop-${index % 5}`);
    const answers = await Promise.all(references.map((reference) => desk().redeem(code, reference, 'olga')));
    const winner = (await find(code)).reference;
    for (const [index, answer] of answers.entries()) {
      if (references[index] === winner) expect(answer).to.deep.equal({ outcome: 'redeemed', coupon: await find(code) });
      else expect(answer).to.deep.equal({ outcome: 'refused', why: 'redeemed' });
    }
    const audit = await world.auditOf(`coupon:${code}`);
    expect(audit.map(({ actor, action }) => [actor, action])).to.deep.equal([['olga', 'coupon.redeemed']]);
    expect(await desk().redeem('2222222222', 'x', 'olga')).to.deep.equal({ outcome: 'refused', why: 'not_found' });
    const [old] = (await coupons(1)) as [string];
    await world.pool.execute('UPDATE coupon_codes SET expires_at = UTC_TIMESTAMP(3) WHERE code = ?', [old]);
    expect(await desk().redeem(old, 'x', 'olga')).to.deep.equal({ outcome: 'refused', why: 'expired' });
    await checkBooks();
  });

  it('charges the reduced amount, and a refund gives back what was paid and frees the coupon', async () => {
    const { code, order } = await one();
    expect(await pay(order, 'k', code)).to.deep.include({ outcome: 'paid' });
    expect(till.charges.get(`${order.orderId}-k`)).to.equal(PRICE - 300);
    expect(await shown(order)).to.include({ state: 'paid', amountCents: PRICE - 300 });
    expect(await find(code)).to.include({ state: 'redeemed', usedOrderId: order.orderId, discountCents: 300 });
    expect((await pay(order, 'k', code)).outcome, 'again').to.equal('paid');
    const [, other] = (await orders(2)) as [Order, Order];
    expect(await pay(other, 'k', code)).to.deep.equal({ outcome: 'coupon_refused', why: 'redeemed' });
    await checkBooks();

    const refunds = createOrderRefunds(world.pool, { clock });
    const back = async (wish: { amountCents?: number; key?: string }): Promise<void> => {
      await refunds.order(order.orderId, { restock: false, reason: 'late', ...wish }, 'olga');
      const due = (await refunds.refundsOf(order.orderId)).find(({ state }) => state === 'due');
      await refunds.settle(due?.refundId ?? '');
    };
    const tooMuch = { restock: false, reason: 'late', amountCents: PRICE - 299, key: 'a' };
    expect(await refunds.order(order.orderId, tooMuch, 'olga')).to.deep.equal({ outcome: 'too_much', leftCents: 700 });
    await back({ amountCents: 100, key: 'part' });
    expect((await find(code)).state, 'after a refund of a part').to.equal('redeemed');
    await back({});
    expect(await shown(order)).to.include({ state: 'refunded', refundedCents: PRICE - 300 });
    expect(await find(code)).to.include({ state: 'free', usedOrderId: null });
    expect((await pay(other, 'k2', code)).outcome).to.equal('paid');
    await checkBooks();
  });

  it('ends the coupon that an order brought when its money goes back in whole', async () => {
    const [order] = (await orders(1, { sale: { coupon: TERMS } })) as [Order];
    await pay(order, null);
    await createCouponRepository(world.pool).issue([order.orderId]);
    const [brought] = await createCoupons(world.pool).list({ orderId: order.orderId }, { max: 1 });
    expect(brought?.state).to.equal('free');
    const refunds = createOrderRefunds(world.pool, { clock });
    await refunds.order(order.orderId, { restock: false, reason: 'late' }, 'olga');
    for (const { refundId } of await refunds.refundsOf(order.orderId)) await refunds.settle(refundId);
    expect((await find(brought?.code ?? '')).state).to.equal('expired');
  });

  it('gives back a payment of any other amount than the reserved coupon leaves', async () => {
    const { code, order } = await one();
    expect((await pay(order, 'lost-1', code)).outcome).to.equal('outcome_unknown');
    for (const amountCents of [1, PRICE - 301, PRICE - 299]) {
      const payment = { paymentId: `other-${order.orderId}-${amountCents}`, amountCents, currency: 'EUR' };
      expect(await world.transitions.pay(order.orderId, payment), `${amountCents}`).to.equal('refund_due');
      expect((await find(code)).state).to.equal('reserved');
    }
  });

  it('frees a coupon that a closed charge still holds, as a program of an earlier release leaves it', async () => {
    const { code, order } = await one();
    expect((await pay(order, 'lost-1', code)).outcome).to.equal('outcome_unknown');
    await world.pool.execute("UPDATE payment_attempts SET state = 'declined' WHERE order_id = ?", [order.orderId]);
    expect((await pay(order, 'k2', code)).outcome).to.equal('paid');
    expect(await find(code)).to.include({ state: 'redeemed', usedOrderId: order.orderId });
    await checkBooks();
  });

  it('pays an order that the coupon covers in whole without the provider, also where no provider is set', async () => {
    const { code, order } = await one('5000 30d');
    expect((await pay(order, null, code, { provider: null })).outcome).to.equal('paid');
    expect(await shown(order)).to.include({ state: 'paid', amountCents: 0 });
    expect(till.charges.has(`${order.orderId}-coupon-${code}`)).to.equal(false);
    expect(await find(code)).to.include({ state: 'redeemed', discountCents: PRICE });
    expect(await world.attempts.openOf(order.orderId)).to.deep.equal([]);
    await checkBooks();
  });

  it('frees the coupon when the charge is declined, and keeps it for the one key while the outcome is unknown', async () => {
    const { code, order } = await one();
    const [other] = (await orders(1)) as [Order];
    expect((await pay(order, 'decline-1', code)).outcome).to.equal('declined');
    expect((await find(code)).state).to.equal('free');
    expect(await pay(order, 'decline-1')).to.deep.equal({ outcome: 'coupon_refused', why: 'other_key' });
    expect((await pay(order, 'lost-2', code)).outcome).to.equal('outcome_unknown');
    expect((await find(code)).state).to.equal('reserved');
    expect(await pay(other, 'k', code)).to.deep.equal({ outcome: 'coupon_refused', why: 'in_use' });
    expect(await desk().redeem(code, 'shop-1', 'olga')).to.deep.equal({ outcome: 'refused', why: 'in_use' });
    const [second] = (await coupons(1)) as [string];
    expect(await pay(order, 'lost-2', second), 'a charge has one coupon').to.include({ why: 'other_key' });
    expect(await pay(order, 'lost-2')).to.include({ why: 'other_key' });
    await checkBooks();
    expect((await pay(order, 'lost-2', code)).outcome).to.equal('paid');
    expect(till.charges.get(`${order.orderId}-lost-2`)).to.equal(PRICE - 300);
    expect(await find(second)).to.include({ state: 'free' });
    await checkBooks();
  });

  it('frees the coupon when the order ends during the charge, and owes the reduced money back', async () => {
    for (const end of ['cancel', 'expire'] as const) {
      const [code] = (await coupons(1)) as [string];
      const [order] = (await orders(1, { paymentWindowMs: end === 'expire' ? DUE_MS : 900_000 })) as [Order];
      expect((await pay(order, 'lost', code)).outcome, end).to.equal('outcome_unknown');
      if (end === 'cancel') await world.transitions.cancel(order.orderId);
      else await world.transitions.expire([order.orderId]);
      expect((await find(code)).state, end).to.equal('free');
      const [other] = (await orders(1)) as [Order];
      expect((await pay(other, 'k', code)).outcome, end).to.equal('paid');
      await resolve();
      const owed = (await world.payments()).find(({ orderId }) => orderId === order.orderId);
      expect(owed, end).to.include({
        amountCents: PRICE - 300,
        refund: `order_${end}${end === 'cancel' ? 'led' : 'd'}`,
      });
      expect(await find(code), end).to.include({ state: 'redeemed', usedOrderId: other.orderId });
      await checkBooks(end);
    }
  });

  it('pays the order in full, and frees the coupon, when the full amount arrives while it is reserved', async () => {
    const { code, order } = await one();
    await pay(order, 'lost', code);
    const full = { paymentId: `full-${order.orderId}`, amountCents: PRICE };
    expect(await world.transitions.pay(order.orderId, full)).to.equal('paid');
    expect(await find(code)).to.include({ state: 'free' });
    expect(await shown(order)).to.include({ amountCents: PRICE });
    await resolve();
    await checkBooks();
  });

  /** `tx`: absent for the answer to the COMMIT. */
  type Step = <T>(run: () => Promise<T>, tx?: Transaction) => Promise<T>;

  /** The pool, with each statement of its transactions, and the answer to each COMMIT, as a step. */
  function withSteps(step: Step): MysqlPool {
    const { pool } = world;
    return {
      probe: () => pool.probe(),
      writeRefusal: () => null,
      close: async () => undefined,
      query: (...args) => pool.query(...args),
      execute: (...args) => pool.execute(...args),
      async transaction(work) {
        const value = await pool.transaction((tx) =>
          work({
            query: (...args) => step(() => tx.query(...args), tx),
            execute: (...args) => step(() => tx.execute(...args), tx),
            rollback: () => tx.rollback(),
          }),
        );
        return step(async () => value);
      },
    };
  }

  /** Runs a step on a pool that dies at each of its statements in turn, and after the commit, until it lives through. */
  async function diesAnywhere(
    what: string,
    prepare: () => Promise<(pool: MysqlPool) => Promise<unknown>>,
    done: () => Promise<unknown>,
  ): Promise<number> {
    for (let statements = 0; ; statements++) {
      let left = statements;
      const step = async <T>(run: () => Promise<T>): Promise<T> => {
        if (left-- <= 0) throw new OperationalError('mysql', 'killed by the test', { retryable: true });
        return run();
      };
      const run = await prepare();
      await run(withSteps(step)).catch((error: unknown) => expect(error).to.be.instanceOf(OperationalError));
      const isAlive = left >= 0;
      await checkBooks(`${what}, killed at statement ${statements}`);
      await run(world.pool); // a retry
      await resolve();
      await checkBooks(`${what}, killed at statement ${statements} and repeated`);
      await done();
      if (isAlive) return statements;
    }
  }

  it('keeps the books after a kill between any two statements of a payment, its end and its refund', async () => {
    let [code, order] = ['', undefined as unknown as Order];
    const prepared =
      (run: (pool: MysqlPool) => Promise<unknown>, key?: string, due = false, terms = TERMS) =>
      async () => {
        [[code], [order]] = [
          (await coupons(1, terms)) as [string],
          (await orders(1, due ? { paymentWindowMs: DUE_MS } : {})) as [Order],
        ];
        if (key !== undefined) await pay(order, key, code);
        return run;
      };
    const expectState = (state: string) => async () => expect((await find(code)).state).to.equal(state);
    const kills = {
      pay: await diesAnywhere(
        'pay',
        prepared((pool) => pay(order, 'k', code, { pool })),
        expectState('redeemed'),
      ),
      free: await diesAnywhere(
        'free',
        prepared((pool) => pay(order, 'k', code, { pool }), undefined, false, '5000 30d'),
        expectState('redeemed'),
      ),
      decline: await diesAnywhere(
        'decline',
        prepared((pool) => pay(order, 'decline', code, { pool })),
        expectState('free'),
      ),
      cancel: await diesAnywhere(
        'cancel',
        prepared((pool) => on(pool).transitions.cancel(order.orderId), 'lost'),
        expectState('free'),
      ),
      expire: await diesAnywhere(
        'expire',
        prepared((pool) => on(pool).transitions.expire([order.orderId]), 'lost', true),
        expectState('free'),
      ),
      refund: await diesAnywhere(
        'refund',
        prepared(async (pool) => {
          const refunds = createOrderRefunds(pool, { clock });
          await refunds.order(order.orderId, { restock: true, reason: 'late' }, 'olga');
          for (const { refundId } of await refunds.refundsOf(order.orderId)) await refunds.settle(refundId);
        }, 'k'),
        expectState('free'),
      ),
      redeem: await diesAnywhere(
        'redeem',
        prepared((pool) => createCouponDesk(pool).redeem(code, 'shop-1', 'olga')),
        expectState('redeemed'),
      ),
    };
    for (const [what, statements] of Object.entries(kills)) expect(statements, what).to.be.at.least(4);
  });

  it('keeps the books when two programs act on one coupon or one order at once', async () => {
    const refunds = createOrderRefunds(world.pool, { clock });
    const movers: Record<string, (order: Order, other: Order, code: string) => Promise<unknown>> = {
      pay: (order, _, code) => pay(order, 'k', code),
      otherKey: (order, _, code) => pay(order, 'k2', code),
      lost: (order, _, code) => pay(order, 'lost', code),
      decline: (order, _, code) => pay(order, 'decline', code),
      plain: (order) => pay(order, 'plain'),
      other: (_, other, code) => pay(other, 'k', code),
      desk: (_, __, code) => desk().redeem(code, 'shop-1', 'olga'),
      cancel: ({ orderId }) => world.transitions.cancel(orderId),
      expire: ({ orderId }) => world.transitions.expire([orderId]),
      resolve,
      refund: async ({ orderId }) => {
        await refunds.order(orderId, { restock: true, reason: 'late' }, 'olga');
        for (const { refundId } of await refunds.refundsOf(orderId)) await refunds.settle(refundId);
      },
    };
    const names = Object.keys(movers);
    for (const before of [[], ['lost'], ['pay']]) {
      for (const [index, first] of names.entries()) {
        for (const second of names.slice(index)) {
          const [[code], [order, other]] = [
            (await coupons(1)) as [string],
            (await orders(2, { paymentWindowMs: DUE_MS })) as [Order, Order],
          ];
          for (const name of before) await movers[name]?.(order, other, code);
          await Promise.all([first, second].map((name) => movers[name]?.(order, other, code)));
          await checkBooks(`after ${before.join()}, ${first} and ${second}`);
          await resolve();
          await checkBooks(`after ${before.join()}, ${first} and ${second}, resolved`);
        }
      }
    }
  });

  it('redeems none of 20 coupons twice, and loses none, when 40 orders race for them and connections are killed', async () => {
    const COUPONS = 20;
    const codes = await coupons(COUPONS);
    const racing = await orders(2 * COUPONS);
    let killed = 0;
    const pool = withSteps(async (run, tx) => {
      if (tx !== undefined && Math.random() < 0.03) {
        const [own] = await tx.query<{ id: string }>('SELECT CAST(CONNECTION_ID() AS CHAR) AS id');
        await killer.execute(`KILL ${own?.id}`);
        killed++;
      }
      return run();
    });
    const buyer = async (order: Order, index: number): Promise<void> => {
      for (let tries = 0; tries < 12; tries++) {
        const key = ['k', 'lost', 'decline'][(index + tries) % 3] as string;
        const code = codes[(index + tries) % COUPONS] as string;
        const answer = await pay(order, `${key}-${tries}`, code, { pool }).catch((error: unknown) => {
          expect(error).to.be.instanceOf(OperationalError);
          return null;
        });
        if (answer?.outcome === 'paid') return;
        if (index % 10 === 9 && tries === 2) await world.transitions.cancel(order.orderId).catch(() => null);
      }
    };
    await Promise.all(racing.map(buyer));
    expect(killed, 'killed connections').to.be.at.least(5);
    await checkBooks('while charges are open');
    await resolve();
    await checkBooks('at the end');
    const found = await Promise.all(codes.map(find));
    const used = found.filter(({ state }) => state === 'redeemed');
    expect(found.every(({ state }) => state === 'free' || state === 'redeemed')).to.equal(true);
    expect(new Set(used.map(({ usedOrderId }) => usedOrderId)).size).to.equal(used.length);
    expect(used.length, 'the race was one').to.be.at.least(COUPONS / 2);
    const taken = [...till.charges].filter(
      ([name, cents]) => cents !== 'declined' && racing.some(({ orderId }) => name.startsWith(orderId)),
    );
    const paid = (await world.payments()).filter(({ orderId }) => racing.some((order) => order.orderId === orderId));
    const sum = (amounts: readonly number[]) => amounts.reduce((total, cents) => total + cents, 0);
    expect(sum(paid.map(({ amountCents }) => amountCents))).to.equal(sum(taken.map(([, cents]) => cents as number)));
  });
});
