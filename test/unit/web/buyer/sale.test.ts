import { expect } from 'chai';
import { offerOf, readSale, type SaleView } from '../../../../web/buyer/sale.js';
import { OPENS_MS, saleBody } from './fake-shop.js';

const saleAt = (serverMs: number, parts: Record<string, unknown> = {}): SaleView =>
  readSale(saleBody(serverMs, parts), null) as SaleView;
const CLOSES_MS = OPENS_MS + 3_600_000;

describe('sale as the page sees it', () => {
  it('opens at its second without another request, and not before', () => {
    const sale = saleAt(OPENS_MS - 5000, { state: 'not_open' });
    expect(offerOf(sale, OPENS_MS - 1)).to.equal('not_open');
    expect(offerOf(sale, OPENS_MS)).to.equal('open');
  });

  it('counts down to the opening of an announced sale, and waits for a shop that is late', () => {
    const sale = saleAt(OPENS_MS - 5000, { state: 'announced' });
    expect(offerOf(sale, OPENS_MS - 1)).to.equal('not_open');
    expect(offerOf(sale, OPENS_MS)).to.equal('open');
    expect(offerOf(saleAt(OPENS_MS + 10, { state: 'announced' }), OPENS_MS + 20)).to.equal('opening');
  });

  it('waits for the shop if it was read after its opening and was not open', () => {
    expect(offerOf(saleAt(OPENS_MS + 10, { state: 'not_open' }), OPENS_MS + 20)).to.equal('opening');
  });

  it('closes by the clock, whatever the last read says', () => {
    expect(offerOf(saleAt(OPENS_MS), CLOSES_MS - 1)).to.equal('open');
    expect(offerOf(saleAt(OPENS_MS), CLOSES_MS)).to.equal('closed');
    expect(offerOf(saleAt(OPENS_MS - 5000, { state: 'not_open' }), CLOSES_MS)).to.equal('closed');
  });

  it('follows its reported state, and allows a purchase while the stock is unknown', () => {
    for (const state of ['paused', 'loading', 'closed'] as const) {
      expect(offerOf(saleAt(OPENS_MS + 1, { state }), OPENS_MS + 2)).to.equal(state);
    }
    for (const [stock, offer] of [
      ['none', 'sold_out'],
      ['few', 'open'],
      ['plenty', 'open'],
      ['unknown', 'open'],
    ] as const) {
      expect(offerOf(saleAt(OPENS_MS + 1, { stock }), OPENS_MS + 2), stock).to.equal(offer);
    }
  });

  it('keeps earlier fields if a read returns fewer', () => {
    const before = saleAt(OPENS_MS + 1, { paymentWindow: '5m' });
    expect(before.paymentWindow).to.equal('5m');
    const essential = {
      saleId: '7',
      title: 'A cup',
      priceCents: 1999,
      currency: 'EUR',
      state: 'paused',
      degraded: 'L2',
    };
    expect(readSale(essential, before)).to.deep.equal({ ...before, state: 'paused' });
    expect(readSale({ saleId: '7', state: 'unknown', stock: 'unknown', degraded: 'L3' }, before)).to.deep.equal({
      ...before,
      stock: 'unknown',
    });
    expect(readSale({ saleId: '7', state: 'unknown', stock: 'unknown' }, null), 'nothing to show').to.equal(null);
    expect(readSale(null, before)).to.equal(before);
  });

  it('is read after ten seconds if the API names no time', () => {
    const old = saleAt(OPENS_MS, { pollAfterMs: undefined });
    expect(old.pollAfterMs).to.equal(10_000);
    const soldOut = saleAt(OPENS_MS, { stock: 'none' });
    expect(soldOut.pollAfterMs).to.equal(20_000);
    expect(readSale({ saleId: '7', state: 'unknown' }, soldOut)?.pollAfterMs).to.equal(20_000);
  });
});
