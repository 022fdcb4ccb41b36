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
    it('is an intent that names order and key, and its confirmation with the card; each has its Idempotency-Key', async () => {
      const answer = await charge();
      const { id, metadata } = onlyIntent();
      expect(answer).to.deep.equal({ outcome: 'succeeded', payment: { paymentId: id, ...PRICE } });
      expect(metadata).to.deep.equal({ order: '99', attempt: 'k1' });
      expect(stripe.asked).to.deep.equal(['POST /v1/payment_intents', 'POST /v1/payment_intents/:id/confirm']);
      expect(stripe.lastHeaders['idempotency-key']).to.equal(`confirm-${id}-k1`);
      expect(stripe.lastHeaders).not.to.have.property('x-stripe-client-telemetry');
    });

    it('two at once with one key take the money once, and so does a broken connection', async () => {
      const both = await Promise.all([charge(), charge()]);
      expect(both.filter(({ outcome }) => outcome === 'succeeded')).to.have.length.above(0);
      stripe.break(/confirm/, 'reset');
      expect((await charge('k2')).outcome).to.equal('succeeded');
      expect(stripe.taken).to.equal(2 * 1998);
    });

    it('a card that was declined, or that nobody knows: the intent is ended, so that no other card can pay with it', async () => {
      expect(await charge('k1', CARD.declined)).to.deep.equal({ outcome: 'declined' });
      expect(onlyIntent().status).to.equal('canceled');
      expect(logged, 'a declined card is nothing to log').to.deep.equal([]);
      expect(await charge('k2', 'pm_of_another_account')).to.deep.equal({ outcome: 'declined' });
      expect(logged.join()).to.contain('No such PaymentMethod');
    });

    it('one that the bank asks about is paid when the buyer has confirmed, and declined when they have not', async () => {
      const { id } = await asking('k1');
      stripe.finishAction(id, 'confirmed');
      expect((await charge('k1', CARD.asks)).outcome).to.equal('succeeded');
      const other = await asking('k2');
      stripe.finishAction(other.id, 'refused');
      expect(await lookUp('k2')).to.deep.equal({ outcome: 'declined' });
      expect(stripe.intents.get(other.id)?.status).to.equal('canceled');
      expect(stripe.taken).to.equal(1998);
    });

    it('another card with the same key does not charge twice', async () => {
      await charge();
      expect((await charge('k1', CARD.asks)).outcome).to.equal('succeeded');
      expect(stripe.taken).to.equal(1998);
    });

    it('a price that Stripe does not take is declined, and logged for whoever made the sale', async () => {
      const small = { amountCents: 10, currency: 'EUR' };
      expect(await charge('k1', CARD.good, small)).to.deep.equal({ outcome: 'declined' });
      expect(await provider.lookUp('99', small, 'k1')).to.deep.equal({ outcome: 'not_found' });
      expect(logged.join()).to.match(/error Stripe does not take this price.*amount_too_small/);
    });

    it('too many requests, and a key that was withdrawn, are unknown and logged', async () => {
      stripe.break(/confirm/, 'busy');
      expect(await charge()).to.deep.equal({ outcome: 'unknown' });
      expect((await charge()).outcome, 'again').to.equal('succeeded');
      expect(logged.join()).to.contain('"statusCode":429');
      stripe.isKeyWithdrawn = true;
      expect(await charge('k2')).to.deep.equal({ outcome: 'unknown' });
      expect(logged.join()).to.contain('Invalid API Key provided: …"');
    });
  });

  describe('says declined only of a charge that can take no money any more [P1]', () => {
    const CALLS = { create: /POST .*payment_intents$/, confirm: /confirm$/, retrieve: /GET .*pi_/, cancel: /cancel$/ };
    const FAULTS: Fault[] = ['error', 'busy', 'away', 'overtaken'];
    for (const [call, path] of Object.entries(CALLS)) {
      it(`whatever goes wrong with the call ${call}, with each card, charged or looked up`, async () => {
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

  it('looks up an intent that an earlier release has made with other parameters, and ends it when nobody waits', async () => {
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

  it('a second request with its key, and another card, leaves the question of the bank to the first', async () => {
    stripe.break(/confirm$/, 'overtaken');
    const overtaken = await charge('k1', CARD.good);
    const intent = [...stripe.intents.values()][0];
    expect(overtaken).to.deep.equal({ outcome: 'action_needed', clientSecret: intent?.client_secret });
    expect(intent?.status).to.equal('requires_action');
  });

  it('a search that is late finds nothing, which is not believed before minutes have gone by', async () => {
    await charge();
    stripe.forgetKeys();
    stripe.isSearchLate = true;
    expect(await lookUp()).to.deep.equal({ outcome: 'not_found' });
    stripe.isSearchLate = false;
    expect((await lookUp()).outcome).to.equal('succeeded');
  });

  describe('what became of a charge', () => {
    it('is asked without a way to take money, and leaves a charge that was never made as it was', async () => {
      expect(await lookUp()).to.deep.equal({ outcome: 'not_found' });
      expect(stripe.asked.join()).not.to.contain('confirm');
      expect((await charge()).outcome).to.equal('succeeded');
      expect(onlyIntent().amount_received).to.equal(1998);
    });

    it('a day later, when Stripe has forgotten the key, it is found by its metadata, again and again', async () => {
      const answer = await charge();
      stripe.forgetKeys();
      for (let i = 0; i < 2; i++) expect(await lookUp()).to.deep.equal(answer);
      expect(stripe.taken).to.equal(1998);
    });

    it('a fault that Stripe repeats for a day does not hide that nothing was charged', async () => {
      stripe.break(/POST \/v1\/payment_intents$/, 'error');
      expect(await charge()).to.deep.equal({ outcome: 'unknown' });
      expect(await charge(), 'the key repeats it').to.deep.equal({ outcome: 'unknown' });
      expect(await lookUp()).to.deep.equal({ outcome: 'not_found' });
    });

    it('a fault that is new hides nothing: a search that is late too is not believed', async () => {
      expect((await charge()).outcome, 'whoever asked is gone').to.equal('succeeded');
      stripe.isSearchLate = true;
      stripe.break(/POST \/v1\/payment_intents$/, 'away');
      expect(await lookUp('k1', true)).to.deep.equal({ outcome: 'unknown' });
      expect((await lookUp('k1', true)).outcome).to.equal('succeeded');
    });

    it('a fault of the confirmation is unknown until it is given up; then no money can come of it', async () => {
      stripe.break(/confirm/, 'error');
      expect(await charge()).to.deep.equal({ outcome: 'unknown' });
      expect(await charge()).to.deep.equal({ outcome: 'unknown' });
      expect(await lookUp('k1', true)).to.deep.equal({ outcome: 'declined' });
      expect(await charge()).to.deep.equal({ outcome: 'declined' });
      expect(stripe.taken).to.equal(0);
    });

    it('one that was given up before it arrived cannot be charged any more', async () => {
      expect(await lookUp('k1', true)).to.deep.equal({ outcome: 'declined' });
      expect(await charge()).to.deep.equal({ outcome: 'declined' });
      expect(stripe.taken).to.equal(0);
    });

    it('given up in the moment in which the buyer confirms, the money counts', async () => {
      const { id } = await asking('k1');
      stripe.break(/cancel/, 'error');
      expect(await lookUp('k1', true), 'whether it was ended is not known').to.deep.equal({ outcome: 'unknown' });
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
      it(`${amountCents} of ${currency} are ${amount} of Stripe, there and back`, async () => {
        const answer = await charge('k1', CARD.good, { amountCents, currency });
        expect(onlyIntent()).to.include({ amount, currency: currency.toLowerCase() });
        expect(answer).to.have.property('payment').that.deep.includes({ amountCents, currency });
      });
    }

    it('a part of the smallest coin cannot be charged: declined without a call, and logged', async () => {
      for (const currency of ['KWD', 'MGA']) {
        expect(await charge('k1', CARD.good, { amountCents: 1999, currency })).to.deep.equal({ outcome: 'declined' });
      }
      expect(stripe.asked).to.deep.equal([]);
      expect(logged.join()).to.contain('a part of the smallest coin');
    });
  });

  describe('a refund', () => {
    it('is whole; one that was made in the dashboard is made', async () => {
      await charge();
      const { id } = onlyIntent();
      expect(await provider.refund(id, 1998, id)).to.deep.equal({ outcome: 'refunded' });
      stripe.forgetKeys();
      expect(await provider.refund(id, 1998, id), 'a day later').to.deep.equal({ outcome: 'refunded' });
      expect(stripe.taken).to.equal(0);
    });

    it('of a payment that took nothing is refused with what Stripe says, one of another provider without a call', async () => {
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

  describe('at the start', () => {
    const startError = async (apiKey: string): Promise<string> => {
      const error: unknown = await openStripe({ apiKey, apiUrl }, log).catch((reason: unknown) => reason);
      expect(error).to.be.instanceOf(Error).with.property('name', ConfigError.name);
      return (error as ConfigError).problems.join();
    };

    it('a key that Stripe does not accept, or that may do too little, is one sentence that says what to do', async () => {
      expect(await startError('sk_test_of_another')).to.match(
        /^PAYMENT_API_KEY is not accepted by Stripe \(401\): copy/,
      );
      expect(await startError('rk_test_poor_one')).to.match(
        /^PAYMENT_API_KEY may not read PaymentIntents \(403\): let/,
      );
    });

    it('a Stripe that does not answer keeps nobody from starting', async () => {
      stripe.break(/GET/, 'error');
      await openStripe({ apiKey: STRIPE_KEY, apiUrl }, log);
      expect(logged).to.have.length(1);
      expect(logged[0]).to.match(/^warn Stripe does not answer: nothing is paid until it does/);
    });
  });

  describe('events', () => {
    const read = (type: string, object: object, live = true) => webhook.read(stripe.event(type, object, { live }).body);
    const intent = { id: 'pi_1', amount_received: 500, currency: 'jpy', metadata: { order: '99', attempt: 'k1' } };

    it('a payment that succeeded is reported in our amount', () => {
      expect(read('payment_intent.succeeded', intent)).to.deep.equal({
        type: 'succeeded',
        orderId: '99',
        payment: { paymentId: 'pi_1', amountCents: 500, currency: 'JPY' },
        live: true,
      });
    });

    it('one that failed or was ended says that Stripe is to be asked', () => {
      for (const type of ['payment_intent.payment_failed', 'payment_intent.canceled']) {
        expect(read(type, intent, false)).to.deep.equal({ type: 'changed', orderId: '99', live: false });
      }
    });

    it('a refund of ours that did not arrive is reported; the others are what we know', () => {
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

    it('other types, and payments that others made with this account, are ignored', () => {
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

    it('what may be about money and cannot be read says what it claims', () => {
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
