import { expect } from 'chai';
import type { Sale } from '../../../../src/core/sale.js';
import { checkSale, waitUntilAtRest } from '../../../invariants/check-sale.js';
import { compareSale } from '../../../../src/operate/reconcile/compare-sale.js';
import { measureDrift } from '../../../../src/operate/reconcile/count-units.js';
import { memoryCheckPorts } from '../../../helpers/memory/memory-check-ports.js';
import { MemoryReconcileRepository, MemoryReconcileStore } from '../../../helpers/memory/memory-reconcile.js';
import { MemoryRepairStore } from '../../../helpers/memory/memory-repair-store.js';
import { MemoryTransferStore } from '../../../helpers/memory/memory-transfer-store.js';
import { replacing } from '../../../helpers/replacing.js';
import { KeeperWorld } from '../../orders/keeper-world.js';

const LIMITS = { safeAgeMs: 0, outboxAgeMs: 0, markerAgeMs: Infinity, waitingMaxMs: 0, readsMax: 1000 };

describe('reconcile: units between two buckets', () => {
  let world: KeeperWorld;
  let transfers: MemoryTransferStore;
  let sale: Sale;
  beforeEach(async () => {
    world = new KeeperWorld();
    transfers = new MemoryTransferStore(world.store);
    sale = await world.openSale({ stock: 8, buckets: 2 });
    await transfers.transferOut({ saleId: sale.saleId, bucket: 0 }, 1, 1, 1);
  });
  const ports = () => {
    const store = new MemoryReconcileStore(world.store);
    const repository = new MemoryReconcileRepository(world.mysql, world.deadLetters);
    return { store, repairs: new MemoryRepairStore(world.store), repository, clock: world.clock };
  };
  const arrive = async (): Promise<void> => {
    const transfer = { from: 0, to: 1, seq: 1, units: 2 };
    await transfers.transferIn(sale.saleId, transfer, 1);
    await transfers.endTransfer(sale.saleId, transfer, 1);
  };

  it('cause no drift, either on their way or after they arrive [R12, C5]', async () => {
    expect(await compareSale(sale, ports(), LIMITS)).to.include({ outcome: 'match' });
    await arrive();
    expect(await compareSale(sale, ports(), LIMITS)).to.include({ outcome: 'match' });
    world.store.bucket({ saleId: sale.saleId, bucket: 1 }).unitsLeft--;
    const { findings } = await compareSale(sale, ports(), LIMITS);
    expect(findings.map(({ kind }) => kind)).to.deep.equal(['drift']);
  });

  it('cause no finding if they move during the count', async () => {
    const { store, ...others } = ports();
    let reads = 0;
    const units: MemoryReconcileStore['units'] = async (ref, youngMs) => {
      const read = await store.units(ref, youngMs);
      if (++reads % 2 === 0) return read;
      // After the first bucket is read, its units arrive in the second, and other units leave the second for the first.
      await arrive();
      await transfers.transferOut({ saleId: sale.saleId, bucket: 0 }, 1, 1, 1);
      return read;
    };
    const drift = await measureDrift(sale, { ...others, store: replacing(store, { units }) }, { safeAgeMs: 0 });
    expect(drift?.difference === 0 || drift?.moving).to.equal(true);
  });

  it('stop the sale from counting as at rest, and are named by the check', async () => {
    const audit = memoryCheckPorts(world.store, world.mysql);
    expect(await waitUntilAtRest(sale.saleId, { ...audit, clock: world.clock }, 200)).to.equal(false);
    const { figures, findings } = await checkSale(sale.saleId, audit);
    expect(figures).to.include({ unitsLeft: 6, inTransit: 2, difference: 0 });
    expect(findings.map(({ invariant, detail }) => `${invariant} ${detail}`)).to.deep.equal([
      'I4 2 units are between two buckets',
    ]);
    await arrive();
    expect(await waitUntilAtRest(sale.saleId, { ...audit, clock: world.clock }, 200)).to.equal(true);
    expect((await checkSale(sale.saleId, audit)).findings).to.deep.equal([]);
  });
});
