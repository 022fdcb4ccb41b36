import { expect } from 'chai';
import type { Batch } from '../../../src/core/batch.js';
import type { Order } from '../../../src/core/order.js';
import type { Sale } from '../../../src/core/sale.js';
import { draftRows, type Draft, type Known } from '../../../src/orders/draft-rows.js';
import { requestName } from '../../../src/core/purchase.js';
import { orderOf, batchOf, purchasesOf, saleOf } from '../../helpers/sales.js';

const termsOf = ({ saleId, epoch, priceCents, limitPerBuyer }: Sale) =>
  new Map([[saleId, { saleId, epoch, priceCents, limitPerBuyer, paymentWindowMs: null, retired: false }]]);

function knownRow(batch: Batch, index: number, parts: Partial<Order>): Order {
  const { userId, requestId, quantity } = batch.purchases[index] as Batch['purchases'][number];
  const { saleId, batchId } = batch;
  return orderOf({ orderId: `${100 + index}`, userId, requestId, quantity, saleId, batchId, ...parts });
}

const knowing = (rows: readonly Order[], liveBuyers: readonly string[] = []): Known => ({
  rows: new Map(rows.map((row) => [requestName(row.saleId, row), row])),
  liveBuyers: new Set(liveBuyers),
});
const newRows = (draft: Draft): string[] =>
  draft.rows.map(({ purchase, failure }) => `${purchase.userId}/${purchase.requestId} ${failure ?? 'live'}`);

describe('draft-rows', () => {
  const sale = saleOf();
  const batch = batchOf({ ...sale, bucket: 2 }, purchasesOf('ann/k1*2', 'ann/k2', 'bob/k1'));

  for (const [known, when] of [
    [null, 'before a look-up'],
    [knowing([]), 'when it found nothing'],
  ] as const) {
    it(`drafts a new row for every purchase ${when}, including a second purchase of a buyer`, () => {
      const draft = draftRows([batch], termsOf(sale), known);
      expect(newRows(draft)).to.deep.equal(['ann/k1 live', 'ann/k2 live', 'bob/k1 live']);
      expect(draft.releases).to.deep.equal([]);
      expect(draft.found.size).to.equal(0);
    });
  }

  it('marks a row of the same batch while the order lives, and ignores an ended row', () => {
    const known = knowing([
      knownRow(batch, 0, { state: 'paid' }),
      knownRow(batch, 1, { state: 'cancelled' }),
      knownRow(batch, 2, { state: 'failed', reason: 'limit_reached' }),
    ]);
    const draft = draftRows([batch], termsOf(sale), known);
    expect(draft.rows).to.deep.equal([]);
    expect(draft.releases, 'written when the row ended').to.deep.equal([]);
    expect(draft.found.get(batch)).to.deep.equal([{ userId: 'ann', requestId: 'k1', orderId: '100', state: 'paid' }]);
  });

  it('releases the units of a batch from an older epoch whose row has ended', () => {
    const known = knowing([
      knownRow(batch, 0, { state: 'paid' }),
      knownRow(batch, 1, { state: 'failed', reason: 'discarded' }),
      knownRow(batch, 2, { state: 'failed', reason: 'oversold_guard' }),
    ]);
    const draft = draftRows([batch], termsOf({ ...sale, epoch: sale.epoch + 1 }), known);
    expect(draft.rows).to.deep.equal([]);
    expect(draft.releases.map(({ orderId, withUnits }) => [orderId, withUnits])).to.deep.equal([
      ['101', true],
      ['102', false],
    ]);
    expect(draft.found.get(batch)).to.deep.equal([{ userId: 'ann', requestId: 'k1', orderId: '100', state: 'paid' }]);
  });

  it('marks a live row of another batch, and releases an ended row with its held units', () => {
    const known = knowing([
      knownRow(batch, 0, { batchId: 'other', state: 'pending_payment' }),
      knownRow(batch, 1, { batchId: 'other', state: 'expired' }),
      knownRow(batch, 2, { batchId: 'other', state: 'failed', reason: 'oversold_guard' }),
    ]);
    const draft = draftRows([batch], termsOf(sale), known);
    expect(draft.found.get(batch)?.map(({ orderId }) => orderId)).to.deep.equal(['100']);
    const { saleId } = sale;
    const { batchId } = batch;
    expect(draft.releases).to.deep.equal([
      { saleId, bucket: 2, userId: 'ann', requestId: 'k2', orderId: '101', batchId, withUnits: true },
      { saleId, bucket: 2, userId: 'bob', requestId: 'k1', orderId: '102', batchId, withUnits: false },
    ]);
  });

  it('releases units from an older epoch if the guard refused the row of another batch', () => {
    const known = knowing([knownRow(batch, 2, { batchId: 'other', state: 'failed', reason: 'oversold_guard' })]);
    const draft = draftRows([batch], termsOf({ ...sale, epoch: sale.epoch + 1 }), known);
    expect(draft.releases.map(({ orderId, withUnits }) => [orderId, withUnits])).to.deep.equal([['102', true]]);
  });

  it('drafts a failed row at a limit of 1 if the buyer has another order [D7]', () => {
    const one = saleOf({ limitPerBuyer: 1 });
    const [first, second] = [
      batchOf(one, purchasesOf('ann/k1', 'bob/k1')),
      batchOf(one, purchasesOf('ann/k2', 'cid/k1')),
    ];
    const draft = draftRows([first, second], termsOf(one), knowing([], [`${one.saleId}/bob`]));
    expect(newRows(draft)).to.deep.equal([
      'ann/k1 live',
      'bob/k1 limit_reached',
      'ann/k2 limit_reached',
      'cid/k1 live',
    ]);
  });

  it('treats equal ids in another sale as other purchases', () => {
    const other = saleOf({ limitPerBuyer: 1 });
    const elsewhere = batchOf(other, purchasesOf('ann/k1'));
    const draft = draftRows([elsewhere], termsOf(other), knowing([knownRow(batch, 0, {})], [`${sale.saleId}/ann`]));
    expect(newRows(draft)).to.deep.equal(['ann/k1 live']);
  });
});
