import { expect } from 'chai';
import { OperationalError } from '../../../../src/core/errors.js';
import { formatRequestEntry } from '../../../../src/core/outcome.js';
import { type Sale } from '../../../../src/core/sale.js';
import { homeBucket } from '../../../../src/core/bucket.js';
import type { RepairStore } from '../../../../src/core/ports/repair-stores.js';
import type { Resharded } from '../../../../src/core/sale-repair.js';
import { reshardSale, type ReshardPorts } from '../../../../src/recovery/repair/reshard-sale.js';
import { replacing } from '../../../helpers/replacing.js';
import { OPTIONS, RepairWorld } from './repair-world.js';

const BUCKETS = 4;
/** The process died and does nothing more. */
class Death extends Error {}

type BucketStatuses = Awaited<ReturnType<RepairStore['statusOf']>>;

/** Returns the same store with a bucket status that a test can change. */
const withStatus = (store: RepairStore, change: (seen: BucketStatuses) => Promise<BucketStatuses>): RepairStore =>
  replacing(store, { statusOf: async (refs) => change(await store.statusOf(refs)) });

describe('reshard-sale', () => {
  let world: RepairWorld;
  let sale: Sale;
  let forgotten: string[];
  beforeEach(async () => {
    world = new RepairWorld();
    sale = await world.openSale({ stock: 10, limitPerBuyer: 2 });
    forgotten = [];
  });

  const portsOf = (parts: Partial<ReshardPorts> = {}): ReshardPorts => ({
    ...world.ports(),
    forgetSnapshot: async (saleId) => void forgotten.push(saleId),
    ...parts,
  });
  const reshard = (buckets = BUCKETS, ports = portsOf()): Promise<Resharded> =>
    reshardSale(sale.saleId, { actor: 'ann', buckets }, ports, OPTIONS);

  /** Creates two orders, an ended order, and two buyers that no worker has recorded. */
  async function busySale(): Promise<string> {
    await world.work(await world.deducted(sale, ['ann*2', 'bob']));
    const ended = await world.deducted(sale, ['cid']);
    await world.work(ended);
    world.mysql.endOrder('3', 'cancelled');
    const release = { saleId: sale.saleId, bucket: 0, userId: 'cid', requestId: 'k1', orderId: '3', withUnits: true };
    await world.store.release([{ ...release, batchId: ended.batchId }]);
    const { batchId } = await world.deducted(sale, ['dan', 'eve']);
    return batchId;
  }
  const inRepository = (): Sale => world.mysql.saleOf(sale.saleId) as Sale;
  const bucketsNow = () =>
    Array.from({ length: inRepository().buckets }, (_, bucket) => world.store.bucket({ saleId: sale.saleId, bucket }));
  const expected = (heldId: string): Record<string, string> => ({
    'ann/k1': 'ordered:1:2',
    'bob/k1': 'ordered:2:1',
    'cid/k1': 'released:3:1',
    'dan/k1': `held:${heldId}:1`,
    'eve/k1': `held:${heldId}:1`,
  });

  /** Expects each key once in the bucket of its buyer, the same units, and each batch in its own bucket. */
  function expectWhole(heldId: string): void {
    const all = bucketsNow();
    const entries: Record<string, string> = {};
    for (const [index, { requests, sale: loaded }] of all.entries()) {
      expect(loaded).to.include({ state: 'open', epoch: inRepository().epoch, buckets: all.length });
      for (const [key, entry] of requests) {
        const [userId = ''] = key.split('/');
        expect(homeBucket(userId, all.length), key).to.equal(index);
        entries[key] = formatRequestEntry(entry);
      }
    }
    expect(entries).to.deep.equal(expected(heldId));
    expect(all.reduce((sum, { unitsLeft }) => sum + unitsLeft, 0)).to.equal(5);
    for (const { requests, pending, markers } of all) {
      if (![...requests.values()].some(({ state }) => state === 'held')) continue;
      expect([...pending.keys()]).to.include(heldId);
      expect(markers.get(heldId)).to.include({ kind: 'deducted' });
    }
  }

  it('redistributes the units, moves buyers, keys and batches, and writes the audit log', async () => {
    const heldId = await busySale();
    const before = world.clock.nowMs();
    const end = await reshard();
    expect(end).to.deep.equal({ outcome: 'resharded', buckets: 4, epoch: 2, unitsLeft: 5, lockedMs: 0 });
    expect(world.clock.nowMs(), 'it does not wait').to.equal(before);
    expectWhole(heldId);
    expect(bucketsNow().map(({ unitsLeft }) => unitsLeft)).to.deep.equal([2, 1, 1, 1]);
    expect(inRepository()).to.include({ buckets: 4, epoch: 2, state: 'open' });
    expect(world.mysql.audited.at(-1)).to.deep.include({
      actor: 'ann',
      action: 'sale.resharded',
      before: { epoch: 1, buckets: 1 },
      after: { epoch: 2, buckets: 4 },
    });
    expect(forgotten).to.deep.equal([sale.saleId]);
  });

  it('needs few round trips to Redis even if many batches are under way', async () => {
    sale = await world.openSale({ stock: 1000, limitPerBuyer: 1 });
    for (let batch = 0; batch < 64; batch++) {
      await world.deducted(
        sale,
        Array.from({ length: 8 }, (_, buyer) => `u${batch}-${buyer}`),
      );
    }
    let [rounds, underWay] = [0, 0];
    const counting = new Proxy(portsOf().repairs, {
      get(target, name: keyof RepairStore): unknown {
        const act = target[name] as (...args: unknown[]) => unknown;
        if (name === 'requestsWithUnits') return act.bind(target);
        return async (...args: unknown[]) => {
          if (underWay++ === 0) rounds++;
          await new Promise((resolve) => setImmediate(resolve));
          underWay--;
          return act.apply(target, args);
        };
      },
    });
    const end = await reshard(8, { ...portsOf(), repairs: counting });
    expect(end).to.include({ outcome: 'resharded', unitsLeft: 488 });
    expect(rounds).to.be.below(40);
  });

  it('marks an old batch recorded in its present buckets after two reshards', async () => {
    const heldId = await busySale();
    await reshard(2);
    await reshard(8);
    expectWhole(heldId);
    const [batch] = [...world.store.bucket({ saleId: sale.saleId, bucket: 0 }).markers.values()].flatMap((marker) =>
      marker.kind !== 'aborted' && marker.body !== null ? [marker.body] : [],
    );
    expect(batch, 'its body').to.be.a('string');
  });

  for (const other of [4, 8]) {
    for (const moment of ['its sale was', 'its buckets were'] as const) {
      it(`does not lock a sale that was resharded into ${other} buckets just after ${moment} read`, async () => {
        await busySale();
        const ports = portsOf();
        let seen = 0;
        const onFirst = async <T>(read: T): Promise<T> => {
          if (seen++ === 0) await reshard(other);
          return read;
        };
        const { sales, repairs } = ports;
        const late: ReshardPorts =
          moment === 'its sale was'
            ? { ...ports, sales: replacing(sales, { find: async (saleId) => onFirst(await sales.find(saleId)) }) }
            : { ...ports, repairs: withStatus(repairs, onFirst) };
        expect((await reshard(4, late)).outcome).not.to.equal('resharded');
        expect(bucketsNow().map(({ sale: loaded }) => loaded?.state)).to.deep.equal(Array(other).fill('open'));
      });
    }
  }

  it('waits for the workers, like a repair, if Redis may have lost data before the lock', async () => {
    await busySale();
    const ports = portsOf();
    let reads = 0;
    const lossy = withStatus(ports.repairs, async (seen) =>
      reads++ === 0 ? seen : seen.map((one) => ({ ...one, sameServer: false })),
    );
    const before = world.clock.nowMs();
    await reshard(4, { ...ports, repairs: lossy });
    expect(world.clock.nowMs()).to.be.above(before);
  });

  it('refuses an impossible reshard and changes nothing', async () => {
    sale = await world.openSale({ stock: 10, buckets: 4 });
    const words = [];
    for (const buckets of [4, 2, 6]) words.push((await reshard(buckets)).outcome);
    expect(words).to.deep.equal(['already_resharded', 'not_a_multiple', 'not_a_multiple']);
    for (const state of ['draft', 'closed'] as const) {
      world.mysql.putSale({ ...inRepository(), state });
      expect(await reshard(8)).to.deep.equal({ outcome: state });
    }
    expect(inRepository()).to.include({ buckets: 4, epoch: 1 });
    sale = { ...sale, saleId: '404404' };
    expect(await reshard(8)).to.deep.equal({ outcome: 'not_found' });
    expect(forgotten).to.deep.equal([]);
  });

  it('refuses a sale that may have lost data until it is repaired', async () => {
    world.store.restart();
    expect(await reshard()).to.deep.equal({ outcome: 'in_repair' });
    expect(inRepository()).to.include({ buckets: 1, epoch: 1 });
  });

  it('ignores a late repair with the old number of buckets', async () => {
    const heldId = await busySale();
    const late = { ...sale };
    await reshard();
    expect(await world.repair(late)).to.deep.equal({ outcome: 'superseded' });
    world.clock.advance(OPTIONS.leaseMs + 1);
    expect(await world.repair(inRepository())).to.include({ outcome: 'repaired', unitsLeft: 5, held: 2 });
    expectWhole(heldId);
  });

  it('makes both stores agree if it is repeated after MySQL lost the reshard [D5]', async () => {
    const before = inRepository();
    const heldId = await busySale();
    await reshard();
    world.mysql.putSale({ ...inRepository(), buckets: before.buckets, epoch: before.epoch });
    expect(await reshard()).to.include({ outcome: 'resharded', buckets: 4, epoch: 3, unitsLeft: 5 });
    expectWhole(heldId);
  });

  it('succeeds even if the sale snapshot cannot be dropped', async () => {
    const away = new OperationalError('redis', 'away', { retryable: true });
    const end = await reshard(BUCKETS, portsOf({ forgetSnapshot: () => Promise.reject(away) }));
    expect(end).to.include({ outcome: 'resharded' });
    expect(world.warnings).to.have.length(1);
  });

  for (const when of ['before', 'after'] as const) {
    it(`loses nothing if it dies ${when} any step, and the next repair finishes it`, async () => {
      let ended = false;
      for (let step = 1; !ended; step++) {
        world = new RepairWorld();
        sale = await world.openSale({ stock: 10, limitPerBuyer: 2 });
        const heldId = await busySale();
        ended = await reshardDyingAt(step, when);
        world.clock.advance(OPTIONS.leaseMs + 1);
        const locked = bucketsNow().some(
          (bucket) => bucket.sale?.state !== 'open' || bucket.sale.epoch !== inRepository().epoch,
        );
        if (locked)
          expect(await world.repair(inRepository()), `step ${step}`).to.include({ outcome: 'repaired', unitsLeft: 5 });
        expectWhole(heldId);
        expect(step, 'it ends').to.be.below(60);
      }
    });
  }

  /** @returns whether it reached its end */
  async function reshardDyingAt(step: number, when: 'before' | 'after'): Promise<boolean> {
    let left = step;
    const mortal = <T extends object>(port: T, methods: readonly (keyof T)[]): T => {
      const dying: Partial<T> = {};
      for (const method of methods) {
        const act = port[method] as (...args: unknown[]) => Promise<unknown>;
        dying[method] = (async (...args: unknown[]) => {
          if (left <= 0 || (when === 'before' && left === 1)) throw new Death();
          const result = await act(...args);
          if (--left <= 0) throw new Death();
          return result;
        }) as T[keyof T];
      }
      return replacing(port, dying);
    };
    const { repairs, repository, ...others } = portsOf();
    const ports = {
      ...others,
      repairs: mortal(repairs, ['lock', 'stage', 'pendingBodies', 'restoreMarker', 'swap']),
      repository: mortal(repository, ['raiseEpoch', 'parkedBatchesOf']),
    };
    try {
      await reshard(BUCKETS, ports);
      return true;
    } catch (error) {
      if (error instanceof Death) return false;
      throw error;
    }
  }
});
