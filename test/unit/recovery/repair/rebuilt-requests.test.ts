import { expect } from 'chai';
import { formatRequestEntry } from '../../../../src/core/outcome.js';
import type { OrderState } from '../../../../src/core/order.js';
import { type Sale } from '../../../../src/core/sale.js';
import { homeBucket } from '../../../../src/core/bucket.js';
import type { AgedOrder } from '../../../../src/core/ports/reconcile-repository.js';
import type { StoredRequest } from '../../../../src/core/ports/reconcile-store.js';
import { RebuiltRequests } from '../../../../src/recovery/repair/rebuilt-requests.js';
import { batchOf, purchaseOf, purchasesOf, saleOf } from '../../../helpers/sales.js';

describe('rebuilt-requests', () => {
  let orders = 0;
  const row = (text: string, state: OrderState = 'pending_payment'): AgedOrder => ({
    ...purchaseOf(text),
    orderId: String(++orders),
    batchId: 'b',
    state,
    reason: null,
    ageMs: 0,
  });
  const held = (text: string, batchId = 'h'): StoredRequest => {
    const { userId, requestId, quantity } = purchaseOf(text);
    return [`${userId}/${requestId}`, { state: 'held', batchId, quantity }];
  };
  const ordered = (text: string, orderId: string): StoredRequest => {
    const { userId, requestId, quantity } = purchaseOf(text);
    return [`${userId}/${requestId}`, { state: 'ordered', orderId, quantity }];
  };
  const booksOf = (parts: Partial<Sale> = {}): RebuiltRequests =>
    new RebuiltRequests(saleOf({ stock: 5, limitPerBuyer: 2, ...parts }));
  const staged = (mysql: RebuiltRequests): string[] =>
    mysql.takeUnstaged().flatMap((some) => some.map(([key, entry]) => `${key} ${formatRequestEntry(entry)}`));

  it('stages a live row as ordered and an ended row as released, each once', () => {
    orders = 0;
    const mysql = booksOf();
    mysql.addRows([row('ann*2'), row('bob', 'expired'), row('cid', 'paid'), row('dan', 'failed')]);
    expect(staged(mysql)).to.deep.equal([
      'ann/k1 ordered:1:2',
      'bob/k1 released:2:1',
      'cid/k1 ordered:3:1',
      'dan/k1 released:4:1',
    ]);
    expect(staged(mysql)).to.deep.equal([]);
    expect([mysql.unitsLeft, mysql.rows, mysql.held]).to.deep.equal([[2], 4, 0]);
  });

  it('keeps held units without a row as far as stock and limit allow [R3, R6]', () => {
    const mysql = booksOf();
    mysql.addRows([row('ann*2'), row('bob')]);
    staged(mysql);
    mysql.addUnrecorded([held('ann/k1*2'), held('ann/k2'), held('cid'), held('cid'), held('dan*2'), held('bob/k2')]);
    // Two units are left. ann has reached the limit and dan needs two, so cid and bob get one each.
    expect(staged(mysql)).to.deep.equal(['cid/k1 held:h:1', 'bob/k2 held:h:1']);
    expect([mysql.unitsLeft, mysql.held]).to.deep.equal([[0], 2]);
  });

  it('keeps the entry and units of an order that MySQL lost [D5]', () => {
    orders = 0;
    const mysql = booksOf();
    mysql.addRows([row('ann*2'), row('bob', 'cancelled')]);
    staged(mysql);
    const lost = [ordered('cid', '77'), ordered('dan*2', '78')];
    mysql.addUnrecorded([ordered('ann*2', '1'), ordered('bob', '2'), ...lost, ...lost]);
    expect(staged(mysql)).to.deep.equal(['cid/k1 ordered:77:1', 'dan/k1 ordered:78:2']);
    expect([mysql.unitsLeft, mysql.rows, mysql.held, mysql.ordersLost]).to.deep.equal([[0], 2, 0, 2]);
    expect(mysql.withoutRoom).to.deep.equal([]);
  });

  it('names a lost order once if there are too few units for it [D5]', () => {
    const mysql = booksOf({ stock: 2 });
    mysql.addRows([row('ann'), row('bob')]);
    staged(mysql);
    const lost = ordered('cid', '77');
    mysql.addUnrecorded([lost, lost]);
    expect(mysql.addParked(batchOf({ saleId: '7' }, purchasesOf('cid')))).to.equal(true);
    expect(staged(mysql)).to.deep.equal([]);
    expect(mysql.withoutRoom).to.deep.equal([lost]);
    expect([mysql.ordersLost, mysql.held]).to.deep.equal([0, 0]);
  });

  it('holds purchases of a parked batch that have no row [R6]', () => {
    const mysql = booksOf();
    const batch = batchOf({ saleId: '7' }, purchasesOf('ann', 'bob', 'cid'));
    mysql.addRows([row('ann')]);
    mysql.addUnrecorded([held('bob', batch.batchId)]);
    staged(mysql);
    expect(mysql.addParked(batch)).to.equal(true);
    expect(staged(mysql)).to.deep.equal([`cid/k1 held:${batch.batchId}:1`]);
    expect(mysql.unitsLeft).to.deep.equal([2]);
  });

  it('requires the message of a parked batch while a purchase has no row [R6]', () => {
    const batch = batchOf({ saleId: '7' }, purchasesOf('ann', 'bob'));
    const full = booksOf({ stock: 1 });
    full.addRows([row('cid')]);
    expect(full.addParked(batch)).to.equal(true);
    const recorded = booksOf();
    recorded.addRows([row('ann'), row('bob', 'cancelled')]);
    expect(recorded.addParked(batch)).to.equal(false);
  });

  it('never lets the units left fall below 0, after any fault [I1]', () => {
    const mysql = booksOf({ stock: 1 });
    mysql.addRows([row('ann*2')]);
    expect(mysql.unitsLeft).to.deep.equal([0]);
  });

  it('puts each buyer into the home bucket, and distributes the units left evenly [R12]', () => {
    const mysql = booksOf({ stock: 11, buckets: 2 });
    mysql.addRows(Array.from({ length: 8 }, (_, at) => row(`u${at}`)));
    const sizes = mysql.takeUnstaged().map((some) => some.length);
    expect(sizes[0]).to.be.greaterThan(0);
    expect(sizes[1]).to.be.greaterThan(0);
    expect(mysql.unitsLeft, 'wherever units were bought').to.deep.equal([2, 1]);
  });

  it('keeps units that any bucket held [R12]', () => {
    const users = Array.from({ length: 40 }, (_, at) => `u${at}`).filter((user) => homeBucket(user, 2) === 0);
    const mysql = booksOf({ stock: 4, buckets: 2 });
    mysql.addUnrecorded(users.slice(0, 5).map((user) => held(user)));
    expect([mysql.held, mysql.unitsLeft]).to.deep.equal([4, [0, 0]]);
  });
});
