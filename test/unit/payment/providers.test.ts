import { expect } from 'chai';
import type { PaymentProvider, Price } from '../../../src/core/ports/payment-provider.js';
import { openPayments } from '../../../src/payment/open-payments.js';
import { PaymentServiceStandIn, SERVICE_KEY } from '../../helpers/payment-service-stand-in.js';
import { silentLog } from '../../helpers/silent-log.js';
import { CARD, STRIPE_KEY, StripeStandIn } from '../../helpers/stripe-stand-in.js';
import { partial } from '../../helpers/partial.js';

const PRICE: Price = { amountCents: 1998, currency: 'EUR' };

interface World {
  readonly provider: PaymentProvider;
  /** Cards that make this provider pay, decline, or ask the buyer first. Undefined if it knows no cards. */
  readonly cards: { readonly good: string; readonly declined?: string; readonly asks?: string };
  /** Key that makes it decline if it knows no cards. */
  readonly declinedKey?: string;
  /** Makes the charge and loses its answer. */
  readonly loseAnswer?: () => void;
  /** The money that was returned so far. */
  readonly refunded?: () => number;
  stop(): Promise<void>;
}

/** Whether a stand-in has lost an answer. Only then is the time of its call over. */
let isLost = (): boolean => false;
const clock = {
  sleep: (_ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const timer = setInterval(() => (signal?.aborted || isLost() ? end() : undefined), 5);
      const end = (): void => {
        clearInterval(timer);
        isLost = () => false;
        resolve();
      };
    }),
};

const config = { apiKey: '', apiUrl: '', webhookSecret: '', webhookSecretBefore: '', webhookMode: 'test' } as const;
const open = async (own: Partial<Parameters<typeof openPayments>[0]>): Promise<PaymentProvider> => {
  const payments = await openPayments(
    { provider: 'none', ...config, ...own },
    { clock: partial(clock), log: silentLog },
  );
  if (payments === null) throw new Error('no provider');
  return payments.provider;
};

const WORLDS: Readonly<Record<string, () => Promise<World>>> = {
  simulator: async () => ({
    provider: await open({ provider: 'simulator' }),
    cards: { good: 'any' },
    declinedKey: 'decline-1',
    stop: () => Promise.resolve(),
  }),
  http: async () => {
    const service = new PaymentServiceStandIn();
    const apiUrl = `${await service.start()}/pay/`;
    return {
      provider: await open({ provider: 'http', apiKey: SERVICE_KEY, apiUrl }),
      cards: { good: 'any', declined: 'declined', asks: 'asks' },
      refunded: () => [...service.refunds.values()].reduce((sum, cents) => sum + cents, 0),
      loseAnswer: () => {
        service.breakNext('slow');
        const before = service.asked.length;
        isLost = () => service.asked.length > before;
      },
      stop: () => service.stop(),
    };
  },
  stripe: async () => {
    const stripe = new StripeStandIn();
    const apiUrl = await stripe.start();
    return {
      provider: await open({ provider: 'stripe', apiKey: STRIPE_KEY, apiUrl }),
      cards: CARD,
      refunded: () => [...stripe.refunds.values()].reduce((sum, { amount }) => sum + amount, 0),
      loseAnswer: () => {
        stripe.break(/confirm/, 'slow');
        isLost = () => stripe.asked.some((request) => request.includes('confirm'));
      },
      stop: () => stripe.stop(),
    };
  },
};

for (const [name, createWorld] of Object.entries(WORLDS)) {
  describe(`payment provider: ${name}`, () => {
    let world: World;
    let provider: PaymentProvider;
    beforeEach(async () => {
      world = await createWorld();
      ({ provider } = world);
    });
    afterEach(() => world.stop());
    const charge = (key: string, orderId = '99', card = world.cards.good) => provider.charge(orderId, PRICE, key, card);
    const paymentOf = async (key: string, orderId?: string) => {
      const answer = await charge(key, orderId);
      if (answer.outcome !== 'succeeded') throw new Error(answer.outcome);
      return answer.payment;
    };

    it('makes one payment per order and key, with the requested amount and currency', async () => {
      const payment = await paymentOf('k1');
      expect(payment).to.deep.include(PRICE);
      expect(payment.paymentId).to.match(/^[\w-]{1,64}$/);
      expect(await paymentOf('k1')).to.deep.equal(payment);
      expect(await provider.lookUp('99', PRICE, 'k1')).to.deep.equal({ outcome: 'succeeded', payment });
      expect(await provider.lookUp('99', PRICE, 'k1', true), 'given up too late').to.include({ outcome: 'succeeded' });
    });

    it('makes another payment for another order or another key', async () => {
      const ids = [await paymentOf('k1'), await paymentOf('k2'), await paymentOf('k1', '98')].map(
        (one) => one.paymentId,
      );
      expect(new Set(ids).size).to.equal(3);
    });

    it('keeps a declined charge declined', async () => {
      const key = world.declinedKey ?? 'k1';
      for (let i = 0; i < 2; i++) {
        expect(await charge(key, '99', world.cards.declined)).to.deep.equal({ outcome: 'declined' });
        expect(await provider.lookUp('99', PRICE, key)).to.deep.equal({ outcome: 'declined' });
      }
    });

    it('refunds a payment once, however often we ask, and refuses to refund a foreign payment', async () => {
      const { paymentId } = await paymentOf('k1');
      for (let i = 0; i < 2; i++) {
        expect(await provider.refund(paymentId, 1998, paymentId)).to.deep.equal({ outcome: 'refunded' });
      }
      for (const foreign of ['another-1', 'pi_another']) {
        expect((await provider.refund(foreign, 1998, foreign)).outcome).to.equal('refused');
      }
    });

    // The simulator has no state: it counts a charge that was begun as made.
    if (name === 'simulator') return;

    it('refunds an order in parts, each once, however often we ask', async () => {
      const { paymentId } = await paymentOf('k1');
      for (const [refundId, cents] of [
        ['1', 700],
        ['1', 700],
        ['2', 700],
        ['3', 598],
        ['2', 700],
      ] as const) {
        const answer = await provider.refund(paymentId, cents, `${paymentId}-${refundId}`, {
          refundId,
          currency: 'EUR',
        });
        expect(answer).to.deep.equal({ outcome: 'refunded' });
      }
      expect(world.refunded?.()).to.equal(1998);
    });

    it('returns unknown from every call while its server is down', async () => {
      await world.stop();
      const paymentId = 'pi_1';
      const answers = [charge('k1'), provider.lookUp('99', PRICE, 'k1'), provider.refund(paymentId, 1998, paymentId)];
      expect((await Promise.all(answers)).map(({ outcome }) => outcome)).to.deep.equal([
        'unknown',
        'unknown',
        'unknown',
      ]);
    });

    it('returns unknown if the answer to a charge is lost, and finds the payment by look-up', async () => {
      world.loseAnswer?.();
      expect(await charge('k1')).to.deep.equal({ outcome: 'unknown' });
      const found = await provider.lookUp('99', PRICE, 'k1');
      expect(found).to.deep.include({ outcome: 'succeeded' });
      expect(await charge('k1')).to.deep.equal(found);
    });

    it('returns not_found for a charge that was never made', async () => {
      expect(await provider.lookUp('99', PRICE, 'k1')).to.deep.equal({ outcome: 'not_found' });
      expect((await charge('k1')).outcome, 'may be charged afterwards').to.equal('succeeded');
    });

    it('takes no money before the buyer confirms, or once a charge is given up', async () => {
      const { asks } = world.cards;
      const first = await charge('k1', '99', asks);
      expect(first).to.include({ outcome: 'action_needed' });
      expect(first)
        .to.have.property('clientSecret')
        .that.matches(/secret/);
      expect(await charge('k1', '99', asks)).to.deep.equal(first);
      expect(await provider.lookUp('99', PRICE, 'k1')).to.deep.equal(first);
      expect(await provider.lookUp('99', PRICE, 'k1', true)).to.deep.equal({ outcome: 'declined' });
      expect(await charge('k1', '99', asks)).to.deep.equal({ outcome: 'declined' });
    });
  });
}
