import { expect } from 'chai';
import request from 'supertest';
import { PROVIDER_CALL_MAX_MS, type PaymentProvider } from '../../../src/core/ports/payment-provider.js';
import { createWebhookVerifier } from '../../../src/http/webhook-signature.js';
import { payOrder, type PayAnswer } from '../../../src/orders/buyer-orders.js';
import { payRefunds } from '../../../src/orders/pay-refunds.js';
import { resolveOrder, resolvePayments } from '../../../src/orders/resolve-payments.js';
import type { OrderJobMetrics } from '../../../src/orders/metrics.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryOrderTransitions } from '../../helpers/memory/memory-order-transitions.js';
import { MemoryPaymentCases } from '../../helpers/memory/memory-payment-cases.js';
import { MemoryPaymentAttempts } from '../../helpers/memory/memory-payment-attempts.js';
import { MemoryRefundRepository } from '../../helpers/memory/memory-refund-repository.js';
import { MemoryRepositories } from '../../helpers/memory/memory-repositories.js';
import { batchOf, purchaseOf, saleOf } from '../../helpers/sales.js';
import { silentLog as log } from '../../helpers/silent-log.js';
import { loadStripe, CARD, STRIPE_KEY, STRIPE_SECRET, StripeStandIn } from '../../helpers/stripe-stand-in.js';
import { AT_MS, FakeServices, startServer, type Started } from '../http/http-harness.js';
import { partial } from '../../helpers/partial.js';

const ORDER = '99';
const WINDOW_MS = 900_000;
/** Ages at which a keeper asks about a charge and at which it gives up the charge, ms. */
const ASKED_MS = PROVIDER_CALL_MAX_MS + 10_000;
const GIVEN_UP_MS = 600_000;

/** Shows how each fault of Stripe affects an order, with the webhook and Stripe over HTTP. */
describe('orders paid by Stripe', () => {
  let stripe: StripeStandIn;
  let provider: PaymentProvider;
  let clock: ManualClock;
  let mysql: MemoryRepositories;
  let transitions: MemoryOrderTransitions;
  let attempts: MemoryPaymentAttempts;
  let refunds: MemoryRefundRepository;
  let cases: MemoryPaymentCases;
  let api: Started;

  beforeEach(async () => {
    stripe = new StripeStandIn();
    const { openStripe, STRIPE_WEBHOOK } = await loadStripe();
    ({ provider } = await openStripe({ apiKey: STRIPE_KEY, apiUrl: await stripe.start() }, log));
    clock = new ManualClock();
    mysql = new MemoryRepositories({ clock });
    transitions = new MemoryOrderTransitions(mysql);
    attempts = new MemoryPaymentAttempts(clock, mysql);
    refunds = new MemoryRefundRepository(transitions, clock);
    cases = new MemoryPaymentCases(transitions, clock);
    const sale = saleOf({}, clock.nowMs());
    mysql.putSale(sale);
    const row = { orderId: ORDER, batch: batchOf(sale, [purchaseOf('ann*1')]), purchase: purchaseOf('ann*1') };
    const plan = { terms: await mysql.termsOf([sale.saleId]), releases: [], oneByOne: new Set<string>() };
    await mysql.write({ ...plan, orders: [{ ...row, failure: null }], paymentWindowMs: WINDOW_MS });
    api = await startServer(
      new FakeServices({
        webhook: {
          ...STRIPE_WEBHOOK,
          verifier: createWebhookVerifier([STRIPE_SECRET], () => AT_MS),
          mode: 'test',
          pay: (orderId, payment) => transitions.pay(orderId, payment),
          resolve: (orderId) => resolveOrder(orderId, { repository: mysql, attempts, transitions, provider, log }),
          money: {
            refundedElsewhere: async () => 'does_not_fit',
            cameBack: async () => false,
            disputed: async () => undefined,
          },
          isRefund: (paymentId) => refunds.has(paymentId),
          cases,
        },
      }),
    );
  });
  afterEach(async () => {
    await api.stop();
    await stripe.stop();
  });

  const pay = async (key: string, card = CARD.good, by = provider): Promise<PayAnswer['outcome']> => {
    const asked = { orderId: ORDER, userId: 'ann', key, method: card };
    return (await payOrder(asked, { repository: mysql, transitions, attempts, refunds, provider: by, clock, log }))
      .outcome;
  };
  /** Runs the keeper jobs. */
  const keep = async (): Promise<void> => {
    const metrics = partial<OrderJobMetrics>({ attemptResolved: () => undefined, refundTried: () => undefined });
    const ports = { repository: mysql, attempts, transitions, provider, metrics, log };
    await resolvePayments(ports, { max: 16, leaseMs: 60_000 }).runOnce();
    await payRefunds({ refunds, cases, provider, log, metrics }, { max: 16, leaseMs: 60_000 }).runOnce();
  };
  const intent = (index = 0) => [...stripe.intents.values()][index] ?? expect.fail('no intent');
  const report = (type: string, object: object = intent(), options: { live?: boolean } = {}) => {
    const { body, signature } = stripe.event(type, object, { atMs: AT_MS, ...options });
    return request(api.url)
      .post('/v1/payments/webhook')
      .set('content-type', 'application/json')
      .set('stripe-signature', signature)
      .send(body);
  };
  const state = async () => (await mysql.findOrder(ORDER))?.state;
  const attemptStates = () => [...attempts.rows.values()].map((row) => row.state);
  const owed = () => [...transitions.payments.values()].map(({ refund }) => refund);

  /** Makes the charge, but no answer arrives in time. */
  const deaf = (): PaymentProvider => ({
    ...provider,
    charge: async (...of) => {
      await provider.charge(...of);
      return { outcome: 'unknown' };
    },
  });
  /** Reports each charge by webhook before its answer arrives. */
  const outrun = (type: string): PaymentProvider => ({
    ...provider,
    async charge(...of) {
      const answer = await provider.charge(...of);
      await report(type).expect(200);
      return answer;
    },
  });

  it('are paid once by the webhook if the answer is lost after the charge', async () => {
    expect(await pay('k1', CARD.good, deaf())).to.equal('outcome_unknown');
    expect(await state()).to.equal('pending_payment');
    for (let i = 0; i < 2; i++) {
      expect((await report('payment_intent.succeeded').expect(200)).body).to.include({
        outcome: 'paid',
        orderId: ORDER,
      });
    }
    expect(await pay('k1'), 'the retry of the buyer').to.equal('paid');
    clock.advance(7 * 86_400_000);
    await report('payment_intent.succeeded').expect(200);
    await keep();
    expect([owed(), attemptStates(), stripe.taken]).to.deep.equal([[null], ['charged'], 1999]);
  });

  it('are paid by a keeper that asks Stripe if neither answer nor webhook arrives', async () => {
    expect(await pay('k1', CARD.good, deaf())).to.equal('outcome_unknown');
    clock.advance(ASKED_MS);
    await keep();
    expect([await state(), attemptStates()]).to.deep.equal(['paid', ['charged']]);
  });

  it('are paid by a keeper even after Stripe has forgotten the key', async () => {
    expect(await pay('k1', CARD.good, deaf())).to.equal('outcome_unknown');
    stripe.forgetKeys();
    clock.advance(ASKED_MS);
    await keep();
    expect([await state(), stripe.taken]).to.deep.equal(['paid', 1999]);
  });

  it('are paid once if the webhook arrives before the answer', async () => {
    expect(await pay('k1', CARD.good, outrun('payment_intent.succeeded'))).to.equal('paid');
    expect([owed(), attemptStates()]).to.deep.equal([[null], ['charged']]);
  });

  it('accept the next key at once after a declined card, and ignore late reports', async () => {
    expect(await pay('k1', CARD.declined, outrun('payment_intent.payment_failed'))).to.equal('declined');
    expect(await pay('k2')).to.equal('paid');
    for (const type of ['payment_intent.canceled', 'payment_intent.payment_failed']) await report(type).expect(200);
    expect([await state(), attemptStates(), owed()]).to.deep.equal(['paid', ['declined', 'charged'], [null]]);
  });

  it('refund money that arrives after the order has ended', async () => {
    expect(await pay('k1', CARD.good, deaf())).to.equal('outcome_unknown');
    await transitions.cancel(ORDER);
    expect((await report('payment_intent.succeeded').expect(200)).body).to.include({ outcome: 'refund_due' });
    expect(await pay('k1')).to.equal('refund_due');
    await keep();
    expect([owed(), stripe.taken]).to.deep.equal([['order_cancelled'], 0]);
    expect(refunds.tries(intent().id).state).to.equal('refunded');
    const [refund] = stripe.refunds.values();
    const charge = { payment_intent: intent().id, amount_refunded: 1999, currency: 'eur' };
    for (const [type, object] of [
      ['refund.updated', refund],
      ['charge.refunded', charge],
    ] as const) {
      expect((await report(type, object).expect(200)).body).to.deep.equal({ outcome: 'ignored' });
    }
    const failed = { ...refund, status: 'failed', failure_reason: 'expired_or_canceled_card' };
    expect((await report('refund.failed', failed).expect(200)).body).to.include({ outcome: 'noted' });
    expect(cases.rows[0]).to.include({ kind: 'refund_failed', orderId: ORDER, detail: 'expired_or_canceled_card' });
  });

  describe('a bank that asks its customer', () => {
    it('lets the webhook pay the order, and the same key report the payment', async () => {
      expect(await pay('k1', CARD.asks)).to.equal('action_needed');
      expect(await state()).to.equal('pending_payment');
      stripe.finishAction(intent().id, 'confirmed');
      await report('payment_intent.succeeded').expect(200);
      expect(await pay('k1', CARD.asks)).to.equal('paid');
      expect([owed(), stripe.taken]).to.deep.equal([[null], 1999]);
    });

    it('lets the same key or a keeper find the payment if no webhook arrives', async () => {
      expect(await pay('k1', CARD.asks)).to.equal('action_needed');
      clock.advance(ASKED_MS);
      await keep();
      expect(attemptStates(), 'the buyer has minutes').to.deep.equal(['open']);
      stripe.finishAction(intent().id, 'confirmed');
      clock.advance(60_000);
      await keep();
      expect(await state()).to.equal('paid');
    });

    it('ends the attempt and lets another card pay at once if the buyer refuses', async () => {
      expect(await pay('k1', CARD.asks)).to.equal('action_needed');
      stripe.finishAction(intent().id, 'refused');
      await report('payment_intent.payment_failed').expect(200);
      expect([intent().status, attemptStates()]).to.deep.equal(['canceled', ['declined']]);
      expect(await pay('k2')).to.equal('paid');
      expect(stripe.taken).to.equal(1999);
    });

    it('lets another key end an abandoned attempt after half a minute', async () => {
      expect(await pay('k1', CARD.asks)).to.equal('action_needed');
      expect(await pay('k2')).to.equal('payment_in_progress');
      clock.advance(ASKED_MS);
      expect(await pay('k2', CARD.asks)).to.equal('action_needed');
      expect(intent(0).status).to.equal('canceled');
      clock.advance(GIVEN_UP_MS);
      await keep();
      expect([intent(1).status, attemptStates()]).to.deep.equal(['canceled', ['declined', 'declined']]);
    });
  });

  it('take no money if the order ends before Stripe knows the charge', async () => {
    const gone: PaymentProvider = { ...provider, charge: () => Promise.resolve({ outcome: 'unknown' }) };
    expect(await pay('k1', CARD.good, gone)).to.equal('outcome_unknown');
    await transitions.cancel(ORDER);
    expect(await pay('k1')).to.equal('wrong_state');
    expect((await provider.charge(ORDER, { amountCents: 1999, currency: 'EUR' }, 'k1', CARD.good)).outcome).to.equal(
      'declined',
    );
    expect(stripe.taken).to.equal(0);
  });
});
