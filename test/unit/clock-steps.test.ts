import { expect } from 'chai';
import { FallbackCache } from '../../src/admission/degrade/degraded-reads.js';
import { LeakyBucket } from '../../src/admission/limits/leaky-bucket.js';
import { Batcher } from '../../src/purchase/batcher.js';
import { PurchaseWatch } from '../../src/purchase/purchase-watch.js';
import { SoldOutFlags } from '../../src/purchase/sold-out-flags.js';
import { SaleSnapshots } from '../../src/sales/sale-snapshots.js';
import { MemoryPurchaseNotifications } from '../helpers/memory/memory-purchase-notifications.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { MemorySaleSnapshotCache } from '../helpers/memory/memory-sale-snapshot-cache.js';
import { SteppedClock } from '../helpers/memory/stepped-clock.js';
import { purchaseOf, saleOf } from '../helpers/sales.js';
import { silentLog } from '../helpers/silent-log.js';
import { partial } from '../helpers/partial.js';

const HOUR_MS = 3_600_000;
const turns = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
};

/** Sets the clock back during a wait, which must still end on time. Some parts have such a test in their own file. */
describe('a clock that is set back by an hour [T12]', () => {
  it('lets no purchase wait longer in the batcher', async () => {
    const clock = new SteppedClock();
    const batcher = new Batcher(
      { sizeMax: 1, inFlightMax: 1, gatherMs: 0, queueMax: 10, waitMaxMs: 2000, roundsMax: 3 },
      {
        place: () => new Promise(() => undefined),
        clock,
        metrics: partial({ batchPlaced: () => undefined, queueWaited: () => undefined }),
        onError: () => 'unavailable',
      },
    );
    const home = { saleId: '7', bucket: 0, buckets: 1 };
    void batcher.submit(home, purchaseOf('under-way'));
    await turns();
    const answer = batcher.submit(home, purchaseOf('waits'));
    clock.step(-HOUR_MS);
    clock.advance(2001);
    await turns();
    clock.advance(1);
    expect(await Promise.race([answer, turns()])).to.deep.equal({ outcome: 'overloaded' });
  });

  it('lets a sold-out flag end on time', async () => {
    const clock = new ManualClock();
    const sale = { state: 'open', epoch: 1, nowMs: 0, closesAtMs: 1, unitsLeft: 0 } as never;
    const flags = new SoldOutFlags(
      { lifeMs: 1000, buyersMax: 10 },
      {
        store: partial({
          readSale: async () => sale,
          acceptedBuyerCount: async () => 0,
          acceptedBuyers: async function* () {},
        }),
        units: partial({ count: async () => 0 }),
        clock,
        log: silentLog,
      },
    );
    const home = { saleId: '7', bucket: 0, buckets: 1 };
    flags.observe(home, 0);
    await turns();
    expect(flags.refuses(home, 'u')).to.equal(true);
    clock.step(-HOUR_MS);
    clock.advance(1000);
    expect(flags.refuses(home, 'u')).to.equal(false);
    expect(flags.isSoldOut(home)).to.equal(false);
  });

  it('lets no waiting buyer wait longer for a read', async () => {
    const clock = new SteppedClock();
    const notifications = new MemoryPurchaseNotifications();
    const purchase = { saleId: '7', userId: 'u', requestId: 'k' };
    const watch = new PurchaseWatch(purchase, { notifications, clock, random: () => 0 }, 5000);
    let read = false;
    void watch.next(Infinity, new AbortController().signal).then(() => (read = true));
    clock.step(-HOUR_MS);
    clock.advance(50);
    await turns();
    expect(read).to.equal(true);
    watch.close();
  });

  it('renews a sale snapshot on time', async () => {
    const clock = new ManualClock();
    const sale = saleOf({ title: 'before' }, clock.nowMs());
    let title = sale.title;
    const snapshots = new SaleSnapshots(
      {
        repository: partial({ find: async () => ({ ...sale, title }), newestId: async () => sale.saleId }),
        cache: new MemorySaleSnapshotCache(new ManualClock(), { ttlMs: 0 }),
        clock,
      },
      { memoryTtlMs: 1000, memoryMax: 10, lockMs: 100 },
    );
    await snapshots.get(sale.saleId);
    title = 'after';
    clock.step(-HOUR_MS);
    clock.advance(1001);
    expect(snapshots.peek(sale.saleId)).to.equal(undefined);
  });

  it('keeps the leaky bucket flowing', () => {
    const clock = new SteppedClock();
    const bucket = new LeakyBucket(clock);
    const limit = { ratePerSecond: 10, waitMaxMs: 0 };
    expect(bucket.enter(limit)).to.equal(null);
    clock.step(-HOUR_MS);
    clock.advance(100);
    expect(bucket.enter(limit)).to.equal(null);
  });

  it('still lets an old answer expire', () => {
    const clock = new ManualClock();
    const cache = new FallbackCache({ rules: () => ({ ttlMs: 1000, factor: 0.5, ttlMinMs: 100 }), clock, max: 10 });
    cache.put('k', { an: 'answer' });
    clock.step(-HOUR_MS);
    clock.advance(1000);
    expect(cache.get('k')).to.equal(null);
  });
});
