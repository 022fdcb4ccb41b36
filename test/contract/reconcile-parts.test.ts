import { expect } from 'chai';
import type { Batch } from '../../src/core/batch.js';
import type { Sale } from '../../src/core/sale.js';
import { composeOrderId, explainOrderId } from '../../src/core/order-id.js';
import { createOutbox } from '../../src/mysql/outbox.js';
import { createReconcileRepository } from '../../src/mysql/reconcile-repository.js';
import { silentLog } from '../helpers/silent-log.js';
import type { MintedWindow, ReconcileRepository } from '../../src/core/ports/reconcile-repository.js';
import type { ReconcileStore } from '../../src/core/ports/reconcile-store.js';
import type { BatchStore } from '../../src/core/ports/batch-store.js';
import type { SaleStore, StockStore } from '../../src/core/ports/stock-store.js';
import { connectRedis } from '../../src/redis/connection.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { createReconcileStore } from '../../src/redis/reconcile-store.js';
import { createSaleStore } from '../../src/redis/sale-store.js';
import { createBatchStore } from '../../src/redis/batch-store.js';
import { createTransferStore } from '../../src/redis/transfer-store.js';
import { createStockStore } from '../../src/redis/stock-store.js';
import type { MemoryRepositories } from '../helpers/memory/memory-repositories.js';
import type { MemoryDeadLetterRepository } from '../helpers/memory/memory-dead-letter-repository.js';
import { MemoryRedis } from '../helpers/memory/memory-redis.js';
import { MemoryReconcileRepository, MemoryReconcileStore } from '../helpers/memory/memory-reconcile.js';
import { startRedisCluster, WORLD_TIMEOUT_MS } from '../helpers/redis-cluster.js';
import { batchOf, purchaseOf, purchasesOf, saleOf } from '../helpers/sales.js';
import { stackEnv } from '../helpers/stack-env.js';
import type { TransferStore } from '../../src/core/ports/transfer-store.js';
import { MemoryTransferStore } from '../helpers/memory/memory-transfer-store.js';
import { memoryWorld, mysqlWorld, newSale, systemClock, type RepositoryWorld } from './repository-worlds.js';

interface StoreSide {
  readonly read: ReconcileStore;
  readonly store: StockStore & SaleStore & BatchStore;
  readonly transfers: TransferStore;
  /** Takes the marker of a batch away. */
  bare(batch: Batch): Promise<void>;
  close(): Promise<void>;
}

async function redisSide(url: string): Promise<StoreSide> {
  const connection = await connectRedis({ url, replyTimeoutMs: 5000, connectTimeoutMs: 3000 }, silentLog);
  const parts = [createStockStore(connection, silentLog), createSaleStore(connection)] as const;
  const store = { ...parts[0], ...parts[1], ...createBatchStore(connection) };
  return {
    read: createReconcileStore(connection),
    store,
    transfers: createTransferStore(connection),
    bare: async (batch) => void (await connection.redis.del(bucketKeys(batch).tx + batch.batchId)),
    close: () => connection.close(),
  };
}

const STORES: [string, () => Promise<StoreSide>][] = [
  [
    'memory',
    async () => {
      const store = new MemoryRedis({ clock: systemClock });
      return {
        read: new MemoryReconcileStore(store),
        store,
        transfers: new MemoryTransferStore(store),
        bare: async (batch) => void store.bucket(batch).markers.delete(batch.batchId),
        close: async () => undefined,
      };
    },
  ],
  ['redis', () => redisSide(stackEnv().REDIS_URL)],
  [
    'a Redis cluster',
    async () => {
      const cluster = await startRedisCluster();
      const side = await redisSide(cluster.url);
      return { ...side, close: () => side.close().finally(() => cluster.stop()) };
    },
  ],
];

for (const [name, createSide] of STORES) {
  describe(`contract ReconcileStore on ${name}`, () => {
    let side: StoreSide;
    let sale: Sale;
    before(async function () {
      this.timeout(WORLD_TIMEOUT_MS);
      side = await createSide();
    });
    beforeEach(async () => {
      sale = saleOf({ stock: 100, limitPerBuyer: 10 });
      await side.store.warm(sale);
      await side.store.setState(sale, 'open');
    });
    after(() => side?.close());
    const ref = () => ({ saleId: sale.saleId, bucket: 0 });
    const deducted = async (...texts: string[]) => {
      const batch = batchOf(sale, purchasesOf(...texts));
      expect((await side.store.deduct(batch)).outcome).to.equal('deducted');
      return batch;
    };

    it('gives every request in pages, and single entries', async () => {
      const { batchId } = await deducted('u1*2', 'u2');
      const pages = [];
      for await (const page of side.read.requests(ref())) pages.push(...page);
      const held = { state: 'held', batchId } as const;
      expect(new Map(pages)).to.deep.equal(
        new Map([
          ['u1/k1', { ...held, quantity: 2 }],
          ['u2/k1', { ...held, quantity: 1 }],
        ]),
      );
      const entries = await side.read.entriesOf(ref(), ['u2/k1', 'nobody/k1']);
      expect(entries).to.deep.equal([{ ...held, quantity: 1 }, null]);
      expect(await side.read.entriesOf(ref(), [])).to.deep.equal([]);
    });

    it('knows of a batch how long it is pending, its marker and its body', async () => {
      const batch = await deducted('u1');
      const pending = await side.read.batch(ref(), batch.batchId);
      expect(pending.pendingMs).to.be.within(0, 60_000);
      expect(pending).to.include({ marker: 'deducted', body: batch.body });
      await side.store.markRecorded([{ batch, orders: [] }]);
      const settled = { pendingMs: null, marker: 'deducted', body: null };
      expect(await side.read.batch(ref(), batch.batchId)).to.deep.equal(settled);
      await side.store.resolve(batchOf(sale, [], 'aborted-batch'));
      expect(await side.read.batch(ref(), 'aborted-batch')).to.include({ marker: 'aborted', body: null });
      const unknown = { pendingMs: null, marker: null, body: null };
      expect(await side.read.batch(ref(), 'no-batch')).to.deep.equal(unknown);
    });

    it('says of many batches which are in pending, for how long, and whether a re-drive can serve them', async () => {
      const [whole, bare, settled] = [await deducted('u1'), await deducted('u2'), await deducted('u3')];
      await side.store.markRecorded([{ batch: settled, orders: [] }]);
      await side.bare(bare);
      const found = await side.read.pendingAmong(ref(), [
        ...[whole, bare, settled].map(({ batchId }) => batchId),
        'none',
      ]);
      expect([...found].map(([batchId, { hasBody }]) => [batchId, hasBody])).to.have.deep.members([
        [whole.batchId, true],
        [bare.batchId, false],
      ]);
      for (const { pendingMs } of found.values()) expect(pendingMs).to.be.within(0, 60_000);
      expect((await side.read.pendingAmong(ref(), [])).size).to.equal(0);
    });

    it('names the transfers to and from other buckets [R12]', async () => {
      const { transfers } = side;
      const split = { ...saleOf({ stock: 30, buckets: 3 }), epoch: 1 };
      const bucket = (index: number) => ({ saleId: split.saleId, bucket: index });
      await side.store.warm(split);
      for (const to of [2, 0]) await transfers.transferOut(bucket(1), to, 1, 1);
      await transfers.transferIn(split.saleId, { from: 1, to: 2, seq: 1, units: 5 }, 1);
      await transfers.endTransfer(split.saleId, { from: 1, to: 2, seq: 1, units: 5 }, 1);
      const lender = await side.read.units(bucket(1), 0);
      expect(lender?.unitsLeft).to.equal(2);
      expect(
        lender?.transfers.outgoing.map(({ ageMs, ...lent }) => (expect(ageMs).to.be.below(60_000), lent)),
      ).to.deep.equal([
        { to: 0, seq: 1, units: 3, isOpen: true },
        { to: 2, seq: 1, units: 5, isOpen: false },
      ]);
      const other = await side.read.units(bucket(2), 0);
      expect([other?.unitsLeft, other?.transfers]).to.deep.equal([15, { outgoing: [], incoming: new Map([[1, 1]]) }]);
    });

    it('adds the units up, and says what is young', async () => {
      await deducted('u1*2', 'u2');
      const transfers = { outgoing: [], incoming: new Map() };
      const units = { unitsLeft: 97, unitsOfBuyers: 3, moved: false, pending: 1, transfers };
      expect(await side.read.units(ref(), 60_000)).to.deep.equal({ ...units, youngPending: 1 });
      expect(await side.read.units(ref(), -60_000)).to.deep.equal({ ...units, youngPending: 0 });
      expect(await side.read.units({ saleId: saleOf().saleId, bucket: 0 }, 1)).to.equal(null);
    });

    it('adjusts only what is as it was read, in a sale that lets nobody in [C5]', async () => {
      const adjust = (read: number, wanted: number, epoch = 1) => side.read.adjust(ref(), { read, wanted, epoch });
      expect(await adjust(100, 102)).to.equal('selling');
      await side.store.setState(sale, 'paused');
      expect(await adjust(99, 102)).to.equal('moved');
      expect(await adjust(100, 102, 2), 'read in another epoch').to.equal('moved');
      expect(await adjust(100, 102)).to.equal('adjusted');
      expect((await side.read.units(ref(), 1))?.unitsLeft).to.equal(102);
      const nowhere = { saleId: saleOf().saleId, bucket: 0 };
      expect(await side.read.adjust(nowhere, { read: 1, wanted: 2, epoch: 1 })).to.equal('not_warmed');
    });

    it('names and removes markers of recorded batches only [C7]', async () => {
      const [settled, pending] = [await deducted('u1'), await deducted('u2')];
      await side.store.markRecorded([{ batch: settled, orders: [] }]);
      await side.store.resolve(batchOf(sale, [], 'aborted-batch'));
      const all = [settled.batchId, pending.batchId, 'aborted-batch', 'no-batch'];
      expect(await side.read.recordedMarkers(ref(), all)).to.deep.equal([settled.batchId]);
      expect(await side.read.removeMarkers(ref(), [settled.batchId, 'no-batch'])).to.equal(1);
      expect(await side.read.recordedMarkers(ref(), all)).to.deep.equal([]);
      expect(await side.read.removeMarkers(ref(), [])).to.equal(0);
    });
  });
}

interface RepositorySide {
  readonly world: RepositoryWorld;
  readonly read: ReconcileRepository;
  /** Leaves a promise of a release in the outbox. */
  promise(saleId: string): Promise<string>;
  keep(outboxId: string): Promise<void>;
}

const BOOKS: [string, () => Promise<RepositorySide>][] = [
  [
    'memory',
    async () => {
      const world = await memoryWorld(systemClock);
      const books: MemoryRepositories = world.books;
      const read = new MemoryReconcileRepository(books, world.deadLetters as MemoryDeadLetterRepository);
      return {
        world,
        read,
        promise: async (saleId) => books.outbox.add('release', 'b', [releaseIn(saleId)]),
        keep: (outboxId) => books.outbox.markDone([outboxId]),
      };
    },
  ],
  [
    'mysql',
    async () => {
      const world = await mysqlWorld();
      const { pool } = world;
      return {
        world,
        read: createReconcileRepository(pool, 2),
        promise: async (saleId) => {
          const sql = "INSERT INTO outbox (kind, `key`, payload) VALUES ('release', 'b', ?)";
          return (await pool.execute(sql, [JSON.stringify([releaseIn(saleId)])])).insertId;
        },
        keep: (outboxId) => createOutbox(pool).markDone([outboxId]),
      };
    },
  ],
];

const releaseIn = (saleId: string) => ({
  saleId,
  bucket: 0,
  userId: 'u1',
  requestId: 'k1',
  orderId: '1',
  batchId: '',
  withUnits: true,
});

for (const [name, createSide] of BOOKS) {
  describe(`contract ReconcileRepository on ${name}`, () => {
    let side: RepositorySide;
    let sale: Sale;
    before(async function () {
      this.timeout(WORLD_TIMEOUT_MS);
      side = await createSide();
    });
    beforeEach(async () => {
      sale = await side.world.sales.create(newSale({ opensAtMs: Date.now() - 1000 }));
    });
    after(() => side?.world.close());

    async function recorded(...texts: string[]): Promise<string[]> {
      const batch = batchOf(sale, purchasesOf(...texts));
      const orders = batch.purchases.map((purchase, index) => ({
        batch,
        purchase,
        failure: index === 1 ? ('limit_reached' as const) : null,
        orderId: composeOrderId(Date.now(), 254, `${purchase.userId}${sale.saleId}`, index),
      }));
      const terms = await side.world.orders.termsOf([sale.saleId]);
      const plan = { terms, orders, releases: [], oneByOne: new Set<string>(), paymentWindowMs: 60_000 };
      expect((await side.world.orders.write(plan)).outcome).to.equal('written');
      return orders.map(({ orderId }) => orderId);
    }

    it('finds rows by request, with their age', async () => {
      const [first, second] = await recorded('u1', 'u2', 'u3');
      const rows = await side.read.rowsOf(sale.saleId, [purchaseOf('u1'), purchaseOf('u2'), purchaseOf('u3/other')]);
      const told = rows.map(({ orderId, state, reason }) => ({ orderId, state, reason }));
      expect(told).to.have.deep.members([
        { orderId: first, state: 'pending_payment', reason: null },
        { orderId: second, state: 'failed', reason: 'limit_reached' },
      ]);
      for (const { ageMs } of rows) expect(ageMs).to.be.within(0, 60_000);
      expect(await side.read.rowsOf(sale.saleId, [])).to.deep.equal([]);
    });

    it('walks the rows of the sale, window by window', async () => {
      const ids = await recorded('u1', 'u2', 'u3', 'u4', 'u5');
      const seen: string[] = [];
      for await (const rows of side.read.agedOrders(sale)) seen.push(...rows.map(({ orderId }) => orderId));
      expect(seen.sort()).to.deep.equal(ids.sort());
    });

    it('walks the rows that were minted in a window', async () => {
      const [first = ''] = await recorded('u1');
      const countIn = async (window: MintedWindow): Promise<number> => {
        let rows = 0;
        for await (const chunk of side.read.agedOrders(sale, window)) rows += chunk.length;
        return rows;
      };
      const { atMs } = explainOrderId(first);
      expect(await countIn({ toMs: atMs - 60_000 })).to.equal(0);
      expect(await countIn({ toMs: atMs + 60_000 })).to.equal(1);
      expect(await countIn({ fromMs: atMs - 60_000 })).to.equal(1);
      expect(await countIn({ fromMs: atMs + 60_000 })).to.equal(0);
      expect(await countIn({ fromMs: 0 })).to.equal(1);
    });

    it('names batches with a parked dead letter', async () => {
      const batch = batchOf(sale, purchasesOf('u1'));
      await side.world.deadLetters.park({
        messageId: batch.batchId,
        group: 'seckill-order-writer',
        originTopic: 'seckill-purchase',
        detail: 'x',
        saleId: sale.saleId,
        batchId: batch.batchId,
        body: batch.body,
        reason: 'retries_exhausted',
        attempts: 8,
      });
      const other = batchOf(sale, purchasesOf('u2'));
      const parked = await side.read.parkedBatches([batch.batchId, other.batchId]);
      expect([...parked]).to.deep.equal([batch.batchId]);
      expect((await side.read.parkedBatches([])).size).to.equal(0);
    });

    it('names promises that are old or were tried often, until they are kept', async () => {
      const outboxId = await side.promise(sale.saleId);
      const stuck = (olderThanMs: number, attemptsMin: number) =>
        side.read.stuckRows(sale.saleId, { olderThanMs, attemptsMin }, 10);
      expect(await stuck(60_000, 5)).to.deep.equal([]);
      const [old] = await stuck(0, 5);
      expect(old).to.include({ outboxId, attempts: 0 });
      expect((await stuck(60_000, 0)).map((row) => row.outboxId)).to.deep.equal([outboxId]);
      expect(await side.read.stuckRows(`${sale.saleId}1`, { olderThanMs: 0, attemptsMin: 0 }, 10)).to.deep.equal([]);
      expect([await side.read.undoneReleases(sale.saleId), await side.read.isDone(outboxId)]).to.deep.equal([1, false]);
      await side.keep(outboxId);
      expect([await side.read.undoneReleases(sale.saleId), await side.read.isDone(outboxId)]).to.deep.equal([0, true]);
      expect(await stuck(0, 0)).to.deep.equal([]);
    });
  });
}
