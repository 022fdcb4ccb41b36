import { expect } from 'chai';
import { freshSaleId, saleOf } from '../helpers/sales.js';
import { SNAPSHOT_TTL_MS, STORE_WORLDS, type StoreWorld } from './store-worlds.js';
import { onEachWorld } from './on-each-world.js';

onEachWorld<StoreWorld>('contract SaleSnapshotCache', STORE_WORLDS, (world) => {
  it('returns `missing` for a snapshot that was not loaded', async () => {
    expect(await world.snapshots.read(freshSaleId())).to.deep.equal({ cached: 'missing' });
  });

  it('keeps a sale unchanged', async () => {
    const sale = saleOf({ title: 'Schlüssel "1" {x}' });
    await world.snapshots.write(sale.saleId, sale);
    expect(await world.snapshots.read(sale.saleId)).to.deep.equal({ cached: 'ready', sale });
  });

  it('remembers that a sale does not exist', async () => {
    const saleId = freshSaleId();
    await world.snapshots.write(saleId, null);
    expect(await world.snapshots.read(saleId)).to.deep.equal({ cached: 'absent' });
  });

  it('removes a snapshot, even if it does not exist', async () => {
    const sale = saleOf();
    await world.snapshots.write(sale.saleId, sale);
    await world.snapshots.forget(sale.saleId);
    await world.snapshots.forget(sale.saleId);
    expect(await world.snapshots.read(sale.saleId)).to.deep.equal({ cached: 'missing' });
  });

  it('expires a snapshot', async () => {
    const sale = saleOf();
    await world.snapshots.write(sale.saleId, sale);
    await world.elapse(SNAPSHOT_TTL_MS + 20);
    expect(await world.snapshots.read(sale.saleId)).to.deep.equal({ cached: 'missing' });
  });

  it('gives the lock to one of many callers until a write or its expiry', async () => {
    const saleId = freshSaleId();
    const first = await Promise.all(Array.from({ length: 20 }, () => world.snapshots.lock(saleId, 60_000)));
    expect(first.filter(Boolean)).to.have.length(1);
    await world.snapshots.write(saleId, null);
    expect(await world.snapshots.lock(saleId, 2_000)).to.equal(true);
    expect(await world.snapshots.lock(saleId, 2_000)).to.equal(false);
    await world.elapse(2_020);
    expect(await world.snapshots.lock(saleId, 2_000)).to.equal(true);
  });
});
