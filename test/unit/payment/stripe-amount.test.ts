import { expect } from 'chai';
import fc from 'fast-check';
import { priceFaultOf } from '../../../src/payment/price-fault.js';
import { answersInTime } from '../../../src/payment/answers-in-time.js';
import { createPaymentSimulator } from '../../../src/payment/simulator.js';
import type { PaymentProvider, Price } from '../../../src/core/ports/payment-provider.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { silentLog } from '../../helpers/silent-log.js';
import { fromStripeAmount, stripeFault, toStripeAmount } from '../../../src/payment/stripe-amount.js';

const PRICES = fc.record({
  currency: fc.constantFrom(...Intl.supportedValuesOf('currency')),
  amountCents: fc.nat({ max: 4_294_967_295 }),
});

describe('amounts of Stripe', () => {
  it('charges a valid price as a whole number and reads it back as the same price', () => {
    fc.assert(
      fc.property(PRICES, (price) => {
        const amount = toStripeAmount(price);
        if (stripeFault(price) === null) expect(amount).to.satisfy(Number.isSafeInteger);
        if (amount !== null) expect(fromStripeAmount(amount, price.currency)).to.equal(price.amountCents);
      }),
    );
  });

  for (const [amountCents, currency, fault] of [
    [0, 'EUR', null],
    [50, 'EUR', null],
    [10, 'EUR', 'must be 0, or 50 or more: Stripe charges 0.50 EUR or more'],
    [49, 'JPY', 'must be 0, or 50 or more: Stripe charges 50 JPY or more'],
    [1999, 'JPY', null],
    [25_000_000, 'VND', null],
    [1999, 'KWD', 'must be a multiple of 10: Stripe charges no smaller part of KWD'],
    [1999, 'MGA', 'must be a multiple of 100: Stripe charges no smaller part of MGA'],
    [17_499, 'HUF', 'must be 0, or 17500 or more: Stripe charges 175.00 HUF or more'],
  ] as const) {
    it(`judges ${amountCents} of ${currency}: ${fault ?? 'can be charged'}`, () => {
      expect(priceFaultOf({ provider: 'stripe' })({ amountCents, currency })).to.equal(fault);
      for (const provider of ['none', 'simulator', 'http'] as const)
        expect(priceFaultOf({ provider })({ amountCents, currency })).to.equal(null);
    });
  }

  it('judges by the limits of a provider of the library, if it has any', () => {
    const simulator = createPaymentSimulator();
    const limited = { ...simulator, priceFault: ({ amountCents }: Price) => (amountCents < 50 ? 'too small' : null) };
    const faultOf = (provider: PaymentProvider, amountCents: number) =>
      priceFaultOf(
        { provider: 'stripe' },
        answersInTime(provider, { clock: new ManualClock(), log: silentLog }),
      )({
        amountCents,
        currency: 'KWD',
      });
    expect([49, 51].map((cents) => faultOf(limited, cents))).to.deep.equal(['too small', null]);
    expect(faultOf(simulator, 51)).to.match(/multiple of 10/);
  });
});
