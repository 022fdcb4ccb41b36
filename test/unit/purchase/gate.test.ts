import { expect } from 'chai';
import { type Sale } from '../../../src/core/sale.js';
import { homeBucket, type HomeBucket } from '../../../src/core/bucket.js';
import type { Purchase } from '../../../src/core/purchase.js';
import { silentLog } from '../../helpers/silent-log.js';
import { Batcher } from '../../../src/purchase/batcher.js';
import { ClosedRows } from '../../../src/purchase/closed-rows.js';
import { PurchaseGate, type GateParts } from '../../../src/purchase/gate.js';
import { SoldOutFlags } from '../../../src/purchase/sold-out-flags.js';
import { SaleSnapshots } from '../../../src/sales/sale-snapshots.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryRepositories } from '../../helpers/memory/memory-repositories.js';
import { MemoryRedis } from '../../helpers/memory/memory-redis.js';
import { MemorySaleSnapshotCache } from '../../helpers/memory/memory-sale-snapshot-cache.js';
import { batchOf, purchasesOf, saleOf } from '../../helpers/sales.js';
import { partial } from '../../helpers/partial.js';

const turn = async (): Promise<void> => {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
};

describe('gate', () => {
  let clock: ManualClock;
  let store: MemoryRedis;
  let mysql: MemoryRepositories;
  let cache: MemorySaleSnapshotCache;
  let flags: SoldOutFlags;
  let gate: PurchaseGate;
  let smooth: NonNullable<GateParts['smooth']>;
  let answer: 'accepted' | 'loading' | 'closed';
  /** Purchases of each query for rows. */
  let queries: number[];
  let placed: { ref: HomeBucket; purchases: readonly Purchase[] }[];

  beforeEach(() => {
    clock = new ManualClock();
    store = new MemoryRedis({ clock });
    mysql = new MemoryRepositories({ clock });
    cache = new MemorySaleSnapshotCache(clock, { ttlMs: 5000 });
    flags = new SoldOutFlags(
      { lifeMs: 500, buyersMax: 100 },
      { store, units: partial({ count: async () => null }), clock, log: silentLog },
    );
    placed = [];
    answer = 'accepted';
    smooth = () => null;
    const batcher = new Batcher(
      { sizeMax: 8, inFlightMax: 2, gatherMs: 0, queueMax: 100, waitMaxMs: 1000, roundsMax: 2 },
      {
        place: async (ref, purchases, _spans, deliver) => {
          placed.push({ ref, purchases });
          purchases.forEach((_, index) => deliver(index, { outcome: answer }));
          return 'accepted';
        },
        clock,
        metrics: partial({ batchPlaced: () => undefined, queueWaited: () => undefined }),
        onError: () => 'unavailable',
      },
    );
    const snapshots = new SaleSnapshots(
      { repository: mysql, cache, clock },
      { memoryTtlMs: 60_000, memoryMax: 100, lockMs: 1000 },
    );
    const orders = {
      findByPurchases: (saleId: string, purchases: readonly Purchase[]) => {
        queries.push(purchases.length);
        return mysql.findByPurchases(saleId, purchases);
      },
    };
    queries = [];
    const closedRows = new ClosedRows(partial(orders), clock);
    gate = new PurchaseGate({ snapshots, flags, batcher, clock, closedRows, store, smooth: () => smooth() });
  });

  const openSale = async (parts: Partial<Sale> = {}): Promise<Sale> => {
    const sale = saleOf(parts, clock.nowMs());
    mysql.putSale(sale);
    await store.warm(sale);
    await store.setState(sale, 'open');
    return sale;
  };
  const enter = (saleId: string, userId = 'u1', requestId = 'k1') =>
    gate.enter({ saleId, userId, requestId, quantity: 2 });
  const sellOut = async (sale: Sale): Promise<void> => {
    await store.deduct(batchOf(sale, purchasesOf('winner')));
    flags.observe({ saleId: sale.saleId, bucket: 0, buckets: 1 }, 0);
    await turn();
  };

  it('submits a purchase to the batcher of its bucket', async () => {
    const { saleId } = await openSale();
    expect(await enter(saleId)).to.deep.equal({ outcome: 'accepted' });
    const purchases = [{ userId: 'u1', requestId: 'k1', quantity: 2 }];
    expect(placed).to.deep.equal([{ ref: { saleId, bucket: 0, buckets: 1 }, purchases }]);
  });

  it('passes on the metadata and the trace id of a purchase', async () => {
    const { saleId } = await openSale();
    const request = { userId: 'u1', requestId: 'k1', quantity: 1, metadata: { cart: '42' }, traceId: 'a'.repeat(32) };
    await gate.enter({ saleId, ...request, span: null });
    expect(placed[0]?.purchases).to.deep.equal([request]);
  });

  it('returns `not_found` for a missing sale or a draft without asking Redis', async () => {
    expect(await enter(saleOf().saleId)).to.deep.equal({ outcome: 'not_found' });
    expect(await enter((await openSale({ state: 'draft' })).saleId)).to.deep.equal({ outcome: 'not_found' });
    expect(placed).to.deep.equal([]);
  });

  it('returns `not_open` for an announced sale until its end, without asking Redis', async () => {
    const [opensAtMs, closesAtMs] = [clock.nowMs() + 1000, clock.nowMs() + 2000];
    const sale = saleOf({ state: 'draft', warmBeforeMs: 500, stock: 1, opensAtMs, closesAtMs }, clock.nowMs());
    mysql.putSale(sale);
    for (const leftMs of [1000, 0, -999]) {
      clock.step(opensAtMs - leftMs - clock.nowMs());
      expect(gate.refuseEarly(sale.saleId, 'u1')).to.equal(null);
      expect(await enter(sale.saleId), `${leftMs} ms before it opens`).to.deep.equal({ outcome: 'not_open' });
    }
    clock.step(closesAtMs - clock.nowMs());
    expect(await enter(sale.saleId)).to.deep.equal({ outcome: 'closed' });
    expect(placed).to.deep.equal([]);
  });

  it('returns `loading` while another process reads the sale', async () => {
    const { saleId } = await openSale();
    await cache.lock(saleId, 60_000);
    expect(await enter(saleId)).to.deep.equal({ outcome: 'loading' });
  });

  it('throws a fault, not a refusal, if it cannot look up the sale [R8]', async () => {
    const { saleId } = await openSale();
    cache.down = true;
    const failed = await enter(saleId).catch((error: unknown) => error);
    expect(failed).to.include({ name: 'OperationalError', dependency: 'redis' });
  });

  it('answers a repeated key of a retired sale from its row, without Redis', async () => {
    const { saleId } = await openSale();
    const batch = batchOf({ saleId }, purchasesOf('u1*2', 'u3*2'));
    const terms = await mysql.termsOf([saleId]);
    const orders = batch.purchases.map((purchase, index) => {
      return { orderId: `${101 + index}`, batch, purchase, failure: index === 0 ? null : ('units_lost' as const) };
    });
    await mysql.write({ terms, orders, releases: [], oneByOne: new Set(), paymentWindowMs: 1 });
    mysql.putSale({ ...mysql.saleOf(saleId)!, state: 'closed', retiredAtMs: clock.nowMs() });
    await store.forget(mysql.saleOf(saleId)!);

    const entry = { state: 'ordered', orderId: '101', quantity: 2 };
    expect(await enter(saleId)).to.deep.equal({ outcome: 'replayed', entry });
    expect(await enter(saleId, 'u3')).to.deep.equal({
      outcome: 'replayed',
      entry: { state: 'released', orderId: '102', quantity: 2 },
    });
    expect(await enter(saleId, 'u2')).to.deep.equal({ outcome: 'closed' });
    const other = { saleId, userId: 'u1', requestId: 'k1', quantity: 1 };
    expect(await gate.enter(other)).to.deep.equal({ outcome: 'request_conflict' });
    expect(placed).to.deep.equal([]);
  });

  it('sends MySQL a few queries during a storm on a retired sale', async () => {
    const { saleId } = await openSale({ state: 'closed', retiredAtMs: clock.nowMs() });
    const storm = Array.from({ length: 1000 }, (_, n) => enter(saleId, `u${n % 2 === 0 ? 0 : n}`));
    expect(new Set((await Promise.all(storm)).map(({ outcome }) => outcome))).to.deep.equal(new Set(['closed']));
    expect(queries).to.have.length.below(4);
    queries = [];
    for (let again = 0; again < 100; again++) await enter(saleId, `u${2 * again + 1}`);
    expect(queries, 'answers are kept for seconds').to.deep.equal([]);
    clock.advance(3001);
    await enter(saleId, 'u1');
    expect(queries, 'but no longer').to.deep.equal([1]);
  });

  it('answers from the row, or requests a rebuild, if Redis may have lost a closed sale', async () => {
    const { saleId } = await openSale({ state: 'closed' });
    const batch = batchOf({ saleId }, purchasesOf('u1*2'));
    const terms = await mysql.termsOf([saleId]);
    const orders = [{ orderId: '101', batch, purchase: batch.purchases[0]!, failure: null }];
    await mysql.write({ terms, orders, releases: [], oneByOne: new Set(), paymentWindowMs: 1 });
    answer = 'loading';
    const entry = { state: 'ordered', orderId: '101', quantity: 2 };
    expect(await enter(saleId)).to.deep.equal({ outcome: 'replayed', entry });
    expect([...store.asks]).to.deep.equal([]);
    expect(await enter(saleId, 'u2')).to.deep.equal({ outcome: 'loading' });
    expect([...store.asks]).to.deep.equal([saleId]);
    answer = 'closed';
    expect(await enter(saleId, 'u3'), 'Redis decides').to.deep.equal({ outcome: 'closed' });
  });

  it('refuses from memory while the flag is set, before and after it reads the body', async () => {
    const sale = await openSale({ stock: 1 });
    await enter(sale.saleId);
    await sellOut(sale);
    expect(gate.refuseEarly(sale.saleId, 'loser')).to.equal('sold_out');
    expect(await enter(sale.saleId, 'loser')).to.deep.equal({ outcome: 'sold_out' });
    expect(placed, 'only the first purchase passed').to.have.length(1);
  });

  it('passes the repeat of an accepted purchase on to Redis', async () => {
    const sale = await openSale({ stock: 1 });
    await enter(sale.saleId);
    await sellOut(sale);
    expect(gate.refuseEarly(sale.saleId, 'winner')).to.equal(null);
    await enter(sale.saleId, 'winner');
    expect(placed).to.have.length(2);
  });

  it('makes a purchase wait its turn before the batcher, or refuses it there', async () => {
    const { saleId } = await openSale();
    let leave: () => void = () => undefined;
    smooth = () => new Promise((resolve) => (leave = resolve));
    const waits = enter(saleId);
    await turn();
    expect(placed).to.deep.equal([]);
    leave();
    expect(await waits).to.deep.equal({ outcome: 'accepted' });
    smooth = () => 'rate_limited';
    expect(await enter(saleId, 'u2')).to.deep.equal({ outcome: 'rate_limited' });
    expect(placed).to.have.length(1);
  });

  it('uses up no turn for a purchase that does not reach the batcher', async () => {
    let turns = 0;
    smooth = () => (turns++, null);
    const sale = await openSale({ stock: 1 });
    await enter(sale.saleId);
    await sellOut(sale);
    await enter(sale.saleId, 'loser');
    await enter(saleOf().saleId);
    expect(turns).to.equal(1);
  });

  it('refuses nothing early if the sale snapshot is not in memory', async () => {
    const sale = await openSale({ stock: 1 });
    await sellOut(sale);
    expect(gate.refuseEarly(sale.saleId, 'loser')).to.equal(null);
    expect(gate.refuseEarly(saleOf().saleId, 'loser')).to.equal(null);
  });

  it('always assigns a buyer to the same bucket, and keeps separate flags per bucket [R12]', async () => {
    const sale = await openSale({ stock: 8, buckets: 4 });
    const users = Array.from({ length: 40 }, (_, index) => `user-${index}`);
    for (const userId of users) await enter(sale.saleId, userId);
    for (const { ref, purchases } of placed) {
      for (const { userId } of purchases) expect(ref.bucket).to.equal(homeBucket(userId, 4));
    }
    expect(new Set(placed.map(({ ref }) => ref.bucket)).size).to.equal(4);

    flags.observe({ saleId: sale.saleId, bucket: 2, buckets: 4 }, 0);
    await turn();
    for (const userId of users) {
      const refused = gate.refuseEarly(sale.saleId, userId);
      expect(refused, userId).to.equal(homeBucket(userId, 4) === 2 ? 'sold_out' : null);
    }
  });
});
