import { expect } from 'chai';
import fc from 'fast-check';
import { amountText, isCurrency } from '../../../src/core/amount-text.js';
import { currencyDigits, inMainUnit, inSmallestUnit } from '../../../src/core/currency.js';
import { formatOf } from '../../../web/buyer/format.js';
import { createFormat } from '../../../web/console/logic/format.js';

const CURRENCIES = Intl.supportedValuesOf('currency');

describe('currencies', () => {
  it('have the number of digits of ISO 4217, even where Intl differs', () => {
    const digits = ['EUR', 'JPY', 'KRW', 'VND', 'ISK', 'UGX', 'KWD', 'BHD', 'TND', 'HUF', 'IDR', 'COP', 'IQD', 'MGA'];
    expect(digits.map((currency) => `${currency} ${currencyDigits(currency)}`)).to.deep.equal([
      ...['EUR 2', 'JPY 0', 'KRW 0', 'VND 0', 'ISK 0', 'UGX 0', 'KWD 3', 'BHD 3', 'TND 3'],
      ...['HUF 2', 'IDR 2', 'COP 2', 'IQD 3', 'MGA 2'],
    ]);
  });

  /** Node.js 20, 22 and 24 agree on these currencies. A newer version that differs fails this test. */
  const SHOWN_OTHERWISE = 'AFN ALL COP HUF IDR IQD IRR KPW LAK LBP MGA MMK PKR SLL SOS SYP YER';
  it('match Intl, except for a fixed list', () => {
    const others = CURRENCIES.filter((currency) => {
      const shown = new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions();
      return shown.maximumFractionDigits !== currencyDigits(currency);
    });
    expect(others.join(' ')).to.equal(SHOWN_OTHERWISE);
  });

  it('accept only codes of ISO 4217, not any three capital letters', () => {
    expect(['EUR', 'JPY', 'VND', 'KWD'].filter((code) => !isCurrency(code))).to.deep.equal([]);
    expect(['EUS', 'XXX', 'AAA', 'eur', ''].filter(isCurrency)).to.deep.equal([]);
  });

  it('are shown the same on the command line, in the console and on the buyer page', () => {
    for (const [amount, currency, text, money] of [
      [1999, 'JPY', '1,999 JPY', '¥1,999'],
      [1999, 'EUR', '19.99 EUR', '€19.99'],
      [1999, 'KWD', '1.999 KWD', 'KWD 1.999'],
      [25_000_000, 'VND', '25,000,000 VND', '₫25,000,000'],
      [1999, 'HUF', '19.99 HUF', 'HUF 19.99'],
    ] as const) {
      expect(amountText(amount, currency)).to.equal(text);
      const shown = [createFormat('en').money(amount, currency), formatOf('en', currency).price(amount)];
      expect(shown.map((one) => one.replaceAll('\u00a0', ' '))).to.deep.equal([money, money]);
    }
    expect(formatOf('en', 'EUR').price(500)).to.equal('€5');
  });

  it('keep every amount when it is shown, typed and read again', () => {
    fc.assert(
      fc.property(fc.constantFrom(...CURRENCIES), fc.nat({ max: 4_294_967_295 }), (currency, amount) => {
        expect(inSmallestUnit(Number(String(inMainUnit(amount, currency))), currency)).to.equal(amount);
        const [figure = '', code] = amountText(amount, currency).split(' ');
        expect([inSmallestUnit(Number(figure.replaceAll(',', '')), currency), code]).to.deep.equal([amount, currency]);
      }),
    );
  });

  it('refuse an amount with more digits than the currency has', () => {
    expect(Number.isInteger(inSmallestUnit(19.99, 'JPY'))).to.equal(false);
    expect(Number.isInteger(inSmallestUnit(0.999, 'EUR'))).to.equal(false);
    expect(inSmallestUnit(19.99, 'EUR')).to.equal(1999);
  });
});
