import { expect } from 'chai';
import { ConfigError } from '../../../src/core/config/load.js';
import type { Log } from '../../../src/core/ports/log.js';
import type { PaymentProvider, PaymentWebhook, Price } from '../../../src/core/ports/payment-provider.js';
import { silentLog } from '../../helpers/silent-log.js';
import { CARD, loadStripe, STRIPE_KEY, StripeStandIn, type Fault } from '../../helpers/stripe-stand-in.js';

const PRICE: Price = { amountCents: 1998, currency: 'EUR' };

describe('Stripe', () => {
  let openStripe: Awaited<ReturnType<typeof loadStripe>>['openStripe'];
  let webhook: PaymentWebhook;
  let stripe: StripeStandIn;
  let apiUrl: string;
  let provider: PaymentProvider;
  let logged: string[];
  const noted = (level: string) => (fields: object, message: string) =>
    void logged.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const log: Log = { ...silentLog, warn: noted('warn'), error: noted('error') };

  before(async () => {
    ({ openStripe, STRIPE_WEBHOOK: webhook } = await loadStripe());
  });
  beforeEach(async () => {
    logged = [];
    stripe = new StripeStandIn();
    apiUrl = await stripe.start();
    ({ provider } = await openStripe({ apiKey: STRIPE_KEY, apiUrl }, log));
    stripe.asked.length = 0;
  });
  afterEach(() => stripe.stop());
  afterEach('no secret was logged', () => {
    expect(logged.join('\n')).not.to.match(/sk_test_|whsec_|_secret_/);
  });

  const charge = (key = 'k1', card = CARD.good, price = PRICE) => provider.charge('99', price, key, card);
  const lookUp = (key = 'k1', giveUp = false) => provider.lookUp('99', PRICE, key, giveUp);
  const onlyIntent = () => {
    const [intent, ...more] = stripe.intents.values();
    expect(more, 'one intent').to.deep.equal([]);
    if (intent === undefined) throw new Error('no intent');
    return intent;
  };

  describe('a charge', () => {
    it('creates an intent and confirms it with the card, each with its Idempotency-Key', async () => {
      const answer = await charge();
      const { id, metadata } = onlyIntent();
      expect(answer).to.deep.equal({ outcome: 'succeeded', payment: { paymentId: id, ...PRICE } });
      expect(metadata).to.deep.equal({ order: '99', attempt: 'k1' });
      expect(stripe.asked).to.deep.equal(['POST /v1/payment_intents', 'POST /v1/payment_intents/:id/confirm']);
      expect(stripe.lastHeaders['idempotency-key']).to.equal(`confirm-${id}-k1`);
      expect(stripe.lastHeaders).not.to.have.property('x-stripe-client-telemetry');
    });

    it('ends the intent of a declined or unknown card', async () => {
      expect(await charge('k1', CARD.declined)).to.deep.equal({ outcome: 'declined' });
      expect(onlyIntent().status).to.equal('canceled');
      expect(logged, 'a declined card is not logged').to.deep.equal([]);
      expect(await charge('k2', 'pm_of_another_account')).to.deep.equal({ outcome: 'declined' });
      expect(logged.join()).to.contain('No such PaymentMethod');
    });

    it('pays after the buyer confirms with the bank, and declines after the buyer refuses', async () => {
      const { id } = await asking('k1');
      stripe.finishAction(id, 'confirmed');
      expect((await charge('k1', CARD.asks)).outcome).to.equal('succeeded');
      const other = await asking('k2');
      stripe.finishAction(other.id, 'refused');
      expect(await lookUp('k2')).to.deep.equal({ outcome: 'declined' });
      expect(stripe.intents.get(other.id)?.status).to.equal('canceled');
      expect(stripe.taken).to.equal(1998);
    });

    it('does not charge twice if another card arrives with the same key', async () => {
      await charge();
      expect((await charge('k1', CARD.asks)).outcome).to.equal('succeeded');
      expect(stripe.taken).to.equal(1998);
    });

    it('declines a price that Stripe refuses, and logs it for the owner of the sale', async () => {
      const small = { amountCents: 10, currency: 'EUR' };
      expect(await charge('k1', CARD.good, small)).to.deep.equal({ outcome: 'declined' });
      expect(await provider.lookUp('99', small, 'k1')).to.deep.equal({ outcome: 'not_found' });
      expect(logged.join()).to.match(/error Stripe refuses this price.*amount_too_small/);
    });

    it('returns unknown and logs on too many requests and on a withdrawn key', async () => {
      stripe.break(/confirm/, 'busy');
      expect(await charge()).to.deep.equal({ outcome: 'unknown' });
      expect((await charge()).outcome, 'again').to.equal('succeeded');
      expect(logged.join()).to.contain('"statusCode":429');
      stripe.isKeyWithdrawn = true;
      expect(await charge('k2')).to.deep.equal({ outcome: 'unknown' });
      expect(logged.join()).to.contain('Invalid API Key provided: …"');
    });
  });

  describe('the answer `declined`, given only if the charge can take no money any more [P1]', () => {
    const CALLS = { create: /POST .*payment_intents$/, confirm: /confirm$/, retrieve: /GET .*pi_/, cancel: /cancel$/ };
    const FAULTS: Fault[] = ['error', 'busy', 'away', 'overtaken'];
    for (const [call, path] of Object.entries(CALLS)) {
      it(`holds for every fault of the call ${call}, with each card, for charges and look-ups`, async () => {
        for (const fault of FAULTS) {
          for (const [word, card] of Object.entries(CARD)) {
            const key = `${fault}-${word}`;
            const ofKey = () => [...stripe.intents.values()].filter(({ metadata }) => metadata['attempt'] === key);
            for (const ask of [
              () => charge(key, card),
              () => charge(key, card),
              () => lookUp(key),
              () => lookUp(key, true),
            ]) {
              stripe.break(path, fault);
              const { outcome } = await ask();
              stripe.clearFaults();
              const alive = ofKey().filter(({ status }) => status !== 'canceled');
              if (outcome === 'declined') expect(alive, `${key} ${outcome}`).to.deep.equal([]);
              if (outcome === 'not_found')
                expect(
                  alive.filter((one) => one.status !== 'requires_payment_method'),
                  key,
                ).to.deep.equal([]);
            }
          }
        }
      });
    }
  });

  it('looks up and ends an intent that an earlier release made with other parameters', async () => {
    stripe.break(/payment_intents$/, 'overtaken');
    expect(await charge()).to.deep.equal({ outcome: 'unknown' });
    stripe.isSearchLate = true;
    expect(await lookUp('k1', true), 'it exists, and the search is late').to.deep.equal({ outcome: 'unknown' });
    stripe.isSearchLate = false;
    expect(await lookUp()).to.deep.equal({ outcome: 'not_found' });
    expect(await lookUp('k1', true)).to.deep.equal({ outcome: 'declined' });
    expect(onlyIntent().status).to.equal('canceled');
  });

  async function asking(key: string): Promise<{ readonly id: string }> {
    const answer = await charge(key, CARD.asks);
    const intent = [...stripe.intents.values()].find(({ status }) => status === 'requires_action');
    expect(answer).to.deep.equal({ outcome: 'action_needed', clientSecret: intent?.client_secret });
    return intent as { id: string };
  }

  it("returns the bank's question of an earlier request with the same key and another card", async () => {
    stripe.break(/confirm$/, 'overtaken');
    const overtaken = await charge('k1', CARD.good);
    const intent = [...stripe.intents.values()][0];
    expect(overtaken).to.deep.equal({ outcome: 'action_needed', clientSecret: intent?.client_secret });
    expect(intent?.status).to.equal('requires_action');
  });

  it('finds no charge while the search of Stripe lags', async () => {
    await charge();
    stripe.forgetKeys();
    stripe.isSearchLate = true;
    expect(await lookUp()).to.deep.equal({ outcome: 'not_found' });
    stripe.isSearchLate = false;
    expect((await lookUp()).outcome).to.equal('succeeded');
  });

  describe('a look-up of a charge', () => {
    it('reports no charge if none was made, and lets a later charge succeed', async () => {
      expect(await lookUp()).to.deep.equal({ outcome: 'not_found' });
      expect(stripe.asked.join()).not.to.contain('confirm');
      expect((await charge()).outcome).to.equal('succeeded');
      expect(onlyIntent().amount_received).to.equal(1998);
    });

    it('finds a charge by its metadata once Stripe has forgotten the key', async () => {
      const answer = await charge();
      stripe.forgetKeys();
      for (let i = 0; i < 2; i++) expect(await lookUp()).to.deep.equal(answer);
      expect(stripe.taken).to.equal(1998);
    });

    it('finds that nothing was charged although Stripe repeats its fault for a day', async () => {
      stripe.break(/POST \/v1\/payment_intents$/, 'error');
      expect(await charge()).to.deep.equal({ outcome: 'unknown' });
      expect(await charge(), 'the key repeats it').to.deep.equal({ outcome: 'unknown' });
      expect(await lookUp()).to.deep.equal({ outcome: 'not_found' });
    });

    it('returns unknown on a new fault while the search lags, and finds the charge afterwards', async () => {
      expect((await charge()).outcome, 'the caller is gone').to.equal('succeeded');
      stripe.isSearchLate = true;
      stripe.break(/POST \/v1\/payment_intents$/, 'away');
      expect(await lookUp('k1', true)).to.deep.equal({ outcome: 'unknown' });
      expect((await lookUp('k1', true)).outcome).to.equal('succeeded');
    });

    it('returns unknown after a fault of the confirmation until the charge is given up', async () => {
      stripe.break(/confirm/, 'error');
      expect(await charge()).to.deep.equal({ outcome: 'unknown' });
      expect(await charge()).to.deep.equal({ outcome: 'unknown' });
      expect(await lookUp('k1', true)).to.deep.equal({ outcome: 'declined' });
      expect(await charge()).to.deep.equal({ outcome: 'declined' });
      expect(stripe.taken).to.equal(0);
    });

    it('makes a given-up charge fail when it arrives later', async () => {
      expect(await lookUp('k1', true)).to.deep.equal({ outcome: 'declined' });
      expect(await charge()).to.deep.equal({ outcome: 'declined' });
      expect(stripe.taken).to.equal(0);
    });

    it('counts the money if the buyer confirms while the charge is being given up', async () => {
      const { id } = await asking('k1');
      stripe.break(/cancel/, 'error');
      expect(await lookUp('k1', true), 'the end of the charge is unknown').to.deep.equal({ outcome: 'unknown' });
      stripe.finishAction(id, 'confirmed');
      expect((await lookUp('k1', true)).outcome).to.equal('succeeded');
    });
  });

  describe('amounts', () => {
    for (const [currency, amountCents, amount] of [
      ['EUR', 1999, 1999],
      ['JPY', 500, 500],
      ['ISK', 500, 50_000],
      ['UGX', 500, 50_000],
      ['HUF', 50_000, 50_000],
      ['KWD', 19_990, 19_990],
      ['MGA', 50_000, 500],
    ] as const) {
      it(`converts ${amountCents} of ${currency} to ${amount} of Stripe and back`, async () => {
        const answer = await charge('k1', CARD.good, { amountCents, currency });
        expect(onlyIntent()).to.include({ amount, currency: currency.toLowerCase() });
        expect(answer).to.have.property('payment').that.deep.includes({ amountCents, currency });
      });
    }

    it('declines a fraction of the smallest coin without a call, and logs it', async () => {
      for (const currency of ['KWD', 'MGA']) {
        expect(await charge('k1', CARD.good, { amountCents: 1999, currency })).to.deep.equal({ outcome: 'declined' });
      }
      expect(stripe.asked).to.deep.equal([]);
      expect(logged.join()).to.contain('a part of the smallest coin');
    });
  });

  describe('a refund', () => {
    it('refunds the whole payment, and accepts a refund that already exists', async () => {
      await charge();
      const { id } = onlyIntent();
      expect(await provider.refund(id, 1998, id)).to.deep.equal({ outcome: 'refunded' });
      stripe.forgetKeys();
      expect(await provider.refund(id, 1998, id), 'a day later').to.deep.equal({ outcome: 'refunded' });
      expect(stripe.taken).to.equal(0);
    });

    it('refunds a part once, even after Stripe has forgotten its key a day later', async () => {
      await charge();
      const { id } = onlyIntent();
      for (let i = 0; i < 2; i++) {
        const part = { refundId: '7', currency: 'EUR' };
        expect(await provider.refund(id, 500, `${id}-7`, part)).to.deep.equal({ outcome: 'refunded' });
        stripe.forgetKeys();
      }
      const made = [...stripe.refunds.values()].map(({ amount, metadata }) => [amount, metadata.refund]);
      expect(made).to.deep.equal([[500, '7']]);
    });

    it('refuses a payment that took nothing, and a foreign payment without a call', async () => {
      const { id } = await asking('k1');
      expect(await provider.refund(id, 1998, id)).to.deep.equal({
        outcome: 'refused',
        detail: 'It has no successful charge to refund.',
      });
      stripe.asked.length = 0;
      expect(await provider.refund('simulated-1', 1998, 'k')).to.include({ outcome: 'refused' });
      expect(stripe.asked).to.deep.equal([]);
    });
  });

  describe('the start', () => {
    const startError = async (apiKey: string): Promise<string> => {
      const error: unknown = await openStripe({ apiKey, apiUrl }, log).catch((reason: unknown) => reason);
      expect(error).to.be.instanceOf(Error).with.property('name', ConfigError.name);
      return (error as ConfigError).problems.join();
    };

    it('fails with the remedy if Stripe refuses the key or the key lacks permissions', async () => {
      expect(await startError('sk_test_of_another')).to.match(/^Stripe refuses PAYMENT_API_KEY \(401\): copy/);
      expect(await startError('rk_test_poor_one')).to.match(
        /^PAYMENT_API_KEY may not read PaymentIntents \(403\): allow/,
      );
    });

    it('succeeds if Stripe does not answer', async () => {
      stripe.break(/GET/, 'error');
      await openStripe({ apiKey: STRIPE_KEY, apiUrl }, log);
      expect(logged).to.have.length(1);
      expect(logged[0]).to.match(/^warn Stripe does not answer; nobody can pay until it answers/);
    });
  });

  describe('events', () => {
    const read = (type: string, object: object, live = true) => webhook.read(stripe.event(type, object, { live }).body);
    const intent = { id: 'pi_1', amount_received: 500, currency: 'jpy', metadata: { order: '99', attempt: 'k1' } };

    it('report a successful payment in our amount', () => {
      expect(read('payment_intent.succeeded', intent)).to.deep.equal({
        type: 'succeeded',
        orderId: '99',
        payment: { paymentId: 'pi_1', amountCents: 500, currency: 'JPY' },
        live: true,
      });
    });

    it('tell us to ask Stripe if a payment failed or was cancelled', () => {
      for (const type of ['payment_intent.payment_failed', 'payment_intent.canceled']) {
        expect(read(type, intent, false)).to.deep.equal({ type: 'changed', orderId: '99', live: false });
      }
    });

    it('report a failed refund of ours, but nothing that we already know', () => {
      const refund = {
        id: 're_1',
        status: 'failed',
        failure_reason: 'lost_or_stolen_card',
        payment_intent: 'pi_1',
      };
      expect(read('refund.failed', refund)).to.deep.equal({
        type: 'refund_failed',
        refundId: 're_1',
        paymentId: 'pi_1',
        detail: 'lost_or_stolen_card',
        live: true,
      });
      expect(read('refund.updated', { ...refund, status: 'succeeded' })).to.deep.equal({ type: 'other' });
      expect(read('refund.failed', { ...refund, payment_intent: null })).to.deep.equal({ type: 'other' });
    });

    it('name the refund of an order by our id, and distinguish lost and open disputes', () => {
      const refund = { id: 're_1', status: 'failed', payment_intent: 'pi_1', metadata: { refund: '77' } };
      expect(read('refund.failed', refund)).to.include({ refundId: 're_1', ourId: '77' });
      const dispute = { id: 'du_1', payment_intent: 'pi_1', amount: 500, currency: 'eur', reason: 'fraudulent' };
      const closed = (status: string) => read('charge.dispute.closed', { ...dispute, status });
      expect(closed('lost')).to.include({ type: 'disputed', isOver: false, isLost: true });
      expect(closed('won')).to.include({ type: 'disputed', isOver: true }).and.not.have.property('isLost');
    });

    it('ignore other types and foreign payments of the account', () => {
      for (const [type, object] of [
        ['charge.refunded', { id: 'ch_1', metadata: { order: '99' } }],
        ['customer.created', {}],
        ['payment_intent.created', intent],
        ['payment_intent.succeeded', { ...intent, metadata: {} }],
        ['payment_intent.succeeded', { ...intent, metadata: { order: 'A-17', attempt: 'k1' } }],
        ['payment_intent.succeeded', { ...intent, metadata: { order: '1001' } }],
      ] as const) {
        expect(read(type, object), type).to.deep.equal({ type: 'other' });
      }
    });

    it('keep the details of an unreadable report that may be about money', () => {
      const odd = read('payment_intent.succeeded', { ...intent, amount_received: '500' });
      expect(odd).to.deep.include({ type: 'unreadable' });
      expect(odd)
        .to.have.property('claims')
        .that.deep.includes({ orderId: '99', paymentId: 'pi_1', amountCents: '500' });
      for (const body of ['', '{', '[]', 'null', '{"type":"x"}']) {
        expect(webhook.read(body), body).to.include({ type: 'unreadable' });
      }
    });
  });
});
