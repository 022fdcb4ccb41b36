import { expect } from 'chai';
import fc from 'fast-check';
import { OperationalError } from '../../../../src/core/errors.js';
import type { TransferStore } from '../../../../src/core/ports/transfer-store.js';
import { gatherUnits, UnitFetcher } from '../../../../src/sales/stock/gather-units.js';
import { countUnitsLeft, finishAll, readStock } from '../../../../src/sales/stock/read-stock.js';
import { Death, TransferWorld } from './transfer-world.js';

const ONE = { least: 1, all: 1 };

/** Its methods as plain functions, because a class instance cannot be spread. */
const stepsOf = ({ transfers }: TransferWorld): TransferStore => ({
  read: (...args) => transfers.read(...args),
  transferOut: (...args) => transfers.transferOut(...args),
  transferIn: (...args) => transfers.transferIn(...args),
  endTransfer: (...args) => transfers.endTransfer(...args),
});

describe('gather-units', () => {
  it('transfers half of the fullest bucket and leaves no transfer open [R12]', async () => {
    const world = await TransferWorld.of(0, 3, 8);
    expect(await gatherUnits(world.home(0), ONE, world.transfers)).to.deep.equal({ outcome: 'gathered' });
    expect([world.units, world.open]).to.deep.equal([[4, 3, 4], 0]);
  });

  it('takes from one bucket after the other until all purchases have enough', async () => {
    const world = await TransferWorld.of(0, 4, 4, 4);
    await gatherUnits(world.home(0), { least: 1, all: 4 }, world.transfers);
    expect(world.units).to.deep.equal([4, 2, 2, 4]);
  });

  it('gathers the last units of several buckets in one bucket for a large purchase', async () => {
    const world = await TransferWorld.of(1, 1, 1, 1);
    const large = { least: 4, all: 4 };
    expect(await gatherUnits(world.home(0), large, world.transfers)).to.deep.equal({ outcome: 'gathered' });
    expect(world.units).to.deep.equal([4, 0, 0, 0]);
    const larger = await gatherUnits(world.home(3), { least: 5, all: 5 }, world.transfers);
    expect(larger).to.deep.equal({ outcome: 'counted', unitsLeft: 4 });
  });

  it('moves nothing for a purchase larger than all buckets together', async () => {
    const world = await TransferWorld.of(0, 3, 2);
    const gathered = await gatherUnits(world.home(0), { least: 6, all: 6 }, world.transfers);
    expect(gathered).to.deep.equal({ outcome: 'counted', unitsLeft: 5 });
    expect(world.units).to.deep.equal([0, 3, 2]);
  });

  it('returns counted if all buckets are empty', async () => {
    const world = await TransferWorld.of(0, 0, 0);
    const gathered = await gatherUnits(world.home(1), ONE, world.transfers);
    expect(gathered).to.deep.equal({ outcome: 'counted', unitsLeft: 0 });
  });

  it('finishes transfers between two buckets first, instead of reporting sold_out', async () => {
    for (const home of [0, 1, 2]) {
      const world = await TransferWorld.of(0, 1, 0);
      await world.transfers.transferOut(world.home(1), 0, 1, 1);
      expect(await gatherUnits(world.home(home), ONE, world.transfers), `${home}`).to.deep.equal({
        outcome: 'gathered',
      });
      expect(world.total).to.equal(1);
    }
  });

  it('returns unsure if a bucket is in repair, on another server or in another epoch', async () => {
    for (const spoil of [
      (world: TransferWorld) => void (world.bucket(2).sale!.state = 'repair'),
      (world: TransferWorld) => void (world.bucket(2).sale!.stamp = -1),
      (world: TransferWorld) => void (world.bucket(2).sale!.epoch = 2),
      (world: TransferWorld) => void (world.bucket(0).sale = null),
    ]) {
      const world = await TransferWorld.of(0, 5, 0);
      spoil(world);
      expect(await gatherUnits(world.home(0), ONE, world.transfers)).to.deep.equal({ outcome: 'unsure' });
    }
  });

  it('returns moving, not zero, for units that move between every two reads', async () => {
    const world = await TransferWorld.of(0, 0, 1, 0);
    let at = 2;
    const survey: TransferStore['read'] = async (ref, buckets) => {
      const seen = await world.transfers.read(ref, buckets);
      if (ref.bucket !== 3) return seen;
      // After the last bucket is read, the unit moves to an earlier bucket, and back before the next read.
      const to = at === 2 ? 0 : 2;
      const moved = await world.transfers.transferOut(world.home(at), to, 1, 1);
      if (moved.outcome !== 'transferred') throw new Error(moved.outcome);
      const transfer = { from: at, to, seq: moved.seq, units: moved.units };
      await world.transfers.transferIn(world.sale.saleId, transfer, 1);
      await world.transfers.endTransfer(world.sale.saleId, transfer, 1);
      at = to;
      return seen;
    };
    expect(await countUnitsLeft(world.home(1), { ...stepsOf(world), read: survey })).to.equal('moving');
  });

  it('does not trust a single read, which could miss a moving unit', async () => {
    const world = await TransferWorld.of(0, 0, 1);
    let reads = 0;
    const survey: TransferStore['read'] = async (ref, buckets) => {
      if (++reads === 3) {
        // bucket 0 was seen empty, and bucket 2 will be
        const transfer = { from: 2, to: 0, seq: 1, units: 1 };
        await world.transfers.transferOut(world.home(2), 0, 1, 1);
        await world.transfers.transferIn(world.sale.saleId, transfer, 1);
        await world.transfers.endTransfer(world.sale.saleId, transfer, 1);
      }
      return world.transfers.read(ref, buckets);
    };
    expect(await countUnitsLeft(world.home(1), { ...stepsOf(world), read: survey })).to.equal(1);
    expect(reads).to.be.greaterThan(6);
  });

  it('leaves all units where other processes find them if the process dies', async () => {
    for (const steps of [1, 2, 3]) {
      const world = await TransferWorld.of(0, 2);
      const death = await gatherUnits(world.home(0), { least: 1, all: 2 }, world.dyingAfter(steps)).catch(
        (error: unknown) => error,
      );
      expect(death).to.be.instanceOf(Death);
      expect(world.total, `${steps} steps`).to.equal(2);
      const stock = await readStock(world.home(0), world.transfers);
      if (stock === null) throw new Error('no stock');
      await finishAll(world.sale.saleId, stock, world.transfers);
      await finishAll(world.sale.saleId, stock, world.transfers); // a late call of another process
      expect([world.units, world.open], `${steps} steps`).to.deep.equal([[1, 1], 0]);
    }
  });
});

/** A call of a process that may die during the call. */
interface Caller {
  readonly home: number;
  readonly least: number;
  readonly more: number;
  /** Number of steps until the caller dies. If it exceeds the steps of a call, the caller survives. */
  readonly steps: number;
  /** Whether the buyer takes the units if there are enough. */
  readonly buys: boolean;
}

const caller: fc.Arbitrary<Caller> = fc.record({
  home: fc.nat(4),
  least: fc.integer({ min: 1, max: 4 }),
  more: fc.nat(6),
  steps: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.constant(1000)),
  buys: fc.boolean(),
});

describe('gather-units against plain counters', () => {
  it('neither loses nor creates units, and refuses no existing unit, wherever a process dies', async () => {
    const met = { gathered: 0, counted: 0, died: 0 };
    const units = fc.array(fc.nat(6), { minLength: 2, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(units, fc.array(caller, { minLength: 1, maxLength: 30 }), async (counts, callers) => {
        const world = await TransferWorld.of(...counts);
        let total = counts.reduce((sum, count) => sum + count, 0);
        for (const { home, least, more, steps, buys } of callers) {
          const ref = world.home(home % counts.length);
          const wanted = { least, all: least + more };
          const gathered = await gatherUnits(ref, wanted, world.dyingAfter(steps)).catch((error: unknown) => {
            if (!(error instanceof Death)) throw error;
            return null;
          });
          expect(world.total).to.equal(total);
          if (gathered === null) met.died++;
          else if (gathered.outcome === 'counted') {
            met.counted++;
            expect(gathered.unitsLeft).to.equal(total);
            expect(total).to.be.lessThan(least);
          } else {
            met.gathered++;
            expect(gathered.outcome).to.equal('gathered');
            expect(world.bucket(ref.bucket).unitsLeft, 'no other process took the units').to.be.at.least(least);
            if (buys) {
              world.bucket(ref.bucket).unitsLeft -= least;
              total -= least;
            }
          }
        }
        const stock = await readStock(world.home(0), world.transfers);
        if (stock !== null) await finishAll(world.sale.saleId, stock, world.transfers);
        expect([world.units.reduce((sum, count) => sum + count, 0), world.open]).to.deep.equal([total, 0]);
      }),
      { numRuns: 500 },
    );
    for (const [word, count] of Object.entries(met)) expect(count, word).to.be.greaterThan(20);
  });
});

describe('unit-fetcher', () => {
  it('runs one fetch per bucket, and concurrent calls share its units', async () => {
    const world = await TransferWorld.of(0, 64, 0);
    let transfersOut = 0;
    const fetcher = new UnitFetcher({
      ...stepsOf(world),
      transferOut: (...args) => (transfersOut++, world.transfers.transferOut(...args)),
    });
    const fetches = Array.from({ length: 20 }, () => fetcher.fetch(world.home(0), ONE));
    expect(new Set((await Promise.all(fetches)).map(({ outcome }) => outcome))).to.deep.equal(new Set(['gathered']));
    expect(transfersOut).to.equal(1);
    await Promise.all([fetcher.fetch(world.home(0), { least: 50, all: 50 }), fetcher.fetch(world.home(2), ONE)]);
    expect(transfersOut, 'other buckets do not wait').to.be.at.least(3);
  });

  it('trusts an empty result only from a fetch that began after the call', async () => {
    const world = await TransferWorld.of(0, 0);
    let surveys = 0;
    const fetcher = new UnitFetcher({
      ...stepsOf(world),
      read: async (ref, buckets) => {
        const stock = await world.transfers.read(ref, buckets);
        surveys++;
        return stock;
      },
    });
    const first = fetcher.fetch(world.home(0), ONE);
    const later = [fetcher.fetch(world.home(0), ONE), fetcher.fetch(world.home(0), ONE)];
    expect(await first).to.deep.equal({ outcome: 'counted', unitsLeft: 0 });
    const perFetch = surveys;
    world.bucket(1).unitsLeft = 1; // returns after the first count
    const words = (await Promise.all(later)).map(({ outcome }) => outcome);
    expect(words).to.deep.equal(['gathered', 'gathered']);
    expect(surveys, 'each call alone would take twice as many units').to.be.lessThan(3 * perFetch);
  });

  it('rejects only for its own caller if a fetch fails [R8]', async () => {
    const world = await TransferWorld.of(0, 4);
    world.store.breakNext('read_fails');
    const fetcher = new UnitFetcher(world.transfers);
    const [first, second] = [fetcher.fetch(world.home(0), ONE), fetcher.fetch(world.home(0), ONE)];
    expect(await first.catch((error: unknown) => error)).to.be.instanceOf(OperationalError);
    expect(await second).to.deep.equal({ outcome: 'gathered' });
    expect(await fetcher.count(world.home(0))).to.equal(4);
    world.bucket(1).sale!.state = 'repair';
    expect(await fetcher.count(world.home(0))).to.equal(null);
  });
});
