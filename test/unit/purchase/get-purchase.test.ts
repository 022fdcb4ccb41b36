import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import type { Order } from '../../../src/core/order.js';
import { type Sale } from '../../../src/core/sale.js';
import { homeBucket } from '../../../src/core/bucket.js';
import type { FoundBy } from '../../../src/purchase/metrics.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import { ClosedRows } from '../../../src/purchase/closed-rows.js';
import { GetPurchase, type PurchaseQuery } from '../../../src/purchase/get-purchase.js';
import { statusOf } from '../../../src/purchase/read-purchase.js';
import { SaleSnapshots } from '../../../src/sales/sale-snapshots.js';
import type { OrderRepository } from '../../../src/core/ports/order-repository.js';
import type { StockStore } from '../../../src/core/ports/stock-store.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryRedis } from '../../helpers/memory/memory-redis.js';
import { MemoryPurchaseNotifications } from '../../helpers/memory/memory-purchase-notifications.js';
import { MemorySaleSnapshotCache } from '../../helpers/memory/memory-sale-snapshot-cache.js';
import { SteppedClock } from '../../helpers/memory/stepped-clock.js';
import { orderOf, batchOf, liveOrderOf, purchasesOf, saleOf } from '../../helpers/sales.js';
import { partial } from '../../helpers/partial.js';

/** Runs everything that can run now. */
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
};

const POLL_MAX_MS = 5000;

describe('get-purchase', () => {
  let clock: ManualClock;
  let store: MemoryRedis;
  let rows: Order[];
  let sale: Sale;
  let reads: number;
  let never: AbortSignal;
  let notifications: MemoryPurchaseNotifications;
  let found: FoundBy[];

  beforeEach(async () => {
    clock = new ManualClock();
    store = new MemoryRedis({ clock });
    rows = [];
    reads = 0;
    never = new AbortController().signal;
    notifications = new MemoryPurchaseNotifications();
    found = [];
    sale = saleOf({ limitPerBuyer: 5 }, clock.nowMs());
    await store.warm(sale);
    await store.setState(sale, 'open');
  });

  const create = (ports: { clock?: Clock; snapshots?: SaleSnapshots } = {}): GetPurchase => {
    const snapshots = new SaleSnapshots(
      {
        repository: partial({
          find: async (saleId) => (saleId === sale.saleId ? sale : null),
          newestId: async () => sale.saleId,
        }),
        cache: cacheOf(),
        clock,
      },
      { memoryTtlMs: 3_600_000, memoryMax: 10, lockMs: 1000 },
    );
    const repository = partial<OrderRepository>({
      findByPurchases: async (saleId, [purchase]) =>
        rows.filter(
          (row) => row.saleId === saleId && row.userId === purchase?.userId && row.requestId === purchase.requestId,
        ),
    });
    const parts = {
      snapshots,
      store: partial<StockStore>({
        findRequest: (...args) => {
          reads++;
          return store.findRequest(...args);
        },
        askForRepair: (saleId) => store.askForRepair(saleId),
      }),
      repository,
      closedRows: new ClosedRows(repository, clock),
      clock,
      notifications,
      random: () => 0,
      metrics: { changeFound: (by: FoundBy) => void found.push(by) },
      ...ports,
    };
    return new GetPurchase(parts, POLL_MAX_MS);
  };
  const cacheOf = (): MemorySaleSnapshotCache => new MemorySaleSnapshotCache(clock, { ttlMs: 60_000 });
  const query = (parts: Partial<PurchaseQuery> = {}): PurchaseQuery => ({
    saleId: sale.saleId,
    userId: 'u1',
    requestId: 'k1',
    waitMs: 0,
    signal: never,
    ...parts,
  });
  const rowOf = (parts: Partial<Order> = {}): Order => orderOf({ saleId: sale.saleId, ...parts });
  const hold = () => store.deduct(batchOf(sale, purchasesOf('u1')));

  describe('status of a purchase', () => {
    it('is not_found if neither Redis nor MySQL has the purchase', async () => {
      expect(await create().get(query())).to.deep.equal({ status: 'not_found' });
    });

    it('is never not_found while the sale is loading [S3]', async () => {
      const snapshots = partial<SaleSnapshots>({ get: async () => ({ snapshot: 'loading' }) });
      await hold();
      expect(await create({ snapshots }).get(query()), 'found where a sale of one bucket has it').to.deep.equal({
        status: 'pending',
      });
      const error: unknown = await create({ snapshots })
        .get(query({ requestId: 'another' }))
        .catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(OperationalError).and.include({ dependency: 'mysql', retryable: true });
    });

    it('comes from the row of a closed sale that Redis lost, or requests a rebuild', async () => {
      sale = { ...sale, state: 'closed' };
      await hold();
      store.restart();
      rows.push(rowOf({ requestId: 'k2' }));
      expect(await create().get(query({ requestId: 'k2' }))).to.include({ status: 'ordered' });
      expect([...store.asks]).to.deep.equal([]);
      const error: unknown = await create()
        .get(query())
        .catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(OperationalError).and.include({ dependency: 'redis', retryable: true });
      expect([...store.asks]).to.deep.equal([sale.saleId]);
    });

    it('uses only MySQL for a retired sale: its row, or not_found', async () => {
      sale = { ...sale, state: 'closed', retiredAtMs: clock.nowMs() };
      await store.forget(sale);
      rows.push(rowOf({ state: 'paid' }));
      expect(await create().get(query())).to.deep.equal({ status: 'ordered', orderId: '101', orderState: 'paid' });
      expect(await create().get(query({ requestId: 'k2' }))).to.deep.equal({ status: 'not_found' });
      expect(reads).to.equal(0);
    });

    it('is pending if Redis has an order that MySQL has lost [D5, I8]', async () => {
      const batch = batchOf(sale, purchasesOf('u1'));
      await store.deduct(batch);
      await store.markRecorded([{ batch, orders: [liveOrderOf('u1', '101')] }]);
      expect(await create().get(query())).to.deep.equal({ status: 'pending' });
    });

    it('is pending if Redis holds units without a row [S3]', async () => {
      await hold();
      expect(await create().get(query())).to.deep.equal({ status: 'pending' });
    });

    it('is ordered by its row', async () => {
      const { batchId } = batchOf(sale, purchasesOf('u1'));
      await store.deduct(batchOf(sale, purchasesOf('u1'), batchId));
      rows.push(rowOf());
      await store.markRecorded([{ batch: batchOf(sale, purchasesOf('u1'), batchId), orders: [rowOf()] }]);
      const found = await create().get(query());
      expect(found).to.deep.equal({ status: 'ordered', orderId: '101', orderState: 'pending_payment' });
    });

    it('is ordered even if Redis has lost it [R5]', async () => {
      rows.push(rowOf({ state: 'paid' }));
      expect(await create().get(query())).to.deep.equal({ status: 'ordered', orderId: '101', orderState: 'paid' });
    });

    it('is failed with its reason', async () => {
      rows.push(rowOf({ state: 'failed', reason: 'oversold_guard' }));
      const found = await create().get(query());
      expect(found).to.deep.equal({ status: 'failed', orderId: '101', reason: 'oversold_guard' });
    });

    for (const orderState of ['pending_payment', 'paid', 'cancelled', 'expired'] as const) {
      it(`is still ordered if the order is ${orderState}`, () => {
        expect(statusOf(rowOf({ state: orderState }))).to.deep.equal({ status: 'ordered', orderId: '101', orderState });
      });
    }

    it('differs for another buyer, key or sale [S4]', async () => {
      await hold();
      const get = create();
      expect(await get.get(query({ userId: 'u2' }))).to.deep.equal({ status: 'not_found' });
      expect(await get.get(query({ requestId: 'k2' }))).to.deep.equal({ status: 'not_found' });
      expect(await get.get(query({ saleId: '1' }))).to.deep.equal({ status: 'not_found' });
    });

    describe('status when Redis may have lost data', () => {
      const faultOf = (asked: Promise<unknown>): Promise<unknown> =>
        asked.then(
          () => 'no fault',
          (error: unknown) => error,
        );

      it('comes from the row, even if Redis still holds the purchase [R1]', async () => {
        await hold();
        rows.push(rowOf());
        store.restart();
        const ordered = { status: 'ordered', orderId: '101', orderState: 'pending_payment' };
        expect(await create().get(query())).to.deep.equal(ordered);
      });

      it('is a fault without a row, whether Redis is stale, empty or in repair [R1, R5]', async () => {
        await hold();
        for (const lose of [() => store.restart(), () => store.restart({ empty: true })]) {
          lose();
          const fault = await faultOf(create().get(query()));
          expect(fault).to.be.instanceOf(OperationalError).and.include({ dependency: 'redis', retryable: true });
        }
      });

      it('is not_found without a row long after the sale [R5]', async () => {
        store.restart({ empty: true });
        await clock.sleep(sale.closesAtMs - clock.nowMs() + 8 * 24 * 60 * 60 * 1000);
        expect(await faultOf(create().get(query()))).to.be.instanceOf(OperationalError);
        await clock.sleep(1);
        expect(await create().get(query())).to.deep.equal({ status: 'not_found' });
      });

      it('is not_found for an unknown sale [R5]', async () => {
        store.restart();
        expect(await create().get(query({ saleId: '1' }))).to.deep.equal({ status: 'not_found' });
      });
    });

    it('is read from the home bucket of the buyer [R12]', async () => {
      sale = saleOf({ buckets: 4 }, clock.nowMs());
      await store.warm(sale);
      await store.setState(sale, 'open');
      const bucket = homeBucket('u1', 4);
      await store.deduct(batchOf({ ...sale, bucket }, purchasesOf('u1')));
      expect(bucket, 'not the default bucket').not.to.equal(0);
      expect(await create().get(query())).to.deep.equal({ status: 'pending' });
    });

    it('is a fault, never `not_found`, if Redis does not answer [R8]', async () => {
      store.breakNext('read_fails');
      const failed = await create()
        .get(query())
        .catch((error: unknown) => error);
      expect(failed).to.include({ name: 'OperationalError', dependency: 'redis' });
    });
  });

  describe('long poll', () => {
    /** Sleeps until its signal aborts. */
    const sleeping: Clock = {
      nowMs: () => clock.nowMs(),
      monotonicMs: () => clock.monotonicMs(),
      sleep: (_, signal) =>
        signal?.aborted
          ? Promise.resolve()
          : new Promise((resolve) => signal?.addEventListener('abort', () => resolve())),
    };
    it('answers at once if the status is not pending', async () => {
      const startedMs = clock.nowMs();
      expect((await create().get(query({ waitMs: 10_000 }))).status).to.equal('not_found');
      expect([reads, clock.nowMs() - startedMs]).to.deep.equal([1, 0]);
    });

    it('answers when the status changes', async () => {
      await hold();
      const startedMs = clock.nowMs();
      const asked = create().get(query({ waitMs: 10_000 }));
      while (clock.nowMs() - startedMs < 2000) await new Promise((resolve) => setImmediate(resolve));
      rows.push(rowOf());
      store.bucket({ saleId: sale.saleId, bucket: 0 }).requests.set('u1/k1', {
        state: 'ordered',
        orderId: '101',
        quantity: 1,
      });
      expect((await asked).status).to.equal('ordered');
      expect(clock.nowMs() - startedMs, 'at the next read').to.be.below(8000);
      expect(found).to.deep.equal(['read']);
    });

    it('answers `pending` exactly when its time is over', async () => {
      await hold();
      const startedMs = clock.nowMs();
      expect((await create().get(query({ waitMs: 3000 }))).status).to.equal('pending');
      expect(clock.nowMs() - startedMs).to.equal(3000);
    });

    it('reads at most thirteen times in thirty seconds without notifications', async () => {
      await hold();
      await create().get(query({ waitMs: 30_000 }));
      expect(reads).to.be.within(8, 13);
    });

    it('ends at once on a notification and saves the query to MySQL', async () => {
      await hold();
      const asked = create({ clock: new SteppedClock(clock.nowMs()) }).get(query({ waitMs: 10_000 }));
      await turns();
      store.bucket({ saleId: sale.saleId, bucket: 0 }).requests.set('u1/k1', {
        state: 'ordered',
        orderId: '101',
        quantity: 1,
      });
      await notifications.send(sale.saleId, [rowOf({ requestId: 'k2' }), rowOf({ orderId: '101' })]);
      expect(await asked, 'without a row in MySQL').to.deep.equal({
        status: 'ordered',
        orderId: '101',
        orderState: 'pending_payment',
      });
      expect([found, notifications.listening]).to.deep.equal([['notification'], 0]);
    });

    it('does not report a notification that Redis does not confirm [I8]', async () => {
      await hold();
      const stepped = new SteppedClock(clock.nowMs());
      const asked = create({ clock: stepped }).get(query({ waitMs: 10_000 }));
      await turns();
      const before = reads;
      await notifications.send(sale.saleId, [rowOf()]); // the worker died before it marked the batch recorded
      await turns();
      expect(reads - before).to.equal(1);
      stepped.advance(10_000);
      expect(await asked).to.deep.equal({ status: 'pending' });
    });

    it('answers after the shortest pause if a notification precedes the order in Redis [D1]', async () => {
      await hold();
      const stepped = new SteppedClock(clock.nowMs());
      const asked = create({ clock: stepped }).get(query({ waitMs: 30_000 }));
      for (let waitedMs = 0; waitedMs < 20_000; waitedMs += 1000) {
        await turns();
        stepped.advance(1000);
      }
      await turns();
      await notifications.send(sale.saleId, [rowOf()]);
      await turns();
      rows.push(rowOf());
      store.bucket({ saleId: sale.saleId, bucket: 0 }).requests.set('u1/k1', {
        state: 'ordered',
        orderId: '101',
        quantity: 1,
      });
      stepped.advance(50);
      expect((await asked).status).to.equal('ordered');
      expect(stepped.nowMs() - clock.nowMs()).to.equal(20_050);
    });

    it('ends if the caller disconnects [S7]', async () => {
      await hold();
      const leaving = new AbortController();
      const asked = create({ clock: sleeping }).get(query({ waitMs: 10_000, signal: leaving.signal }));
      await new Promise((resolve) => setImmediate(resolve));
      leaving.abort();
      expect((await asked).status).to.equal('pending');
      expect(reads).to.be.at.most(3);
    });

    it('answers a caller beyond the limit at once, until another caller disconnects [S7]', async () => {
      await hold();
      const WAITERS_MAX = 2000;
      const leaving = Array.from({ length: WAITERS_MAX }, () => new AbortController());
      const get = create({ clock: sleeping });
      await get.get(query()); // loads the snapshot
      const { requests } = store.bucket({ saleId: sale.saleId, bucket: 0 });
      const buyerOf = (place: number): string => `u${Math.floor(place / 10)}`;
      leaving.forEach((_, place) => requests.set(`${buyerOf(place)}/k1`, { state: 'held', batchId: 'b', quantity: 1 }));
      const waiting = leaving.map(({ signal }, place) =>
        get.get(query({ userId: buyerOf(place), waitMs: 10_000, signal })),
      );
      await new Promise((resolve) => setImmediate(resolve));
      const before = reads;
      requests.set('late/k1', { state: 'held', batchId: 'b', quantity: 1 });
      expect((await get.get(query({ userId: 'late', waitMs: 10_000 }))).status).to.equal('pending');
      expect(reads - before, 'one read, no wait').to.equal(1);
      for (const waiter of leaving) waiter.abort();
      await Promise.all(waiting);

      const late = new AbortController();
      const again = get.get(query({ waitMs: 10_000, signal: late.signal }));
      let ended = false;
      void again.then(() => (ended = true));
      await new Promise((resolve) => setImmediate(resolve));
      expect(ended, 'it waits').to.equal(false);
      late.abort();
      await again;
    });

    it('limits a buyer to ten places while the polls of other buyers continue [S9]', async () => {
      await hold();
      const stop = new AbortController();
      const get = create({ clock: sleeping });
      await get.get(query());
      store
        .bucket({ saleId: sale.saleId, bucket: 0 })
        .requests.set('u2/k1', { state: 'held', batchId: 'b', quantity: 1 });
      let ended = 0;
      const asked = Array.from({ length: 25 }, () =>
        get.get(query({ waitMs: 10_000, signal: stop.signal })).then(() => ended++),
      );
      const other = get.get(query({ userId: 'u2', waitMs: 10_000, signal: stop.signal })).then(() => ended++);
      for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
      expect(ended, 'answered at once').to.equal(15);
      stop.abort();
      await Promise.all([...asked, other]);
    });

    it('ends on a fault and frees its place [R8]', async () => {
      await hold();
      const get = create();
      const asked = get.get(query({ waitMs: 10_000 })).catch((error: unknown) => error);
      await new Promise((resolve) => setImmediate(resolve));
      store.breakNext('read_fails');
      expect(await asked).to.include({ name: 'OperationalError' });
    });
  });
});
