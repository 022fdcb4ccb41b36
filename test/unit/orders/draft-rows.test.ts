import { expect } from 'chai';
import type { Batch } from '../../../src/core/batch.js';
import type { Order } from '../../../src/core/order.js';
import type { Sale } from '../../../src/core/sale.js';
import { draftRows, type Draft, type Known } from '../../../src/orders/draft-rows.js';
import { requestName } from '../../../src/core/purchase.js';
import { batchOf, purchasesOf, saleOf } from '../../helpers/sales.js';

const termsOf = ({ saleId, epoch, priceCents, limitPerBuyer }: Sale) =>
  new Map([[saleId, { saleId, epoch, priceCents, limitPerBuyer, retired: false }]]);

function knownRow(batch: Batch, index: number, parts: Partial<Order>): Order {
  const { userId, requestId, quantity } = batch.purchases[index] as Batch['purchases'][number];
  return {
    orderId: `${100 + index}`,
    userId,
    requestId,
    quantity,
    saleId: batch.saleId,
    batchId: batch.batchId,
    amountCents: 1,
    state: 'pending_payment',
    reason: null,
    createdAtMs: 1,
    expiresAtMs: 2,
    paidAtMs: null,
    ...parts,
  };
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
    it(`every purchase is a new row ${when}, also a second one of a buyer`, () => {
      const draft = draftRows([batch], termsOf(sale), known);
      expect(newRows(draft)).to.deep.equal(['ann/k1 live', 'ann/k2 live', 'bob/k1 live']);
      expect(draft.releases).to.deep.equal([]);
      expect(draft.found.size).to.equal(0);
    });
  }

  it('a row of the same batch is done: marked while the order lives, left alone once it has ended', () => {
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

  it('a row of the same batch that has ended: an older batch may have reacquired units since, which are released', () => {
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

  it('a row of another batch: live is marked, ended is released, oversold_guard closes without units', () => {
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

  it('a row of another batch that the guard refused: what an older batch has reacquired since goes back', () => {
    const known = knowing([knownRow(batch, 2, { batchId: 'other', state: 'failed', reason: 'oversold_guard' })]);
    const draft = draftRows([batch], termsOf({ ...sale, epoch: sale.epoch + 1 }), known);
    expect(draft.releases.map(({ orderId, withUnits }) => [orderId, withUnits])).to.deep.equal([['102', true]]);
  });

  it('limit one: a buyer who has a live order, or gets one in this plan, gets a failed row [D7]', () => {
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

  it('the same names in another sale are other purchases', () => {
    const other = saleOf({ limitPerBuyer: 1 });
    const elsewhere = batchOf(other, purchasesOf('ann/k1'));
    const draft = draftRows([elsewhere], termsOf(other), knowing([knownRow(batch, 0, {})], [`${sale.saleId}/ann`]));
    expect(newRows(draft)).to.deep.equal(['ann/k1 live']);
  });
});
