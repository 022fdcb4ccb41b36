import { expect } from 'chai';
import type { Sale } from '../../../src/core/sale.js';
import { silentLog } from '../../helpers/silent-log.js';
import type { StockStore } from '../../../src/core/ports/stock-store.js';
import type { HomeBucket } from '../../../src/core/bucket.js';
import { SoldOutFlags } from '../../../src/purchase/sold-out-flags.js';
import type { UnitFetcher } from '../../../src/sales/stock/gather-units.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryRedis } from '../../helpers/memory/memory-redis.js';
import { batchOf, liveOrderOf, purchasesOf, saleOf, releaseOf } from '../../helpers/sales.js';
import { partial } from '../../helpers/partial.js';

const LIFE_MS = 500;
const turn = async (): Promise<void> => {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
};

const readsOf = (store: MemoryRedis): Partial<StockStore> => ({
  acceptedBuyers: (of) => store.acceptedBuyers(of),
  acceptedBuyerCount: (of) => store.acceptedBuyerCount(of),
  readSale: (of) => store.readSale(of),
});

describe('sold-out flags', () => {
  let clock: ManualClock;
  let store: MemoryRedis;
  let sale: Sale;
  let ref: HomeBucket;
  /** Units in all buckets of a sale with several buckets. */
  let unitsInAll: number | null;
  let flags: SoldOutFlags;

  const create = (buyersMax = 1000, reads: Partial<StockStore> = {}): void => {
    const { notifications } = store;
    const units = partial<UnitFetcher>({ count: async () => unitsInAll });
    const all: StockStore = partial({ ...readsOf(store), ...reads });
    flags = new SoldOutFlags(
      { lifeMs: LIFE_MS, buyersMax },
      { store: all, units, notifications, clock, log: silentLog },
    );
  };
  beforeEach(async () => {
    clock = new ManualClock();
    store = new MemoryRedis({ clock });
    sale = saleOf({ stock: 2, limitPerBuyer: 5 }, clock.nowMs());
    ref = { saleId: sale.saleId, bucket: 0, buckets: 1 };
    unitsInAll = 0;
    await store.warm(sale);
    await store.setState(sale, 'open');
    await store.deduct(batchOf(sale, purchasesOf('winner', 'winner2')));
    create();
  });

  /** Gives the sale three buckets from now on. */
  const split = async (): Promise<void> => {
    await store.warm({ ...sale, buckets: 3 });
    store.bucket(ref).sale!.buckets = 3;
  };
  /** Reports a batch to the flag, as after a request to Redis. */
  const precheck = async (): Promise<void> => {
    flags.observe(ref, (await store.precheck(ref, purchasesOf('zed'))).unitsLeft);
    await turn();
  };

  it('drops the longest unused flag if all flags remember too many buyers', async () => {
    create(4);
    const others: HomeBucket[] = [];
    for (let i = 0; i < 5; i++) {
      const other = saleOf({ stock: 2, limitPerBuyer: 5 }, clock.nowMs());
      await store.warm(other);
      await store.setState(other, 'open');
      await store.deduct(batchOf(other, purchasesOf('winner', 'winner2')));
      others.push({ saleId: other.saleId, bucket: 0, buckets: 1 });
    }
    for (const other of others) {
      flags.observe(other, 0);
      await turn();
      expect(flags.buyers).to.be.at.most(4);
      expect(flags.refuses(other, 'loser'), 'the newest one refuses').to.equal(true);
    }
    expect(others.map((other) => flags.refuses(other, 'loser'))).to.deep.equal([false, false, false, true, true]);
  });

  it('does not read the bucket again when a returned unit is sold to a named buyer', async () => {
    await precheck();
    const gone = releaseOf(ref, 'winner', '1');
    await store.release([gone]);
    await precheck(); // a unit is left
    const again = batchOf(sale, purchasesOf('third'));
    await store.deduct(again);
    await precheck();
    expect(flags.refuses(ref, 'loser'), 'not before the buyer is known').to.equal(false);
    await store.markRecorded([{ batch: again, orders: [liveOrderOf('third', '9')] }]);
    await precheck();
    expect(flags.refuses(ref, 'loser')).to.equal(true);
    expect(flags.refuses(ref, 'third'), 'never the repeat').to.equal(false);
    expect(store.calls.acceptedBuyers).to.equal(1);
  });

  it('reads the bucket again after a while in case a notification was lost', async () => {
    await precheck();
    const gone = releaseOf(ref, 'winner', '1');
    await store.release([gone]);
    await precheck();
    await store.deduct(batchOf(sale, purchasesOf('third')));
    await precheck();
    clock.advance(1999);
    await precheck();
    expect(store.calls.acceptedBuyers).to.equal(1);
    clock.advance(1);
    await precheck();
    expect(store.calls.acceptedBuyers).to.equal(2);
    expect([flags.refuses(ref, 'loser'), flags.refuses(ref, 'third')]).to.deep.equal([true, false]);
  });

  it('stops listening when it is dropped', async () => {
    await precheck();
    expect(store.notifications.listening).to.equal(1);
    clock.advance(LIFE_MS + 60_001);
    flags.observe({ ...ref, saleId: '1' }, 5);
    expect(store.notifications.listening).to.equal(0);
  });

  it('drops a finished sale with its buyers, even if nobody asks for it again', async () => {
    await precheck();
    expect(flags.buyers).to.equal(2);
    await store.setState(sale, 'closed');
    clock.advance(LIFE_MS / 2 + 1);
    expect(flags.refuses(ref, 'loser')).to.equal(true); // reads again
    await turn();
    expect([flags.buyers, flags.refuses(ref, 'loser')]).to.deep.equal([0, false]);

    await precheck();
    expect(flags.buyers).to.equal(0);
    create();
    flags.observe(ref, 0);
    await turn();
    expect(flags.buyers).to.equal(2);
    clock.advance(LIFE_MS + 60_001);
    flags.observe({ ...ref, saleId: '1' }, 5); // a batch of another sale
    expect(flags.buyers).to.equal(0);
  });

  it('covers the whole sale by the flag of one bucket, which each refusal renews', async () => {
    const sold = { saleId: sale.saleId, buckets: 3 };
    expect(flags.isSoldOut(sold), 'nothing was seen').to.equal(false);
    await split();
    flags.observe({ ...sold, bucket: 0 }, 0);
    await turn();
    expect(flags.isSoldOut(sold)).to.equal(true);
    expect(flags.isSoldOut({ ...sold, saleId: '1' }), 'another sale').to.equal(false);
    clock.advance(LIFE_MS / 2);
    expect(flags.isSoldOut(sold)).to.equal(true); // reads again
    await turn();
    clock.advance(LIFE_MS / 2 + 10);
    expect(flags.isSoldOut(sold), 'seen again').to.equal(true);
    unitsInAll = 1;
    await turn();
    clock.advance(LIFE_MS / 2);
    flags.isSoldOut(sold);
    await turn();
    expect(flags.isSoldOut(sold), 'a unit came back').to.equal(false);
  });

  it('recognises a sold-out sale at once, even if the sale has very many buyers', async () => {
    create(1); // the sale has two winners
    flags.observe(ref, 0);
    expect(flags.isSoldOut(ref), 'before the winners are known').to.equal(true);
    await turn();
    expect(flags.refuses(ref, 'loser'), 'the flag is not armed').to.equal(false);
    clock.advance(LIFE_MS - 1);
    expect(flags.isSoldOut(ref)).to.equal(true);
    clock.advance(1);
    expect(flags.isSoldOut(ref), 'no purchase has confirmed it since').to.equal(false);
    flags.observe(ref, 0);
    flags.observe(ref, 1);
    expect(flags.isSoldOut(ref), 'a batch has seen units').to.equal(false);
  });

  it('sets no flag with an outdated number of buckets, because unknown buckets may have units', async () => {
    await precheck();
    store.bucket(ref).sale!.buckets = 2; // the sale was resharded
    clock.advance(LIFE_MS);
    flags.observe(ref, 0);
    await turn();
    expect(flags.refuses(ref, 'loser')).to.equal(false);
  });

  it('does not last longer after a slow answer [T8]', async () => {
    const askedMs = clock.monotonicMs();
    clock.advance(LIFE_MS - 10);
    flags.observe(ref, 0, askedMs);
    await turn();
    expect(flags.refuses(ref, 'loser'), 'within its life').to.equal(true);
    clock.advance(10); // this buyer may have won returned units through another process
    expect(flags.refuses(ref, 'loser'), 'after it').to.equal(false);

    clock.advance(LIFE_MS);
    flags.observe(ref, 0, askedMs);
    await turn();
    expect(flags.refuses(ref, 'loser'), 'too old from the start').to.equal(false);
  });

  it('refuses only after it has seen zero units and knows the accepted buyers', async () => {
    flags.observe(ref, 0);
    expect(flags.refuses(ref, 'loser'), 'the winners are not known yet').to.equal(false);
    await turn();
    expect(flags.refuses(ref, 'loser')).to.equal(true);
  });

  it('never refuses an accepted buyer, even after the purchase has ended', async () => {
    await store.release([releaseOf(ref, 'winner', '1')]);
    await store.deduct(batchOf(sale, purchasesOf('winner3')));
    await precheck();
    const buyers = ['winner', 'winner2', 'winner3', 'loser'];
    expect(buyers.map((userId) => flags.refuses(ref, userId))).to.deep.equal([false, false, false, true]);
  });

  it('stores only once a buyer who repeatedly buys and cancels', async () => {
    for (let nth = 0; nth < 50; nth++) {
      const requestId = `again-${nth}`;
      const previous = nth === 0 ? 'k1' : `again-${nth - 1}`;
      await store.release([releaseOf(ref, 'winner', '1', { requestId: previous })]);
      await store.deduct(batchOf(sale, [{ userId: 'winner', requestId, quantity: 1 }]));
      await precheck();
    }
    expect(flags.refuses(ref, 'loser')).to.equal(true);
    expect(flags.buyers).to.equal(2);
    expect(store.calls.acceptedBuyers).to.equal(1);
  });

  it('is in force only for its life [I7]', async () => {
    await precheck();
    clock.advance(LIFE_MS - 1);
    expect(flags.refuses(ref, 'loser')).to.equal(true);
    clock.advance(1);
    expect(flags.refuses(ref, 'loser')).to.equal(false);
    await precheck();
    expect(flags.refuses(ref, 'loser'), 'seen again').to.equal(true);
  });

  it('counts its life from the moment of zero units [I7]', async () => {
    let reading: () => void = () => undefined;
    create(1000, {
      acceptedBuyerCount: async (of) => {
        await new Promise<void>((resolve) => (reading = resolve));
        return store.acceptedBuyerCount(of);
      },
    });
    flags.observe(ref, 0);
    await turn();
    clock.advance(400);
    reading();
    await turn();
    expect(flags.refuses(ref, 'loser')).to.equal(true);
    clock.advance(100);
    expect(flags.refuses(ref, 'loser')).to.equal(false);
  });

  it('ends at once if a batch sees units', async () => {
    await precheck();
    flags.observe(ref, 1);
    expect(flags.refuses(ref, 'loser')).to.equal(false);
  });

  it('ignores a bucket that is not loaded or in repair [R5]', async () => {
    const empty = { saleId: saleOf().saleId, bucket: 0, buckets: 1 };
    flags.observe(empty, (await store.precheck(empty, purchasesOf('u1'))).unitsLeft);
    await turn();
    expect(flags.refuses(empty, 'u1')).to.equal(false);

    store.bucket(ref).sale!.state = 'repair';
    await precheck();
    expect(flags.refuses(ref, 'loser')).to.equal(false);
  });

  it('never refuses the buyers of a rebuilt bucket, even if as many buyers hold units [R3]', async () => {
    await precheck();
    expect(flags.refuses(ref, 'claimer')).to.equal(true);
    const { requests, sale: loaded } = store.bucket(ref);
    requests.delete('winner/k1');
    requests.set('claimer/k1', { state: 'held', batchId: 'b', quantity: 1 });
    loaded!.epoch = 2;
    clock.advance(LIFE_MS);
    await precheck();
    expect(flags.refuses(ref, 'claimer')).to.equal(false);
    expect(flags.refuses(ref, 'winner'), 'its units are lost').to.equal(true);
  });

  it('ends when its life is over, not at a repair', async () => {
    await precheck();
    flags.observe(ref, null);
    expect(flags.refuses(ref, 'loser')).to.equal(true);
  });

  it('keeps a separate flag per bucket', async () => {
    await precheck();
    expect(flags.refuses({ ...ref, bucket: 1 }, 'loser')).to.equal(false);
    expect(flags.refuses({ ...ref, saleId: '1' }, 'loser')).to.equal(false);
  });

  it('leaves refusals to Redis if there are more accepted buyers than it may remember', async () => {
    create(1);
    await precheck();
    expect(flags.refuses(ref, 'loser')).to.equal(false);
    expect(store.calls.acceptedBuyers, 'the buyers are not even read').to.equal(0);
  });

  it('is set if there are exactly as many accepted buyers as it may remember', async () => {
    create(2);
    await precheck();
    expect(flags.refuses(ref, 'loser')).to.equal(true);
  });

  it('reads the accepted buyers only once while no buyer is added', async () => {
    for (let i = 0; i < 5; i++) {
      await precheck();
      clock.advance(LIFE_MS);
    }
    expect(store.calls.acceptedBuyers).to.equal(1);
  });

  it('reads the accepted buyers only once for many concurrent observers', async () => {
    for (let i = 0; i < 50; i++) flags.observe(ref, 0);
    await turn();
    expect(store.calls.acceptedBuyers).to.equal(1);
  });

  it('misses no buyer who is accepted during the read', async () => {
    create(1000, {
      acceptedBuyers: async function* (of) {
        store.bucket(ref).unitsLeft = 1;
        if (store.bucket(ref).requests.size === 2) await store.deduct(batchOf(sale, purchasesOf('late')));
        store.bucket(ref).unitsLeft = 0;
        yield* store.acceptedBuyers(of);
      },
    });
    await precheck();
    expect(flags.refuses(ref, 'loser')).to.equal(false);
    await precheck();
    expect(flags.refuses(ref, 'loser')).to.equal(true);
    expect(flags.refuses(ref, 'late')).to.equal(false);
  });

  it('sets no flag if Redis does not answer, and reads again at the next zero [R8]', async () => {
    store.breakNext('read_fails');
    flags.observe(ref, 0);
    await turn();
    expect(flags.refuses(ref, 'loser')).to.equal(false);
    await precheck();
    expect(flags.refuses(ref, 'loser')).to.equal(true);
  });

  describe('sold-out flag in use', () => {
    /** Sends buyers who never stop trying. @returns whether each buyer was refused */
    const askFor = async (ms: number): Promise<boolean> => {
      let refused = true;
      for (let passed = 0; passed < ms; passed += 50) {
        clock.advance(50);
        refused = flags.refuses(ref, 'loser');
        await turn();
      }
      return refused;
    };

    it('is renewed in the background, so that no buyer has to wait for Redis', async () => {
      await precheck();
      expect(await askFor(20 * LIFE_MS)).to.equal(true);
      expect(store.calls.precheck).to.equal(1);
    });

    it('reads Redis once per half life, however many purchases arrive', async () => {
      let reads = 0;
      create(1000, { readSale: (of) => (reads++, store.readSale(of)) });
      await precheck();
      reads = 0;
      for (let i = 0; i < 4; i++) {
        clock.advance(LIFE_MS / 2);
        for (let buyer = 0; buyer < 100; buyer++) flags.refuses(ref, `loser${buyer}`);
        await turn();
      }
      expect(reads).to.equal(4);
    });

    it('offers released units within the life of the flag [I7]', async () => {
      await precheck();
      await askFor(3 * LIFE_MS);
      const gone = releaseOf(ref, 'winner', '1');
      await store.release([gone]);
      expect(await askFor(LIFE_MS)).to.equal(false);
    });

    it('ends at once if the renewal sees units', async () => {
      await precheck();
      store.bucket(ref).unitsLeft = 1;
      clock.advance(LIFE_MS / 2);
      expect(flags.refuses(ref, 'loser'), 'not seen yet').to.equal(true);
      await turn();
      expect(flags.refuses(ref, 'loser')).to.equal(false);
    });

    it('is renewed only while all buckets together are empty [R12]', async () => {
      ref = { ...ref, buckets: 2 };
      store.bucket(ref).sale!.buckets = 2;
      for (const units of [1, null]) {
        unitsInAll = 0;
        await precheck();
        expect(await askFor(3 * LIFE_MS), 'no unit in any bucket').to.equal(true);
        unitsInAll = units;
        expect(await askFor(LIFE_MS), `${units} in another bucket`).to.equal(false);
      }
    });

    it('shares the counts of all buckets between flags, without prolonging a flag [I7]', async () => {
      const buckets = 16;
      store.bucket(ref).sale!.buckets = buckets;
      let counted = 0;
      const one = { ...ref, buckets };
      const of = (bucket: number): HomeBucket => ({ ...one, bucket });
      const units = partial<UnitFetcher>({ count: async () => (counted++, unitsInAll) });
      const reads = { ...readsOf(store), readSale: () => store.readSale(one), acceptedBuyerCount: async () => 0 };
      const all: StockStore = partial({ ...reads, acceptedBuyers: async function* () {} });
      flags = new SoldOutFlags({ lifeMs: LIFE_MS, buyersMax: 1000 }, { store: all, units, clock, log: silentLog });
      for (let bucket = 0; bucket < buckets; bucket++) {
        flags.observe(of(bucket), 0);
        await turn();
      }
      const askAll = async (): Promise<boolean> => {
        let areRefused = true;
        for (let bucket = 0; bucket < buckets; bucket++) {
          clock.advance(1);
          areRefused = flags.refuses(of(bucket), 'loser') && areRefused;
          await turn();
        }
        return areRefused;
      };
      for (let passedMs = 0; passedMs < 4 * LIFE_MS; passedMs += 50 + buckets) {
        clock.advance(50);
        expect(await askAll(), 'renewed in time').to.equal(true);
      }
      expect(counted, 'at most four in each life').to.be.within(4, 4 * 4 + 1);
      unitsInAll = 1;
      clock.advance(LIFE_MS / 2);
      await askAll();
      clock.advance(LIFE_MS / 2);
      expect(await askAll(), 'units are back').to.equal(false);
      for (let bucket = 0; bucket < buckets; bucket++)
        expect(flags.refuses(of(bucket), 'loser'), String(bucket)).to.equal(false);
    });

    it('ignores a count over fewer buckets than the sale now has [R12]', async () => {
      const [few, more] = [2, 4].map((buckets) => ({ ...ref, buckets }));
      const counted: number[] = [];
      const units = { count: async ({ buckets }: { buckets: number }) => (counted.push(buckets), 0) };
      const reads = { ...readsOf(store), readSale: () => store.readSale(ref) };
      const options = { lifeMs: LIFE_MS, buyersMax: 1000 };
      flags = new SoldOutFlags(options, { store: partial(reads), units: partial(units), clock, log: silentLog });
      for (const of of [few, more]) flags.observe(of as HomeBucket, 0);
      await turn();
      clock.advance(LIFE_MS / 2);
      for (const of of [few, more]) flags.refuses(of as HomeBucket, 'loser');
      await turn();
      expect(counted).to.deep.equal([2, 4]);
    });

    it('ends once the sale is no longer open, so that buyers learn the reason', async () => {
      for (const state of ['paused', 'closed'] as const) {
        store.bucket(ref).sale!.state = 'open';
        await precheck();
        await store.setState(sale, state);
        expect(await askFor(LIFE_MS), state).to.equal(false);
        await precheck();
        expect(flags.refuses(ref, 'loser'), `${state}, and the next batch has asked`).to.equal(false);
      }
      store.bucket(ref).sale!.state = 'open';
      clock.advance(sale.closesAtMs - clock.nowMs() - LIFE_MS / 2);
      await precheck();
      expect(await askFor(2 * LIFE_MS), 'its window').to.equal(false);
    });

    it('ends if Redis does not answer [R8]', async () => {
      create(1000, { readSale: () => Promise.reject(new Error('down')) });
      await precheck();
      expect(await askFor(LIFE_MS)).to.equal(false);
    });
  });
});
