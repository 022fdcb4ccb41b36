import { expect } from 'chai';
import type { Sale } from '../../src/core/sale.js';
import { batchOf, purchasesOf, saleOf } from '../helpers/sales.js';
import { firstBucket, openSale, STORE_WORLDS, type StoreWorld } from './store-worlds.js';
import { onEachWorld } from './on-each-world.js';

onEachWorld<StoreWorld>('contract ReconcileStore', STORE_WORLDS, (world) => {
  let sale: Sale;
  beforeEach(async () => {
    sale = await openSale(world, { stock: 100, limitPerBuyer: 10 });
  });
  const ref = () => firstBucket(sale);
  const deducted = async (...texts: string[]) => {
    const batch = batchOf(sale, purchasesOf(...texts));
    expect((await world.stock.deduct(batch)).outcome).to.equal('deducted');
    return batch;
  };

  it('returns all requests page by page, and single entries', async () => {
    const { batchId } = await deducted('u1*2', 'u2');
    const pages = [];
    for await (const page of world.reconcile.requests(ref())) pages.push(...page);
    const held = { state: 'held', batchId } as const;
    expect(new Map(pages)).to.deep.equal(
      new Map([
        ['u1/k1', { ...held, quantity: 2 }],
        ['u2/k1', { ...held, quantity: 1 }],
      ]),
    );
    const entries = await world.reconcile.entriesOf(ref(), ['u2/k1', 'unknown/k1']);
    expect(entries).to.deep.equal([{ ...held, quantity: 1 }, null]);
    expect(await world.reconcile.entriesOf(ref(), [])).to.deep.equal([]);
  });

  it('returns the pending time, marker and body of a batch', async () => {
    const batch = await deducted('u1');
    const pending = await world.reconcile.batch(ref(), batch.batchId);
    expect(pending.pendingMs).to.be.within(0, 60_000);
    expect(pending).to.include({ marker: 'deducted', body: batch.body });
    await world.batches.markRecorded([{ batch, orders: [] }]);
    const recorded = { pendingMs: null, marker: 'deducted', body: null };
    expect(await world.reconcile.batch(ref(), batch.batchId)).to.deep.equal(recorded);
    await world.stock.resolve(batchOf(sale, [], 'aborted-batch'));
    expect(await world.reconcile.batch(ref(), 'aborted-batch')).to.include({ marker: 'aborted', body: null });
    const unknown = { pendingMs: null, marker: null, body: null };
    expect(await world.reconcile.batch(ref(), 'no-batch')).to.deep.equal(unknown);
  });

  it('returns pending batches with their age and whether a re-drive can handle them', async () => {
    const [whole, withoutBody, recorded] = [await deducted('u1'), await deducted('u2'), await deducted('u3')];
    await world.batches.markRecorded([{ batch: recorded, orders: [] }]);
    await world.removeMarker(withoutBody);
    const found = await world.reconcile.pendingAmong(ref(), [
      ...[whole, withoutBody, recorded].map(({ batchId }) => batchId),
      'none',
    ]);
    expect([...found].map(([batchId, { hasBody }]) => [batchId, hasBody])).to.have.deep.members([
      [whole.batchId, true],
      [withoutBody.batchId, false],
    ]);
    for (const { pendingMs } of found.values()) expect(pendingMs).to.be.within(0, 60_000);
    expect((await world.reconcile.pendingAmong(ref(), [])).size).to.equal(0);
  });

  it('names the transfers to and from other buckets [R12]', async () => {
    const { transfers } = world;
    const split = { ...saleOf({ stock: 30, buckets: 3 }), epoch: 1 };
    const bucket = (index: number) => ({ saleId: split.saleId, bucket: index });
    await world.sales.warm(split);
    for (const to of [2, 0]) await transfers.transferOut(bucket(1), to, 1, 1);
    await transfers.transferIn(split.saleId, { from: 1, to: 2, seq: 1, units: 5 }, 1);
    await transfers.endTransfer(split.saleId, { from: 1, to: 2, seq: 1, units: 5 }, 1);
    const sender = await world.reconcile.units(bucket(1), 0);
    expect(sender?.unitsLeft).to.equal(2);
    expect(
      sender?.transfers.outgoing.map(({ ageMs, ...rest }) => (expect(ageMs).to.be.below(60_000), rest)),
    ).to.deep.equal([
      { to: 0, seq: 1, units: 3, isOpen: true },
      { to: 2, seq: 1, units: 5, isOpen: false },
    ]);
    const other = await world.reconcile.units(bucket(2), 0);
    expect([other?.unitsLeft, other?.transfers]).to.deep.equal([15, { outgoing: [], incoming: new Map([[1, 1]]) }]);
  });

  it('adds up the units of the sale, and marks recent changes', async () => {
    await deducted('u1*2', 'u2');
    const transfers = { outgoing: [], incoming: new Map() };
    const units = { unitsLeft: 97, unitsOfBuyers: 3, moved: false, pending: 1, transfers };
    expect(await world.reconcile.units(ref(), 60_000)).to.deep.equal({ ...units, youngPending: 1 });
    expect(await world.reconcile.units(ref(), -60_000)).to.deep.equal({ ...units, youngPending: 0 });
    expect(await world.reconcile.units({ saleId: saleOf().saleId, bucket: 0 }, 1)).to.equal(null);
  });

  it('adjusts only values that have not changed, in a sale that is not selling [C5]', async () => {
    const adjust = (read: number, wanted: number, epoch = 1) => world.reconcile.adjust(ref(), { read, wanted, epoch });
    expect(await adjust(100, 102)).to.equal('selling');
    await world.sales.setState(sale, 'paused');
    expect(await adjust(99, 102)).to.equal('moved');
    expect(await adjust(100, 102, 2), 'read in another epoch').to.equal('moved');
    expect(await adjust(100, 102)).to.equal('adjusted');
    expect((await world.reconcile.units(ref(), 1))?.unitsLeft).to.equal(102);
    const nowhere = { saleId: saleOf().saleId, bucket: 0 };
    expect(await world.reconcile.adjust(nowhere, { read: 1, wanted: 2, epoch: 1 })).to.equal('not_warmed');
  });

  it('names and removes only markers of recorded batches [C7]', async () => {
    const [recorded, pending] = [await deducted('u1'), await deducted('u2')];
    await world.batches.markRecorded([{ batch: recorded, orders: [] }]);
    await world.stock.resolve(batchOf(sale, [], 'aborted-batch'));
    const all = [recorded.batchId, pending.batchId, 'aborted-batch', 'no-batch'];
    expect(await world.reconcile.recordedMarkers(ref(), all)).to.deep.equal([recorded.batchId]);
    expect(await world.reconcile.removeMarkers(ref(), [recorded.batchId, 'no-batch'])).to.equal(1);
    expect(await world.reconcile.recordedMarkers(ref(), all)).to.deep.equal([]);
    expect(await world.reconcile.removeMarkers(ref(), [])).to.equal(0);
  });
});
