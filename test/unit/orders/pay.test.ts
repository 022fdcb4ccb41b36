import { expect } from 'chai';
import type { Order } from '../../../src/core/order.js';
import { cancelOrder, payOrder, type PayAnswer } from '../../../src/orders/buyer-orders.js';
import type { ResolvedAttempt } from '../../../src/core/ports/payment-attempts.js';
import { resolveAttempt, resolvePayments } from '../../../src/orders/resolve-payments.js';
import { createPaymentSimulator } from '../../../src/payment/simulator.js';
import { silentLog } from '../../helpers/silent-log.js';
import type { PaymentProvider, Price } from '../../../src/core/ports/payment-provider.js';
import { declineBound } from '../../../src/admission/orders/decline-limit.js';
import { DEFAULT_RULES } from '../../../src/admission/rules/rule-set.js';
import { CancelLimit } from '../../../src/admission/orders/cancel-limit.js';
import { orderRules } from '../../../src/admission/orders/order-rules.js';
import type { OrderJobMetrics } from '../../../src/orders/metrics.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryRepositories } from '../../helpers/memory/memory-repositories.js';
import { MemoryPaymentAttempts } from '../../helpers/memory/memory-payment-attempts.js';
import { MemoryRefundRepository } from '../../helpers/memory/memory-refund-repository.js';
import { MemoryOrderTransitions } from '../../helpers/memory/memory-order-transitions.js';
import { batchOf, purchaseOf, saleOf } from '../../helpers/sales.js';
import { noAdmissionMetrics } from '../../helpers/no-metrics.js';
import { partial } from '../../helpers/partial.js';
import type { OrderTransitions } from '../../../src/core/ports/order-transitions.js';

const WINDOW_MS = 900_000;

describe('pay and cancel', () => {
  let clock: ManualClock;
  let mysql: MemoryRepositories;
  let transitions: MemoryOrderTransitions;
  let order: Order;
  /** Order and key of every charge. */
  let charged: string[];
  /** The price of each charge. */
  let prices: Price[];
  /** Runs during the charge. */
  let meanwhile: () => unknown;
  /** The provider does not answer look-ups. */
  let isSilent: boolean;
  let attempts: MemoryPaymentAttempts;
  let owed: MemoryRefundRepository;

  const simulator = createPaymentSimulator();
  /** Unlike the simulator, this provider remembers its charges. */
  const provider: PaymentProvider = {
    ...simulator,
    async charge(orderId, price, key) {
      charged.push(`${orderId} ${key}`);
      prices.push(price);
      await meanwhile();
      return simulator.charge(orderId, price, key);
    },
    async lookUp(orderId, price, key) {
      if (!charged.includes(`${orderId} ${key}`)) return { outcome: 'not_found' };
      return isSilent ? { outcome: 'unknown' } : simulator.lookUp(orderId, price, key);
    },
  };

  beforeEach(async () => {
    clock = new ManualClock();
    mysql = new MemoryRepositories({ clock });
    transitions = new MemoryOrderTransitions(mysql);
    charged = [];
    prices = [];
    meanwhile = () => undefined;
    isSilent = false;
    attempts = new MemoryPaymentAttempts(clock, mysql);
    owed = new MemoryRefundRepository(transitions, clock);
    const sale = saleOf({}, clock.nowMs());
    mysql.putSale(sale);
    const row = { orderId: '99', batch: batchOf(sale, [purchaseOf('ann*2')]), purchase: purchaseOf('ann*2') };
    const terms = await mysql.termsOf([sale.saleId]);
    const plan = { terms, orders: [{ ...row, failure: null }], releases: [], oneByOne: new Set<string>() };
    await mysql.write({ ...plan, paymentWindowMs: WINDOW_MS });
    order = (await mysql.findOrder('99')) as Order;
  });

  const pay = (
    key: string | null = null,
    userId = 'ann',
    by: PaymentProvider | null = provider,
    method: string | null = null,
  ): Promise<PayAnswer> =>
    payOrder(
      { orderId: '99', userId, key, method },
      { repository: mysql, transitions, attempts, refunds: owed, provider: by, clock, log: silentLog },
    );
  /** The keeper job. */
  const resolve = async (): Promise<ResolvedAttempt[]> => {
    const resolved: ResolvedAttempt[] = [];
    const metrics = partial<OrderJobMetrics>({ attemptResolved: (state) => void resolved.push(state) });
    const ports = { repository: mysql, attempts, transitions, provider, metrics, log: silentLog };
    await resolvePayments(ports, { max: 2, leaseMs: 60_000 }).runOnce();
    return resolved;
  };
  const states = (): string[] => [...attempts.rows.values()].map(({ state }) => state);
  const cancel = (userId = 'ann') => cancelOrder('99', userId, { repository: mysql, transitions });
  const refunds = (): (string | null)[] => [...transitions.payments.values()].map(({ refund }) => refund);

  it('returns the paid order, and charges nothing on a second call', async () => {
    const first = await pay();
    expect(first).to.deep.equal({ outcome: 'paid', order: { ...order, state: 'paid', paidAtMs: clock.nowMs() } });
    clock.advance(1000);
    expect(await pay('another-key')).to.deep.equal(first);
    expect(charged).to.have.length(1);
    expect(refunds()).to.deep.equal([null]);
  });

  it('makes only one payment for two concurrent clicks without a key', async () => {
    const same = await Promise.all([pay(), pay()]);
    expect(same.map(({ outcome }) => outcome)).to.deep.equal(['paid', 'paid']);
    expect(refunds()).to.deep.equal([null]);
  });

  it('charges one key and answers paid to all if forty keys arrive at once', async () => {
    meanwhile = () => clock.sleep(1000);
    const all = await Promise.all(Array.from({ length: 40 }, (_, n) => pay(`k${n}`)));
    expect(all.map(({ outcome }) => outcome)).to.deep.equal(Array.from({ length: 40 }, () => 'paid'));
    expect(charged).to.have.length(1);
    expect(refunds()).to.deep.equal([null]);
  });

  it('holds the next key while a charge is undecided, and charges it after a decline', async () => {
    meanwhile = () => clock.sleep(500);
    const both = await Promise.all([pay('decline-1'), pay('k2')]);
    expect(both.map(({ outcome }) => outcome)).to.deep.equal(['declined', 'paid']);
    expect(charged).to.deep.equal(['99 decline-1', '99 k2']);
  });

  it('answers payment_in_progress, without a charge, to another key while a charge is unresolved', async () => {
    expect(await pay('unknown-1')).to.deep.equal({ outcome: 'outcome_unknown' });
    const sinceMs = clock.nowMs();
    expect(await pay('k2')).to.deep.equal({ outcome: 'payment_in_progress' });
    expect(clock.nowMs() - sinceMs, 'the call waited').to.equal(3000);
    clock.advance(60_000);
    expect(await pay('k2'), 'the provider does not know either').to.deep.equal({ outcome: 'payment_in_progress' });
    expect(charged).to.deep.equal(['99 unknown-1']);
    expect(await pay('unknown-1'), 'the same key asks again').to.deep.equal({ outcome: 'outcome_unknown' });
  });

  it('pays the order with the money of a dead api when another key arrives', async () => {
    transitions.breakNext('pay_fails');
    expect(await pay('k1')).to.deep.equal({ outcome: 'outcome_unknown' });
    clock.advance(30_000);
    expect((await pay('k2')).outcome).to.equal('paid');
    expect(charged).to.deep.equal(['99 k1']);
    expect(refunds()).to.deep.equal([null]);
  });

  it('charges nothing and reports not found for an order of another buyer', async () => {
    expect(await pay(null, 'bob')).to.deep.equal({ outcome: 'not_found' });
    expect(await cancel('bob')).to.deep.equal({ outcome: 'not_found' });
    expect(charged).to.deep.equal([]);
    expect((await mysql.findOrder('99'))?.state).to.equal('pending_payment');
  });

  for (const fault of ['pay_fails', 'pay_reply_lost'] as const) {
    it(`answers unknown on ${fault} after the charge, and records one payment with the same key`, async () => {
      transitions.breakNext(fault);
      expect(await pay()).to.deep.equal({ outcome: 'outcome_unknown' });
      expect((await pay()).outcome).to.equal('paid');
      expect(refunds()).to.deep.equal([null]);
    });
  }

  it('commits the attempt and its provider key before the charge, or charges nothing', async () => {
    attempts.breakNext('open');
    expect(await pay('k1').catch((error: Error) => error.name)).to.equal('OperationalError');
    expect(charged).to.deep.equal([]);
    let openAtCharge: string[] = [];
    meanwhile = () => void (openAtCharge = [...attempts.rows.keys()]);
    await pay('k1');
    expect(openAtCharge).to.deep.equal(['99/k1']);
    expect(states()).to.deep.equal(['charged']);
  });

  for (const end of ['cancelled', 'expired'] as const) {
    it(`finds the money and records its refund if the order is ${end} after MySQL failed`, async () => {
      transitions.breakNext('pay_fails');
      expect(await pay()).to.deep.equal({ outcome: 'outcome_unknown' });
      if (end === 'cancelled') await cancel();
      clock.advance(WINDOW_MS + 1);
      await transitions.expireDue(10);
      expect((await mysql.findOrder('99'))?.state).to.equal(end);
      expect(await resolve()).to.deep.equal(['charged']);
      expect(refunds()).to.deep.equal([`order_${end}`]);
      expect(await resolve(), 'once').to.deep.equal([]);
      expect((await pay()).outcome, 'the retry of the buyer').to.equal('refund_due');
    });
  }

  it('finds the money on a retry if MySQL fails after the charge and the order ends', async () => {
    transitions.breakNext('pay_fails');
    await pay('k1');
    await cancel();
    expect((await pay('k2')).outcome).to.equal('refund_due');
    expect(refunds()).to.deep.equal(['order_cancelled']);
    expect(charged, 'nothing is charged for it').to.deep.equal(['99 k1']);
    expect((await pay()).outcome).to.equal('refund_due');
  });

  it('never denies a payment of an ended order while the provider is silent', async () => {
    transitions.breakNext('pay_fails');
    await pay();
    await cancel();
    isSilent = true;
    expect(await pay()).to.deep.equal({ outcome: 'outcome_unknown' });
    expect(await pay(null, 'ann', null), 'no provider to ask').to.deep.equal({ outcome: 'outcome_unknown' });
    isSilent = false;
    expect((await pay()).outcome).to.equal('refund_due');
  });

  it('reports that no money was taken only once it knows every attempt', async () => {
    for (let key = 0; key < 11; key++) attempts.put('99', `decline-${key}`, order.amountCents);
    for (let key = 0; key < 11; key++) charged.push(`99 decline-${key}`);
    await cancel();
    expect(await pay()).to.deep.equal({ outcome: 'outcome_unknown' });
    expect((await pay()).outcome).to.equal('wrong_state');
  });

  it('lets the keeper pay the order if MySQL fails after the charge', async () => {
    transitions.breakNext('pay_fails');
    await pay();
    expect(await resolve(), 'the call of the api may be under way').to.deep.equal([]);
    clock.advance(30_000);
    expect(await resolve()).to.deep.equal(['charged']);
    expect((await mysql.findOrder('99'))?.state).to.equal('paid');
  });

  it('closes an attempt that was paid but left open, and moves no money', async () => {
    attempts.breakNext('close');
    expect((await pay()).outcome).to.equal('paid');
    expect(states()).to.deep.equal(['open']);
    clock.advance(30_000);
    expect(await resolve()).to.deep.equal(['charged']);
    expect(refunds()).to.deep.equal([null]);
  });

  it('reports not_charged ten minutes after an api died before the charge', async () => {
    await attempts.open('99', 'order', order.amountCents, 0);
    for (let minute = 0; minute < 9; minute++) {
      clock.advance(60_000);
      expect(await resolve()).to.satisfy((found: string[]) => found.every((state) => state === 'open'));
    }
    await cancel();
    expect(await pay(), 'a call may still arrive').to.deep.equal({ outcome: 'outcome_unknown' });
    clock.advance(600_000);
    expect(await resolve()).to.deep.equal(['not_charged']);
    expect((await pay()).outcome).to.equal('wrong_state');
  });

  it('lets the keeper ask again after two seconds even if the buyer keeps retrying', async () => {
    transitions.breakNext('pay_fails');
    await pay('k1');
    for (let tries = 0; tries < 10; tries++) await attempts.open('99', 'k1', order.amountCents, 30_000);
    isSilent = true;
    clock.advance(30_000);
    expect(await resolve()).to.deep.equal(['open']);
    isSilent = false;
    clock.advance(3_000);
    expect(await resolve()).to.deep.equal(['charged']);
  });

  it('resolves an attempt unknown to the provider after ten minutes', async () => {
    await attempts.open('99', 'order', order.amountCents, 30_000);
    const found: string[] = [];
    let asked = 0;
    for (let seconds = 0; seconds < 602; seconds += 2) {
      clock.advance(2_000);
      const ends = await resolve();
      asked += ends.length;
      found.push(...ends.filter((end) => end !== 'open'));
    }
    expect(found).to.deep.equal(['not_charged']);
    expect(asked, 'less and less often').to.be.within(8, 14);
  });

  it('keeps the attempt open if the payment cannot be recorded', async () => {
    transitions.breakNext('pay_fails');
    await pay();
    clock.advance(30_000);
    const lost = partial<OrderTransitions>({ pay: async () => 'payment_conflict' });
    const [leased] = await attempts.lease(1, 1);
    if (leased === undefined) throw new Error('it is due');
    expect(
      await resolveAttempt(leased, { repository: mysql, attempts, provider, transitions: lost, log: silentLog }),
    ).to.equal('open');
    expect([...attempts.rows.values()][0]?.lastError).to.match(/cannot be recorded: payment_conflict/);
  });

  it('does not charge an order that has ended', async () => {
    expect((await cancel()).outcome).to.equal('cancelled');
    const answer = await pay();
    expect(answer).to.deep.include({ outcome: 'wrong_state' });
    expect(charged).to.deep.equal([]);
  });

  it('records a refund and answers refund_due if the order ends during the payment', async () => {
    meanwhile = () => transitions.cancel('99');
    const answer = await pay();
    expect(answer).to.deep.equal({ outcome: 'refund_due', order: { ...order, state: 'cancelled' } });
    expect(refunds()).to.deep.equal(['order_cancelled']);
  });

  it('pays an order after its deadline if it has not been ended yet', async () => {
    meanwhile = () => clock.advance(WINDOW_MS + 1);
    expect((await pay()).outcome).to.equal('paid');
  });

  it('charges the amount in the currency of the sale', async () => {
    mysql.putSale({ ...saleOf({}, clock.nowMs()), saleId: order.saleId, currency: 'JPY' });
    expect((await pay()).outcome).to.equal('paid');
    expect(prices).to.deep.equal([{ amountCents: order.amountCents, currency: 'JPY' }]);
  });

  it('passes the payment method to a provider that needs it, and starts nothing without it', async () => {
    const methods: (string | undefined)[] = [];
    const needs: PaymentProvider = {
      ...provider,
      needsMethod: true,
      charge: (orderId, price, key, method) => {
        methods.push(method);
        return provider.charge(orderId, price, key);
      },
    };
    expect(await pay(null, 'ann', needs)).to.deep.equal({ outcome: 'payment_method_needed' });
    expect([states(), methods]).to.deep.equal([[], []]);
    expect((await pay(null, 'ann', needs, 'pm_1')).outcome).to.equal('paid');
    expect((await pay(null, 'ann', needs)).outcome, 'a paid order needs no method').to.equal('paid');
    expect(methods).to.deep.equal(['pm_1']);
  });

  it('gives up a charge once the order has ended or another key wants to pay', async () => {
    const given: (boolean | undefined)[] = [];
    const asks: PaymentProvider = {
      ...provider,
      charge: () => Promise.resolve({ outcome: 'action_needed', clientSecret: 's' }),
      lookUp: (_orderId, _price, _key, giveUp) => {
        given.push(giveUp);
        return Promise.resolve(
          giveUp === true ? { outcome: 'declined' } : { outcome: 'action_needed', clientSecret: 's' },
        );
      },
    };
    expect(await pay('k1', 'ann', asks)).to.deep.equal({ outcome: 'action_needed', order, clientSecret: 's' });
    clock.advance(30_000);
    const [attempt] = await attempts.openOf('99');
    if (attempt === undefined) throw new Error('it is open');
    const ports = { repository: mysql, attempts, transitions, provider: asks, log: silentLog };
    expect(await resolveAttempt(attempt, ports)).to.equal('open');
    expect((await pay('k2', 'ann', asks)).outcome, 'the first charge is ended').to.equal('action_needed');
    expect(states()).to.deep.equal(['declined', 'open']);
    await cancel();
    expect((await pay('k2', 'ann', asks)).outcome).to.equal('wrong_state');
    expect(given).to.deep.equal([false, true, true]);
    expect(await resolveAttempt({ ...attempt, ageMs: 600_000 }, ports)).to.equal('declined');
  });

  it('pays a free order without a provider, and records no refund for an ended order', async () => {
    mysql.putOrder({ ...order, amountCents: 0 });
    const both = await Promise.all([pay('k1', 'ann', null), pay('k2')]);
    expect(both.map(({ outcome }) => outcome)).to.deep.equal(['paid', 'paid']);
    expect([charged, states()]).to.deep.equal([[], []]);
    mysql.putOrder({ ...order, amountCents: 0, state: 'pending_payment' });
    transitions.payments.clear();
    const before = transitions.pay.bind(transitions);
    transitions.pay = async (...of) => {
      await transitions.cancel('99');
      return before(...of);
    };
    expect((await pay()).outcome).to.equal('wrong_state');
    expect(await owed.lease(10, 1000)).to.deep.equal([]);
  });

  it('charges nothing without a provider', async () => {
    expect(await pay(null, 'ann', null)).to.deep.equal({ outcome: 'payment_not_configured' });
  });

  it('answers outcome_unknown and logs if the money cannot be recorded, and never answers paid', async () => {
    const errors: string[] = [];
    const log = { ...silentLog, error: (_: object, message: string) => void errors.push(message) };
    const stuck = partial<OrderTransitions>({ pay: async () => 'payment_conflict' });
    const request = { orderId: '99', userId: 'ann', key: null, method: null };
    const answer = await payOrder(request, {
      repository: mysql,
      transitions: stuck,
      attempts,
      refunds: owed,
      provider,
      clock,
      log,
    });
    expect(answer).to.deep.equal({ outcome: 'outcome_unknown' });
    expect(errors).to.have.length(1);
  });

  it('returns the cancelled order, even on a repeat', async () => {
    const first = await cancel();
    expect(first).to.deep.equal({ outcome: 'cancelled', order: { ...order, state: 'cancelled' } });
    expect(await cancel()).to.deep.equal(first);
  });

  describe('declined charges', () => {
    let refusals: string[];
    let rules = orderRules.parse({});
    beforeEach(() => {
      refusals = [];
      rules = orderRules.parse({});
    });
    const tryCard = async (key: string, orderId = '99') => {
      const ports = { repository: mysql, transitions, attempts, refunds: owed, provider, clock, log: silentLog };
      const metrics = { refused: (...words: string[]) => void refusals.push(words.join(' ')) };
      const answer = await payOrder(
        { orderId, userId: 'ann', key, method: null },
        { ...ports, declineBound: () => declineBound(() => rules, partial(metrics)) },
      );
      return answer.outcome;
    };
    const tryCards = async (count: number, orderId?: string) => {
      const outcomes = [];
      for (let n = 0; n < count; n++) outcomes.push(await tryCard(`decline-${n}`, orderId));
      return outcomes;
    };
    const another = async (orderId: string) => {
      const sale = saleOf({ saleId: order.saleId }, clock.nowMs());
      const purchase = purchaseOf(`ann/for-${orderId}*1`);
      const row = { orderId, batch: batchOf(sale, [purchase]), purchase, failure: null };
      const terms = await mysql.termsOf([sale.saleId]);
      await mysql.write({ terms, orders: [row], releases: [], oneByOne: new Set(), paymentWindowMs: WINDOW_MS });
    };

    it('reach the provider at most eight times per order, even without rules [P2]', async () => {
      const outcomes = await tryCards(120);
      expect(outcomes.filter((outcome) => outcome === 'declined')).to.have.length(8);
      expect(outcomes.at(-1)).to.equal('decline_limit_reached');
      expect(await tryCard('k-good')).to.equal('decline_limit_reached');
      expect(charged).to.have.length(8);
      expect(refusals[0]).to.equal('orders decline_limit_reached on');
      expect((await mysql.findOrder('99'))?.state).to.equal('pending_payment');
    });

    it('return the earlier answer for a key that was already charged', async () => {
      expect(await tryCard('decline-first')).to.equal('declined');
      await tryCards(8);
      expect(await tryCard('decline-first')).to.equal('declined');
    });

    it('reach the provider only as often as the hourly rule allows the buyer', async () => {
      rules = orderRules.parse({ declines: { perOrder: 5, perBuyerHour: 7 } });
      await another('100');
      await tryCards(5);
      expect(await tryCards(4, '100')).to.deep.equal([
        'declined',
        'declined',
        'decline_limit_reached',
        'decline_limit_reached',
      ]);
      clock.advance(3_600_001);
      expect(await tryCard('k-later', '100')).to.equal('paid');
    });

    it('are counted but not refused in a dry run, and not counted when off', async () => {
      rules = orderRules.parse({ declines: { mode: 'dry_run', perOrder: 1 } });
      expect(await tryCards(2)).to.deep.equal(['declined', 'declined']);
      expect(refusals).to.deep.equal(['orders decline_limit_reached dry_run']);
      rules = orderRules.parse({ declines: { mode: 'off', perOrder: 1 } });
      expect(await tryCard('decline-off')).to.equal('declined');
      expect(refusals).to.have.length(1);
    });
  });

  it('refuses a further cancellation once the buyer has reached the limit of the sale', async () => {
    const refusals: string[] = [];
    let rules = orderRules.parse({ mode: 'on', cancelsMax: 0 });
    const limit = new CancelLimit(() => rules, {
      ...noAdmissionMetrics,
      refused: (...words) => void refusals.push(words.join(' ')),
    });
    const cancelWithin = () => cancelOrder('99', 'ann', { repository: mysql, transitions, limit });
    expect(await cancelWithin()).to.deep.equal({ outcome: 'cancel_limit_reached' });
    expect((await mysql.findOrder('99'))?.state).to.equal('pending_payment');
    rules = orderRules.parse({ mode: 'dry_run', cancelsMax: 0 });
    const cancelled = await cancelWithin();
    expect(cancelled.outcome).to.equal('cancelled');
    rules = orderRules.parse({ mode: 'on', cancelsMax: 1 });
    expect(await cancelWithin(), 'a repeat').to.deep.equal(cancelled);
    expect(refusals).to.deep.equal(['orders cancel_limit_reached on', 'orders cancel_limit_reached dry_run']);
  });

  it('lets a buyer cancel ten orders of a sale even without rules', () => {
    const limit = new CancelLimit(() => DEFAULT_RULES.orders, noAdmissionMetrics);
    expect([limit.maxOf(order.saleId), limit.refuses()]).to.deep.equal([10, true]);
  });

  it('does not count cancellations in another sale, or any while the rules are off', async () => {
    for (const raw of [{ mode: 'off' }, { mode: 'on', cancelsMax: 0, sales: ['1'] }]) {
      const limit = new CancelLimit(() => orderRules.parse(raw), {
        ...noAdmissionMetrics,
        refused: () => expect.fail('nothing is counted'),
      });
      expect(limit.maxOf(order.saleId)).to.equal(null);
    }
  });

  it('does not cancel a paid order', async () => {
    await pay();
    expect(await cancel()).to.deep.include({ outcome: 'wrong_state' });
    expect((await mysql.findOrder('99'))?.state).to.equal('paid');
  });
});
