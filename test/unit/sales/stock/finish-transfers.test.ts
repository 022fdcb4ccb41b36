import { expect } from 'chai';
import { OperationalError } from '../../../../src/core/errors.js';
import type { Sale } from '../../../../src/core/sale.js';
import { openTransfers } from '../../../../src/core/bucket.js';
import { finishTransfers } from '../../../../src/sales/stock/finish-transfers.js';
import { MemoryTransferStore } from '../../../helpers/memory/memory-transfer-store.js';
import { KeeperWorld } from '../../orders/keeper-world.js';

const AFTER_MS = 3000;
const OVERDUE_MS = 60_000;

describe('keeper: finish-transfers', () => {
  let world: KeeperWorld;
  let transfers: MemoryTransferStore;
  beforeEach(() => {
    world = new KeeperWorld();
    transfers = new MemoryTransferStore(world.store);
  });
  const run = (): Promise<unknown> =>
    finishTransfers(
      { sales: world.mysql, store: transfers, metrics: world.metrics },
      { afterMs: AFTER_MS, overdueMs: OVERDUE_MS },
    ).runOnce();
  const bucketsOf = (sale: Sale) =>
    Array.from({ length: sale.buckets }, (_, bucket) => world.store.bucket({ ...sale, bucket }));
  const unitsOf = (sale: Sale): number[] => bucketsOf(sale).map(({ unitsLeft }) => unitsLeft);
  const openOf = (sale: Sale): number => openTransfers(bucketsOf(sale).map((bucket) => bucket.transfers())).length;
  const transferOut = async (sale: Sale, from = 0, to = 1): Promise<void> => {
    expect(await transfers.transferOut({ ...sale, bucket: from }, to, 1, 1)).to.include({ outcome: 'transferred' });
  };

  it('finishes transfers of a dead process, and does not touch young transfers [R12]', async () => {
    const sale = await world.openSale({ stock: 12, buckets: 3 });
    await transferOut(sale);
    world.clock.advance(AFTER_MS - 1);
    await transferOut(sale, 2, 0);
    await run();
    expect([unitsOf(sale), openOf(sale)]).to.deep.equal([[2, 4, 2], 2]);
    world.clock.advance(1);
    await run();
    expect([unitsOf(sale), openOf(sale)]).to.deep.equal([[2, 6, 2], 1]);
    world.clock.advance(AFTER_MS);
    await Promise.all([run(), run()]); // two keepers
    expect([unitsOf(sale), openOf(sale)]).to.deep.equal([[4, 6, 2], 0]);
    expect(world.overdue.units_in_transfer).to.deep.equal([0, 0]);
  });

  it('ends a transfer that lacks only its last step, without moving units', async () => {
    const sale = await world.openSale({ stock: 8, buckets: 2 });
    await transferOut(sale);
    await transfers.transferIn(sale.saleId, { from: 0, to: 1, seq: 1, units: 2 }, 1);
    world.clock.advance(AFTER_MS);
    await run();
    expect([unitsOf(sale), openOf(sale)]).to.deep.equal([[2, 6], 0]);
  });

  it('finishes transfers of a closed sale too', async () => {
    const sale = await world.openSale({ stock: 8, buckets: 2 });
    await transferOut(sale);
    await world.store.setState(sale, 'closed');
    world.mysql.putSale({ ...sale, state: 'closed' });
    world.clock.advance(AFTER_MS);
    await run();
    expect([unitsOf(sale), openOf(sale)]).to.deep.equal([[2, 6], 0]);
  });

  it('does not touch sales in repair, and does not read sales with one bucket', async () => {
    const sale = await world.openSale({ stock: 8, buckets: 2 });
    await transferOut(sale);
    world.store.bucket({ ...sale, bucket: 1 }).sale!.state = 'repair';
    world.clock.advance(AFTER_MS + OVERDUE_MS + 5);
    await run();
    expect([unitsOf(sale), openOf(sale)]).to.deep.equal([[2, 4], 1]);
    world.mysql.putSale({ ...sale, buckets: 1 });
    transfers.read = () => Promise.reject(new Error('it was asked'));
    await run();
  });

  it('continues past a sale that it cannot reach, and counts the run as failed', async () => {
    // the newest sale comes first
    const [near, away] = [
      await world.openSale({ stock: 8, buckets: 2 }),
      await world.openSale({ stock: 8, buckets: 2 }),
    ];
    await transferOut(away);
    await transferOut(near);
    world.clock.advance(AFTER_MS);
    const { read } = transfers;
    const fault = new OperationalError('redis', 'a master is away', { retryable: true });
    transfers.read = (ref, buckets) =>
      ref.saleId === away.saleId ? Promise.reject(fault) : read.call(transfers, ref, buckets);
    expect(await run().catch((error: unknown) => error)).to.equal(fault);
    expect([openOf(away), openOf(near)]).to.deep.equal([1, 0]);
  });

  it('counts units that do not arrive', async () => {
    const sale = await world.openSale({ stock: 8, buckets: 2 });
    await transferOut(sale);
    world.clock.advance(OVERDUE_MS + 5);
    const { transferIn } = transfers;
    transfers.transferIn = async () => ({ outcome: 'unavailable' });
    await run();
    expect(world.overdue.units_in_transfer).to.deep.equal([1, 5]);
    transfers.transferIn = transferIn;
    await run();
    expect(world.overdue.units_in_transfer).to.deep.equal([0, 0]);
  });
});
