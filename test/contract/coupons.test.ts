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
import type { MysqlPool, SqlValue } from '../../src/mysql/pool.js';
import { createCouponDesk, type RevokeWish } from '../../src/operate/coupons/coupon-desk.js';
import { payOrder, type PayAnswer, type PayPorts } from '../../src/orders/buyer-orders.js';
import { resolveAttempt } from '../../src/orders/resolve-payments.js';
import { stripeFault } from '../../src/payment/stripe-amount.js';
import { openHttpProvider } from '../../src/payment/http-provider.js';
import { brokenBooks } from '../helpers/coupon-books.js';
import { inLanes } from '../helpers/lanes.js';
import { makeNumbers } from '../helpers/numbers.js';
import { partial } from '../helpers/partial.js';
import { PaymentServiceStandIn, SERVICE_KEY } from '../helpers/payment-service-stand-in.js';
import { silentLog } from '../helpers/silent-log.js';
import { DUE_MS, mysqlMoves, ordersIn } from './order-transitions-worlds.js';
import { useWorld } from './on-each-world.js';
import { systemClock as clock } from './repository-worlds.js';

const PRICE = 1000;
const TERMS = '300 30d';
const BUYERS_AT_ONCE = 64;

describe('contract coupons on MySQL', () => {
  const world = useWorld(mysqlMoves);
  const service = new PaymentServiceStandIn();
  let provider: PaymentProvider;
  before(async () => {
    await makeNumbers(world.pool, 20_000);
    ({ provider } = await openHttpProvider({ apiKey: SERVICE_KEY, apiUrl: `${await service.start()}/pay` }, silentLog));
  });
  after(() => service.stop());

  const on = (pool: MysqlPool) => ({
    repository: createOrderRepository(pool),
    transitions: createOrderTransitions(pool, { clock, log: silentLog }),
    attempts: createPaymentAttempts(pool, { clock }),
    refunds: world.refunds,
    coupons: createCoupons(pool),
    provider,
    clock: { ...clock, sleep: () => clock.sleep(1) }, // a request need not wait long for the charge of another key
    log: silentLog,
  });
  /** Pays with the card that the first word of the key names: `declined`, `lost`, or a card that pays. */
  const pay = (
    { orderId, userId }: Order,
    key: string | null,
    coupon?: string,
    { pool = world.pool, ...ports }: { readonly pool?: MysqlPool } & Partial<PayPorts> = {},
  ): Promise<PayAnswer> =>
    payOrder(
      { orderId, userId, key, method: key && (key.split('-')[0] ?? null), ...(coupon === undefined ? {} : { coupon }) },
      { ...on(pool), ...ports },
    );
  const find = async (code: string) => (await createCoupons(world.pool).find(code)) ?? expect.fail('no such coupon');
  const shown = async ({ orderId }: Order) => world.orders.findOrder(orderId);
  const desk = (pool: MysqlPool = world.pool) => createCouponDesk(pool, { clock });
  const revoke = (wish: Partial<RevokeWish>, pool?: MysqlPool) =>
    desk(pool).revokeNext({ dryRun: false, reason: 'wrong terms', ...wish }, null, 'olga');
  const expire = (code = '') =>
    world.pool.execute('UPDATE coupon_codes SET expires_at = UTC_TIMESTAMP(3) WHERE code = ?', [code]);
  const refund = async ({ orderId }: Order, pool: MysqlPool = world.pool): Promise<void> => {
    const refunds = createOrderRefunds(pool, { clock });
    await refunds.order(orderId, { restock: true, reason: 'late' }, 'olga');
    for (const { refundId } of await refunds.refundsOf(orderId)) await refunds.settle(refundId);
  };
  const auditOf = async (code: string) =>
    (await world.auditOf(`coupon:${code}`)).map(({ actor, action, after }) => [actor, action, after]);
  const orders = async (count: number, parts: Parameters<typeof ordersIn>[2] = {}, userId = 'ann') => {
    const texts = Array.from({ length: count }, (_, index) => `${userId}/k${index}`);
    const sale = { priceCents: PRICE, limitPerBuyer: 1000, ...parts.sale };
    return (await ordersIn(world, texts, { ...parts, sale })).orders;
  };
  /** Coupons of a buyer, each brought by a paid order. */
  async function coupons(count: number, terms = TERMS, userId?: string): Promise<string[]> {
    const brought = await orders(count, { sale: { coupon: terms } }, userId);
    await inLanes(BUYERS_AT_ONCE, brought, async (order) => expect((await pay(order, null)).outcome).to.equal('paid'));
    const ids = brought.map(({ orderId }) => orderId);
    await createCouponRepository(world.pool).issue(ids);
    const found = await createCoupons(world.pool).list({ saleId: brought[0]?.saleId ?? '' }, { max: count });
    return found.map(({ code }) => code);
  }
  const one = async (terms?: string, parts?: Parameters<typeof ordersIn>[2]) => {
    const [[code], [order]] = [await coupons(1, terms), await orders(1, parts)];
    return { code: code as string, order: order as Order };
  };
  /** A keeper asks the provider about each open charge. */
  async function resolve(): Promise<void> {
    const sql = "SELECT CAST(order_id AS CHAR) AS id FROM payment_attempts WHERE state = 'open'";
    await inLanes(BUYERS_AT_ONCE, await world.pool.query<{ id: string }>(sql), async ({ id }) => {
      for (const attempt of await world.attempts.openOf(id)) await resolveAttempt(attempt, on(world.pool), true);
    });
  }

  const checkBooks = async (what = '') => expect(await brokenBooks(world.pool), what).to.deep.equal([]);

  it('issues one code per paid order by the terms of its sale at that time, however often the event arrives [C3]', async () => {
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
    await expire(first?.code);
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
    await expire(old);
    expect(await desk().redeem(old, 'x', 'olga')).to.deep.equal({ outcome: 'refused', why: 'expired' });
    await checkBooks();
  });

  it('charges the reduced amount, and a refund gives back what was paid and frees the coupon', async () => {
    const { code, order } = await one();
    expect(await pay(order, 'k', code)).to.deep.include({ outcome: 'paid' });
    expect(service.charges.get(`${order.orderId}/k`)?.amountCents).to.equal(PRICE - 300);
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

  it('ends the coupon that an order brought when it is refunded completely', async () => {
    const [order] = (await orders(1, { sale: { coupon: TERMS } })) as [Order];
    await pay(order, null);
    await createCouponRepository(world.pool).issue([order.orderId]);
    const [brought] = await createCoupons(world.pool).list({ orderId: order.orderId }, { max: 1 });
    expect(brought?.state).to.equal('free');
    await refund(order);
    expect((await find(brought?.code ?? '')).state).to.equal('expired');
  });

  const report = ({ orderId }: Order, amountCents: number) =>
    world.transitions.pay(orderId, { paymentId: `report-${orderId}-${amountCents}`, amountCents, currency: 'EUR' });

  it('records no payment that no coupon explains, and a refund for a payment above the price', async () => {
    const { code, order } = await one();
    expect((await pay(order, 'lost-1', code)).outcome).to.equal('outcome_unknown');
    for (const cents of [1, PRICE - 301, PRICE - 299])
      expect(await report(order, cents), `${cents}`).to.equal('coupon_missing');
    expect(await report(order, PRICE + 1)).to.equal('refund_due');
    expect(await find(code)).to.include({ state: 'reserved', usedOrderId: order.orderId });
    const recorded = (await world.payments()).filter(({ orderId }) => orderId === order.orderId);
    expect(recorded.map(({ amountCents }) => amountCents)).to.deep.equal([PRICE + 1]);
    await checkBooks();
  });

  it('gives back a late payment whose coupon went to another order, and takes no other coupon of its buyer', async () => {
    const { code, order } = await one();
    const [other] = (await orders(1)) as [Order];
    expect((await pay(order, 'declined-1', code)).outcome).to.equal('declined');
    expect((await pay(other, 'k', code)).outcome).to.equal('paid');
    const [kept] = (await coupons(1)) as [string];
    expect(await report(order, PRICE - 300), 'the provider took the money after all').to.equal('refund_due');
    expect((await find(kept)).state).to.equal('free');
    await checkBooks();
  });

  it('pays an order whose coupon reservation a restore lost, once its buyer has a coupon again', async () => {
    const [order, held] = (await orders(2, {}, 'zoe')) as [Order, Order];
    await coupons(1, '299 30d', 'zoe');
    await coupons(1); // of another buyer
    expect(await report(order, PRICE - 300)).to.equal('coupon_missing');
    expect(await shown(order)).to.include({ state: 'pending_payment', amountCents: PRICE });
    // The payment of the first order is reported again, so the keeper issues its coupon again, under another code.
    const [code] = (await coupons(1, TERMS, 'zoe')) as [string];
    expect(await report(order, PRICE - 300)).to.equal('paid');
    expect(await report(order, PRICE - 300), 'again').to.equal('paid');
    expect(await find(code)).to.include({ state: 'redeemed', usedOrderId: order.orderId, discountCents: 300 });
    expect(await shown(order)).to.include({ state: 'paid', amountCents: PRICE - 300 });

    // The copy knows an earlier charge, and not the charge that took the money.
    const [earlier, later] = [...(await coupons(1, '200 30d', 'zoe')), ...(await coupons(1, TERMS, 'zoe'))];
    expect((await pay(held, 'lost-1', earlier)).outcome).to.equal('outcome_unknown');
    expect(await report(held, PRICE - 300)).to.equal('paid');
    expect([(await find(earlier ?? '')).state, (await find(later ?? '')).state]).to.deep.equal(['free', 'redeemed']);
    await resolve();
    await checkBooks();
  });

  it('refuses a coupon that leaves less than the provider can charge, and a coupon that has expired', async () => {
    const faultOf = stripeFault;
    const [small, enough] = [(await coupons(1, '951 30d'))[0], (await coupons(1, '950 30d'))[0]];
    const [order] = (await orders(1)) as [Order];
    const payWith = (key: string, coupon: string) => pay(order, key, coupon, { faultOf });
    const refused = { outcome: 'coupon_refused', why: 'not_chargeable' };
    expect(await payWith('k1', small ?? '')).to.deep.equal(refused);
    expect((await find(small ?? '')).state).to.equal('free');

    const [old] = (await coupons(1)) as [string];
    await expire(old);
    expect(await payWith('k2', old)).to.deep.equal({ outcome: 'coupon_refused', why: 'expired' });
    const late = { code: old, discountCents: 300 };
    expect(await world.attempts.open(order.orderId, 'k2', PRICE - 300, 0, null, late), 'expired since').to.deep.equal({
      outcome: 'coupon_refused',
      why: 'expired',
    });
    expect(await world.attempts.openOf(order.orderId)).to.deep.equal([]);

    expect((await payWith('lost-3', enough ?? '')).outcome).to.equal('outcome_unknown');
    await expire(enough);
    expect((await payWith('lost-3', enough ?? '')).outcome, 'expired during the charge').to.equal('paid');
    expect(await shown(order)).to.include({ state: 'paid', amountCents: 50 });
    await checkBooks();
  });

  it('revokes the free coupons of a sale, and leaves used, reserved and expired coupons alone', async () => {
    const [free, used, held, old] = (await coupons(4)) as [string, string, string, string];
    const [{ saleId }, [paid, open, other]] = [await find(free), (await orders(3)) as [Order, Order, Order]];
    await pay(paid, 'k', used);
    await pay(open, 'lost', held);
    await expire(old);
    const states = async () => Promise.all([free, used, held, old].map(async (code) => (await find(code)).state));
    const done = { outcome: 'done', revoked: 1, reserved: 1, next: null };
    expect(await revoke({ saleId, dryRun: true })).to.deep.equal(done);
    expect(await states()).to.deep.equal(['free', 'redeemed', 'reserved', 'expired']);
    expect(await revoke({ saleId })).to.deep.equal(done);
    expect(await states()).to.deep.equal(['revoked', 'redeemed', 'reserved', 'expired']);
    expect(await auditOf(free)).to.deep.equal([
      ['olga', 'coupon.revoked', { state: 'revoked', reason: 'wrong terms' }],
    ]);
    expect(await revoke({ saleId }), 'again').to.deep.equal({ ...done, revoked: 0 });
    expect(await pay(other, 'k', free)).to.deep.equal({ outcome: 'coupon_refused', why: 'revoked' });
    expect(await desk().redeem(free, 'shop-1', 'olga')).to.deep.equal({ outcome: 'refused', why: 'revoked' });
    expect(await createCoupons(world.pool).list({ saleId, state: 'revoked' }, { max: 9 })).to.have.length(1);
    expect((await pay(open, 'lost', held)).outcome, 'the open payment goes on').to.equal('paid');

    expect(await revoke({ codes: [free, '2222222222'] })).to.deep.equal({ outcome: 'not_found', code: '2222222222' });
    expect(await revoke({ saleId: other.saleId, codes: [free] })).to.deep.equal({ outcome: 'not_found', code: free });
    expect(await revoke({ saleId: '999999999' })).to.deep.equal({ outcome: 'not_found', code: null });
    await checkBooks();
  });

  it('revokes the coupons of a large sale in steps of 500', async () => {
    const [order] = (await orders(1)) as [Order];
    const { saleId, orderId } = order;
    await world.pool.execute(
      `INSERT INTO coupon_codes (code, order_id, sale_id, user_id, currency, percent, min_cents, expires_at)
       SELECT CONCAT('S', LPAD(seq, 9, '0')), CAST(? AS UNSIGNED) + seq, ?, 'sam', 'EUR', 10, 0,
         UTC_TIMESTAMP(3) + INTERVAL 1 DAY FROM numbers WHERE seq <= 1001`,
      [orderId, saleId],
    );
    const steps: number[] = [];
    for (let after: string | null = null; ;) {
      const step = await desk().revokeNext({ saleId, dryRun: false, reason: 'r' }, after, 'olga');
      if (step.outcome !== 'done') return expect.fail(step.outcome);
      steps.push(step.revoked);
      after = step.next;
      if (after === null) break;
    }
    expect(steps).to.deep.equal([500, 500, 1]);
    expect(await auditOf('S000001001')).to.have.length(1);
  });

  it('notes in the audit log which coupons an operator frees or ends by a cancellation, a void and a refund', async () => {
    const [cancelled, voided] = (await coupons(2)) as [string, string];
    const refunds = createOrderRefunds(world.pool, { clock });
    const [[first], [second]] = [(await orders(1)) as [Order], (await orders(1)) as [Order]];
    await pay(first, 'lost', cancelled);
    await pay(second, 'lost', voided);
    await refunds.cancel(first.orderId, 'the buyer called', 'olga');
    await world.pool.execute("UPDATE sales SET state = 'paused' WHERE id = ?", [second.saleId]);
    const wish = { unpaid: true, refundAll: false, dryRun: false, reason: 'wrong price' };
    await refunds.voidNext(second.saleId, null, wish, 'olga');
    const freed = (reason: string) => [['olga', 'coupon.freed', { state: 'free', reason }]];
    expect(await auditOf(cancelled)).to.deep.equal(freed('the buyer called'));
    expect(await auditOf(voided)).to.deep.equal(freed('wrong price'));
    expect([(await find(cancelled)).state, (await find(voided)).state]).to.deep.equal(['free', 'free']);
    await resolve();

    const [order] = (await orders(1, { sale: { coupon: TERMS } })) as [Order];
    await pay(order, 'k', cancelled);
    await createCouponRepository(world.pool).issue([order.orderId]);
    const [brought] = await createCoupons(world.pool).list({ saleId: order.saleId }, { max: 1 });
    await refund(order);
    expect((await auditOf(cancelled)).at(-1)).to.deep.equal(freed('late')[0]);
    const ended = [['olga', 'coupon.ended', { state: 'expired', reason: 'late' }]];
    expect(await auditOf(brought?.code ?? '')).to.deep.equal(ended);
  });

  it('frees a coupon that a closed charge still holds, as a program of an earlier release leaves it', async () => {
    const { code, order } = await one();
    expect((await pay(order, 'lost-1', code)).outcome).to.equal('outcome_unknown');
    await world.pool.execute("UPDATE payment_attempts SET state = 'declined' WHERE order_id = ?", [order.orderId]);
    expect((await pay(order, 'k2', code)).outcome).to.equal('paid');
    expect(await find(code)).to.include({ state: 'redeemed', usedOrderId: order.orderId });
    await checkBooks();
  });

  it('pays an order without the provider if the coupon covers it completely, even if no provider is set', async () => {
    const { code, order } = await one('5000 30d');
    expect((await pay(order, null, code, { provider: null })).outcome).to.equal('paid');
    expect(await shown(order)).to.include({ state: 'paid', amountCents: 0 });
    expect(service.charges.has(`${order.orderId}/coupon-${code}`)).to.equal(false);
    expect(await find(code)).to.include({ state: 'redeemed', discountCents: PRICE });
    expect(await world.attempts.openOf(order.orderId)).to.deep.equal([]);
    await checkBooks();
  });

  it('frees the coupon when the charge is declined, and keeps it for this key while the outcome is unknown', async () => {
    const { code, order } = await one();
    const [other] = (await orders(1)) as [Order];
    expect((await pay(order, 'declined-1', code)).outcome).to.equal('declined');
    expect((await find(code)).state).to.equal('free');
    expect(await pay(order, 'declined-1')).to.deep.equal({ outcome: 'coupon_refused', why: 'other_key' });
    expect((await pay(order, 'lost-2', code)).outcome).to.equal('outcome_unknown');
    expect((await find(code)).state).to.equal('reserved');
    expect(await pay(other, 'k', code)).to.deep.equal({ outcome: 'coupon_refused', why: 'in_use' });
    expect(await desk().redeem(code, 'shop-1', 'olga')).to.deep.equal({ outcome: 'refused', why: 'in_use' });
    const [second] = (await coupons(1)) as [string];
    expect(await pay(order, 'lost-2', second), 'a charge has one coupon').to.include({ why: 'other_key' });
    expect(await pay(order, 'lost-2')).to.include({ why: 'other_key' });
    await checkBooks();
    expect((await pay(order, 'lost-2', code)).outcome).to.equal('paid');
    expect(service.charges.get(`${order.orderId}/lost-2`)?.amountCents).to.equal(PRICE - 300);
    expect(await find(second)).to.include({ state: 'free' });
    await checkBooks();
  });

  it('frees the coupon when the order ends during the charge, and records a refund of the reduced amount', async () => {
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

  /** `sent` is absent for the answer to the COMMIT. */
  type Step = <T>(run: () => Promise<T>, sent?: Statement) => Promise<T>;
  type Statement = readonly [sql: string, values?: readonly SqlValue[]];

  /** The pool, with each statement of its transactions, and the answer to each COMMIT, as a step. */
  function withSteps(step: Step): MysqlPool {
    const { pool } = world;
    return partial<MysqlPool>({
      query: (...args) => pool.query(...args),
      execute: (...args) => pool.execute(...args),
      async transaction(work) {
        const value = await pool.transaction((tx) =>
          work({
            query: (...args) => step(() => tx.query(...args), args),
            execute: (...args) => step(() => tx.execute(...args), args),
            rollback: () => tx.rollback(),
          }),
        );
        return step(async () => value);
      },
    });
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

  it('keeps the books after a kill between any two statements of a payment, its end and its refund [P4]', async () => {
    let [code, order] = ['', undefined as unknown as Order];
    const paying = (pool: MysqlPool) => pay(order, 'k', code, { pool });
    type Kill = readonly [
      end: string,
      run: (pool: MysqlPool) => Promise<unknown>,
      before?: { readonly key?: string; readonly due?: true; readonly terms?: string },
    ];
    const kills: Record<string, Kill> = {
      pay: ['redeemed', paying],
      free: ['redeemed', paying, { terms: '5000 30d' }],
      decline: ['free', (pool) => pay(order, 'declined', code, { pool })],
      cancel: ['free', (pool) => on(pool).transitions.cancel(order.orderId), { key: 'lost' }],
      expire: ['free', (pool) => on(pool).transitions.expire([order.orderId]), { key: 'lost', due: true }],
      refund: ['free', (pool) => refund(order, pool), { key: 'k' }],
      redeem: ['redeemed', (pool) => desk(pool).redeem(code, 'shop-1', 'olga')],
      revoke: ['revoked', (pool) => revoke({ codes: [code] }, pool)],
    };
    for (const [what, [end, run, { key, due, terms } = {}]] of Object.entries(kills)) {
      const prepare = async () => {
        ({ code, order } = await one(terms, due ? { paymentWindowMs: DUE_MS } : {}));
        if (key !== undefined) await pay(order, key, code);
        return run;
      };
      const statements = await diesAnywhere(what, prepare, async () => expect((await find(code)).state).to.equal(end));
      expect(statements, what).to.be.at.least(4);
    }
  });

  it('keeps the books when two programs act on one coupon or one order at once', async () => {
    const movers: Record<string, (order: Order, other: Order, code: string) => Promise<unknown>> = {
      pay: (order, _, code) => pay(order, 'k', code),
      otherKey: (order, _, code) => pay(order, 'k2', code),
      lost: (order, _, code) => pay(order, 'lost', code),
      decline: (order, _, code) => pay(order, 'declined', code),
      plain: (order) => pay(order, 'plain'),
      other: (_, other, code) => pay(other, 'k', code),
      desk: (_, __, code) => desk().redeem(code, 'shop-1', 'olga'),
      revoke: (_, __, code) => revoke({ codes: [code] }),
      cancel: ({ orderId }) => world.transitions.cancel(orderId),
      expire: ({ orderId }) => world.transitions.expire([orderId]),
      resolve,
      refund: (order) => refund(order),
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

  it('opens and closes a charge that loses a deadlock against another transaction', async () => {
    const { code, order } = await one();
    const name = { orderId: order.orderId, key: 'k' };
    /**
     * Runs a step against a transaction that holds the coupon, and wants a row that the step has locked by then. The
     * transaction has written more, so the server ends the step.
     */
    async function loses<T>(wanted: string, run: (pool: MysqlPool) => Promise<T>): Promise<T> {
      let [isHeld, isMet] = [(): void => undefined, (): void => undefined];
      const [held, met] = [new Promise<void>((done) => (isHeld = done)), new Promise<void>((done) => (isMet = done))];
      const rival = world.pool.transaction(async (tx) => {
        await tx.execute(
          `INSERT INTO audit_log (actor, action, subject) SELECT 'rival', 'a.b', seq FROM numbers LIMIT 100`,
        );
        await tx.query('SELECT code FROM coupon_codes WHERE code = ? FOR UPDATE', [code]);
        isHeld();
        await met;
        await tx.query(`${wanted} FOR UPDATE`, [order.orderId]);
        await tx.rollback();
      });
      await held;
      let takes = 0;
      const step: Step = (next, [sql = ''] = ['']) => {
        if (/^update .*coupon_codes/i.test(sql) && takes++ === 0) isMet();
        return next();
      };
      const answer = await run(withSteps(step));
      await rival;
      expect(takes, 'tries').to.be.at.least(2);
      return answer;
    }
    const use = { code, discountCents: 300 };
    const opened = await loses('SELECT id FROM orders WHERE id = ?', (pool) =>
      on(pool).attempts.open(name.orderId, name.key, PRICE - 300, 0, null, use),
    );
    expect(opened).to.deep.equal({ outcome: 'opened' });
    expect((await find(code)).state).to.equal('reserved');
    await loses('SELECT order_id FROM payment_attempts WHERE order_id = ?', (pool) =>
      on(pool).attempts.close(name, 'declined'),
    );
    expect((await find(code)).state).to.equal('free');
    await checkBooks();
  });

  it('frees the coupons of a batch of orders by the index of their orders', async () => {
    const due = await orders(300, { paymentWindowMs: DUE_MS });
    const held = (await coupons(3)) as [string, string, string];
    const others = await orders(3);
    await inLanes(BUYERS_AT_ONCE, held, async (code, index) => pay(others[index] as Order, 'lost', code));
    await world.pool.execute(
      `INSERT INTO coupon_codes (code, order_id, sale_id, user_id, currency, percent, min_cents, state, used_order,
         used_key, redeemed_at, expires_at)
       SELECT CONCAT('R', LPAD(seq, 9, '0')), seq, 1, 'rob', 'EUR', 10, 0, 'redeemed', NULL, 'shop',
         UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM numbers`,
    );
    await world.pool.query('ANALYZE TABLE coupon_codes');
    const freed: Statement[] = [];
    const pool = withSteps((run, sent) => {
      if (sent !== undefined && /^update .*coupon_codes/i.test(sent[0])) freed.push(sent);
      return run();
    });
    expect(await on(pool).transitions.expire(due.map(({ orderId }) => orderId))).to.equal(300);
    const [[sql, values]] = freed as [Statement];
    const plan = await world.pool.query<{ key: string }>(`EXPLAIN ${sql}`, values);
    expect(plan.map(({ key }) => key)).to.deep.equal(['used_order']);
  });
});
