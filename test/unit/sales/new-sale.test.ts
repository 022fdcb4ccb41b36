import { expect } from 'chai';
import { stripeFault } from '../../../src/payment/stripe-amount.js';
import { readNewSale } from '../../../src/sales/new-sale.js';

const NOW_MS = Date.UTC(2030, 0, 1, 12);
const SALE = {
  sku: 'pen',
  title: ' A pen ',
  priceCents: 250,
  stock: 10,
  limitPerBuyer: 2,
  opensAt: '2030-01-01T10:00:00+01:00',
  closesAt: '2030-01-02T00:00:00Z',
};

const errorsOf = (changes: object): Record<string, string> => {
  const read = readNewSale({ ...SALE, ...changes }, NOW_MS);
  if (!('errors' in read)) return {};
  return Object.fromEntries(read.errors.map(({ field, message }) => [field, message]));
};

describe('readNewSale', () => {
  it('accepts a sale whose window is open, with one bucket by default', () => {
    expect(readNewSale(SALE, NOW_MS)).to.deep.equal({
      sale: {
        sku: 'pen',
        title: 'A pen',
        priceCents: 250,
        currency: 'EUR',
        stock: 10,
        limitPerBuyer: 2,
        buckets: 1,
        opensAtMs: Date.UTC(2030, 0, 1, 9),
        closesAtMs: Date.UTC(2030, 0, 2),
        warmBeforeMs: null,
        paymentWindowMs: null,
      },
    });
  });

  it('names each missing field and its required form', () => {
    const read = readNewSale({}, NOW_MS);
    const errors = 'errors' in read ? read.errors : [];
    expect(errors.map(({ message }) => message)).to.deep.equal([
      'sku is missing: it must be 1 to 64 of the characters A-Z a-z 0-9 . _ -.',
      'title is missing: it must be a text of 1 to 200 characters.',
      'priceCents is missing: it must be a whole number from 0 to 4294967295.',
      'stock is missing: it must be a whole number from 1 to 10000000.',
      'limitPerBuyer is missing: it must be a whole number from 1 to 1000.',
      'opensAt is missing: it must be a time such as 2030-01-31T20:00:00Z.',
      'closesAt is missing: it must be a time such as 2030-01-31T20:00:00Z.',
    ]);
  });

  it('refuses titles that are empty, too long or able to control a terminal', () => {
    for (const title of ['', '  ', 'x'.repeat(10_240)]) {
      expect(errorsOf({ title })).to.deep.equal({ title: 'title must be a text of 1 to 200 characters.' });
    }
    for (const title of ['a\u001b[2Jb', 'a\nb', 'a\u009bb', 'a\u2028b', 'a\u202eb', 'a\ud800b']) {
      expect(errorsOf({ title }), JSON.stringify(title)).to.deep.equal({
        title: 'title must not contain control characters.',
      });
    }
    for (const title of [
      '\u200b',
      '\u3164\u3164',
      '\u00ad \u2060',
      '\u115f',
      '\u2800',
      '\u{e0020}',
      'a'.replace('a', '\u034f'),
    ]) {
      expect(errorsOf({ title }), JSON.stringify(title)).to.deep.equal({
        title: 'title must contain a visible character.',
      });
    }
    for (const title of ['Café ☕ 👩‍💻', '\u200b1', '鋼筆', '🖋', '!'])
      expect(errorsOf({ title }), title).to.deep.equal({});
  });

  it('refuses a window that is over, ends before it begins, or lies in an unlikely year', () => {
    expect(errorsOf({ closesAt: '2030-01-01T12:00:00Z' })).to.deep.equal({
      closesAt: 'closesAt must be in the future.',
    });
    expect(errorsOf({ opensAt: '2030-01-03T00:00:00Z' })).to.deep.equal({
      closesAt: 'closesAt must be later than opensAt.',
    });
    expect(errorsOf({ closesAt: '2100-01-01T00:00:00Z' })).to.deep.equal({
      closesAt: 'closesAt must be in the years 2000 to 2099.',
    });
  });

  it('uses the configured currency unless the sale names one', () => {
    const currencyOf = (input: object, currency = 'EUR'): unknown => {
      const read = readNewSale({ ...SALE, ...input }, NOW_MS, { currency, faultOf: () => null });
      return 'sale' in read && read.sale.currency;
    };
    expect([currencyOf({}), currencyOf({}, 'USD'), currencyOf({ currency: 'JPY' }, 'USD')]).to.deep.equal([
      'EUR',
      'USD',
      'JPY',
    ]);
    for (const currency of ['', 'eur', 'EURO', '€', 978, 'EUS', 'XXX']) {
      expect(errorsOf({ currency })).to.deep.equal({
        currency: 'currency must be three capital letters of ISO 4217 such as EUR.',
      });
    }
  });

  it('refuses a price that the provider cannot charge', () => {
    const priced = (priceCents: number, currency: string) => {
      const read = readNewSale({ ...SALE, priceCents, currency }, NOW_MS, { currency: 'EUR', faultOf: stripeFault });
      return 'errors' in read ? read.errors.map(({ message }) => message) : [];
    };
    expect(priced(10, 'EUR')).to.deep.equal(['priceCents must be 0, or 50 or more: Stripe charges 0.50 EUR or more.']);
    for (const [price, currency] of [
      [0, 'EUR'],
      [1999, 'JPY'],
      [25_000_000, 'VND'],
      [4_294_967_295, 'EUR'],
    ] as const)
      expect(priced(price, currency), currency).to.deep.equal([]);
    expect(errorsOf({ priceCents: 4_294_967_296 })).to.have.property('priceCents');
  });

  for (const [title, field, most, good, bad] of [
    [
      'a warm time from a second to a week',
      'warmBefore',
      '7d',
      { '1s': 1000, '10m': 600_000, '168h': 604_800_000, '7d': 604_800_000 },
      ['', '0s', '8d', '10', '-1m', '1.5h', 10, null],
    ],
    [
      'a payment window from a second to a day',
      'paymentWindow',
      '1d',
      { '1s': 1000, '10m': 600_000, '24h': 86_400_000 },
      ['', '0s', '25h', '2d', '10', 10, null],
    ],
  ] as const)
    it(`accepts ${title}, or none`, () => {
      for (const [text, ms] of Object.entries({ ...good, none: null })) {
        const read = readNewSale({ ...SALE, ...(ms !== null && { [field]: text }) }, NOW_MS);
        expect('sale' in read && read.sale[`${field}Ms`], text).to.equal(ms);
      }
      for (const text of bad)
        expect(errorsOf({ [field]: text }), String(text)).to.deep.equal({
          [field]: `${field} must be a duration from 1s to ${most}, such as 10m.`,
        });
    });

  const WRONG: Record<string, unknown[]> = {
    sku: ['', 'a b', 'x'.repeat(65), 7, null, undefined, '{7}'],
    priceCents: [-1, 1.5, '9', null],
    stock: [0, -1, 10_000_001, 1.5, '1'],
    limitPerBuyer: [0, 1001, 11],
    opensAt: ['tomorrow', '0000-01-01T00:00:00Z', '9999-12-31T23:59:59-14:00', '2030-01-01', '2030-01-01T00:00:00', 7],
    closesAt: ['', '2030-13-01T00:00:00Z'],
    buckets: [0, 65, 1.5, '2', null],
    saleId: ['9'],
    __proto__x: [{}],
  };
  for (const [field, values] of Object.entries(WRONG)) {
    it(`names ${field} if it is wrong`, () => {
      for (const value of values) expect(Object.keys(errorsOf({ [field]: value })), `${value}`).to.deep.equal([field]);
    });
  }

  it('names every wrong or unknown field at once', () => {
    expect(errorsOf({ stock: 0, priceCents: 1.5, colour: 'red' })).to.deep.equal({
      stock: 'stock must be a whole number from 1 to 10000000.',
      priceCents: 'priceCents must be a whole number from 0 to 4294967295.',
      colour: 'colour is not a known field.',
    });
    expect(errorsOf({ stock: 1 })).to.deep.equal({
      limitPerBuyer: 'limitPerBuyer must not be larger than stock.',
    });
    expect(readNewSale(null, NOW_MS)).to.deep.equal({
      errors: [{ field: 'body', message: 'body must be an object.' }],
    });
  });
});
