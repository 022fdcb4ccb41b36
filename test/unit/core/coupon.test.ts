import { expect } from 'chai';
import fc from 'fast-check';
import {
  COUPON_CODE,
  discountOf,
  newCouponCode,
  offerOf,
  readCouponTerms,
  type Coupon,
} from '../../../src/core/coupon.js';

const COUPON: Coupon = {
  code: '7KQ2MZP4WX',
  orderId: '7',
  saleId: '1',
  userId: 'ann',
  currency: 'EUR',
  valueCents: 500,
  percent: null,
  minCents: 2000,
  state: 'free',
  usedOrderId: null,
  reference: null,
  discountCents: null,
  createdAtMs: 0,
  expiresAtMs: 1,
  redeemedAtMs: null,
};
const ORDER = { orderId: '99', userId: 'ann', amountCents: 2000, currency: 'EUR' };

describe('coupons', () => {
  it('draws codes of ten characters without look-alikes, each about equally often', () => {
    const codes = Array.from({ length: 3000 }, newCouponCode);
    for (const code of codes)
      expect(code)
        .to.match(COUPON_CODE)
        .and.not.match(/[01ILOU]/);
    expect(new Set(codes).size).to.equal(codes.length);
    const counts = new Map<string, number>();
    for (const letter of codes.join('')) counts.set(letter, (counts.get(letter) ?? 0) + 1);
    expect(counts.size).to.equal(30);
    for (const [letter, count] of counts) expect(count, letter).to.be.within(800, 1200); // 1000 of each, ±6 sigma
  });

  it('reads terms with an amount or a percentage, and refuses any other text', () => {
    const terms = { valueCents: null, percent: 10, validDays: 30, minCents: 0 };
    expect(readCouponTerms('10% 30d')).to.deep.equal(terms);
    expect(readCouponTerms('500 7d min 2000')).to.deep.equal({
      valueCents: 500,
      percent: null,
      validDays: 7,
      minCents: 2000,
    });
    expect(readCouponTerms('100% 1d')).to.deep.equal({ ...terms, percent: 100, validDays: 1 });
    for (const text of ['', '0% 30d', '101% 30d', '0 30d', '500', '500 0d', '-5 3d', '5.5 3d', '500 30d min', ' 5 3d'])
      expect(readCouponTerms(text), text).to.equal(null);
  });

  it('takes off exactly the percentage, rounded down, and never more than the amount', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), fc.integer({ min: 1, max: 100 }), (amountCents, percent) => {
        const exact = (BigInt(amountCents) * BigInt(percent)) / 100n;
        expect(discountOf({ valueCents: null, percent }, amountCents)).to.equal(Number(exact));
      }),
    );
    expect(discountOf(COUPON, 499)).to.equal(499);
    expect(discountOf(COUPON, 501)).to.equal(500);
  });

  it('is offered only to its owner, for a large enough order, while it is free', () => {
    const offers: [Partial<Coupon>, Partial<typeof ORDER>, ReturnType<typeof offerOf>][] = [
      [{}, {}, 500],
      [{}, { userId: 'bob' }, 'not_found'],
      [{}, { amountCents: 1999 }, 'too_small'],
      [{}, { currency: 'USD' }, 'other_currency'],
      [{ valueCents: null, percent: 1, minCents: 0 }, { amountCents: 99 }, 'too_small'],
      [{ state: 'expired' }, {}, 'expired'],
      [{ state: 'reserved', usedOrderId: '98' }, {}, 'in_use'],
      [{ state: 'reserved', usedOrderId: '99' }, {}, 500],
      [{ state: 'redeemed', usedOrderId: '98' }, {}, 'redeemed'],
      [{ state: 'redeemed', usedOrderId: '99' }, {}, 500],
      [{ state: 'redeemed', reference: 'shop-1' }, {}, 'redeemed'],
    ];
    for (const [coupon, order, offer] of offers) {
      expect(offerOf({ ...COUPON, ...coupon }, { ...ORDER, ...order }), JSON.stringify(coupon)).to.equal(offer);
    }
    expect(offerOf(null, ORDER)).to.equal('not_found');
  });
});
