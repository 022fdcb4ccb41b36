import { expect } from 'chai';
import type { Batch } from '../../src/core/batch.js';
import type { Sale } from '../../src/core/sale.js';
import { composeOrderId } from '../../src/core/order-id.js';
import { createOutbox } from '../../src/mysql/outbox.js';
import { createReconcileRepository } from '../../src/mysql/reconcile-repository.js';
import type { OrderCursor, OrderPage, ReconcileRepository } from '../../src/core/ports/reconcile-repository.js';
import type { MemoryDeadLetters } from '../helpers/memory/memory-dead-letters.js';
import { MemoryReconcileRepository } from '../helpers/memory/memory-reconcile.js';
import { batchOf, purchaseOf, purchasesOf } from '../helpers/sales.js';
import { memoryWorld, mysqlWorld, newSale, systemClock, type RepositoryWorld } from './repository-worlds.js';

interface RepositorySide {
  readonly world: RepositoryWorld;
  /** Reads pages of about two orders. */
  readonly read: ReconcileRepository;
  /** Writes an order without a note of its range, as an older worker did. */
  addUnlisted(sale: Sale, userId: string): Promise<string>;
  /** Adds a release to the outbox. */
  addRelease(saleId: string): Promise<string>;
  markDone(outboxId: string): Promise<void>;
}

const WORLDS: [string, () => Promise<RepositorySide>][] = [
  [
    'memory',
    async () => {
      const world = await memoryWorld(systemClock);
      const { outbox } = world.repositories;
      const read = new MemoryReconcileRepository(world.repositories, world.deadLetters as MemoryDeadLetters);
      return {
        world,
        read,
        async addUnlisted(sale, userId) {
          const [orderId = ''] = await writeOrders(world, [batchOf(sale, purchasesOf(userId))]);
          read.unlist(orderId);
          return orderId;
        },
        addRelease: async (saleId) => outbox.add('release', 'b', [releaseIn(saleId)]),
        markDone: (outboxId) => outbox.markDone([outboxId]),
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
        async addUnlisted(sale, userId) {
          const [orderId = ''] = await writeOrders(world, [batchOf(sale, purchasesOf(userId))]);
          await pool.execute('DELETE FROM order_ranges WHERE sale_id = ? AND first_id = ?', [sale.saleId, orderId]);
          return orderId;
        },
        addRelease: async (saleId) => {
          const sql = "INSERT INTO outbox (kind, `key`, payload) VALUES ('release', 'b', ?)";
          return (await pool.execute(sql, [JSON.stringify([releaseIn(saleId)])])).insertId;
        },
        markDone: (outboxId) => createOutbox(pool).markDone([outboxId]),
      };
    },
  ],
];

let minted = 0;
/** Returns an order id of the same millisecond as other ids, as from a busy worker. */
function orderId(userId: string): string {
  minted++;
  return composeOrderId(Date.now() + (minted >> 8), 254, userId, minted & 255);
}

/** Writes the batches in one transaction. The second purchase of each is `failed`. @returns ids of the orders */
async function writeOrders({ orders: repository }: RepositoryWorld, batches: readonly Batch[]): Promise<string[]> {
  const orders = batches.flatMap((batch) =>
    batch.purchases.map((purchase, index) => ({
      batch,
      purchase,
      failure: index === 1 ? ('limit_reached' as const) : null,
      orderId: orderId(purchase.userId),
    })),
  );
  const terms = await repository.termsOf(batches.map(({ saleId }) => saleId));
  const plan = { terms, orders, releases: [], oneByOne: new Set<string>(), paymentWindowMs: 60_000 };
  expect((await repository.write(plan)).outcome).to.equal('written');
  return orders.map(({ orderId }) => orderId);
}

const releaseIn = (saleId: string) => ({
  saleId,
  bucket: 0,
  userId: 'u1',
  requestId: 'k1',
  orderId: '1',
  batchId: '',
  withUnits: true,
});

for (const [name, createSide] of WORLDS) {
  describe(`contract: ReconcileRepository on ${name}`, () => {
    let side: RepositorySide;
    let sale: Sale;
    before(async () => {
      side = await createSide();
    });
    beforeEach(async () => {
      sale = await side.world.sales.create(newSale({ stock: 100, opensAtMs: Date.now() - 1000 }));
    });
    after(() => side?.world.close());

    const recorded = (...texts: string[]): Promise<string[]> =>
      writeOrders(side.world, [batchOf(sale, purchasesOf(...texts))]);

    async function pagesOf({ saleId }: Sale): Promise<string[][]> {
      const pages: string[][] = [];
      let from: OrderCursor | null = null;
      do {
        const { rows, next }: OrderPage = await side.read.orderPage(saleId, from);
        pages.push(rows.map(({ orderId }) => orderId));
        from = next;
      } while (from !== null);
      return pages;
    }

    async function unlistedOf(of: Sale): Promise<string[]> {
      const found: string[] = [];
      for await (const rows of side.read.unlistedOrders(of)) found.push(...rows.map(({ orderId }) => orderId));
      return found;
    }

    it('finds rows by request, with their age', async () => {
      const [first, second] = await recorded('u1', 'u2', 'u3');
      const rows = await side.read.rowsOf(sale.saleId, [purchaseOf('u1'), purchaseOf('u2'), purchaseOf('u3/other')]);
      const found = rows.map(({ orderId, state, reason }) => ({ orderId, state, reason }));
      expect(found).to.have.deep.members([
        { orderId: first, state: 'pending_payment', reason: null },
        { orderId: second, state: 'failed', reason: 'limit_reached' },
      ]);
      for (const { ageMs } of rows) expect(ageMs).to.be.within(0, 60_000);
      expect(await side.read.rowsOf(sale.saleId, [])).to.deep.equal([]);
    });

    it('reads each order of a sale once, page by page, and no order of another sale', async () => {
      expect(await pagesOf(sale)).to.deep.equal([[]]);
      const other = await side.world.sales.create(newSale());
      const ids: string[] = [];
      const others: string[] = [];
      for (const user of ['u1', 'u2', 'u3', 'u4', 'u5', 'u6']) {
        const mine = [batchOf(sale, purchasesOf(user)), batchOf(sale, purchasesOf(`${user}b`, `${user}c`))];
        const [first = '', theirs = '', ...rest] = await writeOrders(side.world, [
          mine[0] as Batch,
          batchOf(other, purchasesOf(user)),
          mine[1] as Batch,
        ]);
        ids.push(first, ...rest);
        others.push(theirs);
      }
      const byValue = (a: string, b: string): number => Number(BigInt(a) - BigInt(b));
      const pages = await pagesOf(sale);
      expect(pages.length).to.be.greaterThan(1);
      expect(pages.flat()).to.deep.equal(ids.sort(byValue));
      expect((await pagesOf(other)).flat()).to.deep.equal(others.sort(byValue));
      expect(await unlistedOf(sale)).to.deep.equal([]);
    });

    it('scans the whole table for orders that no writer noted, and also returns noted orders', async () => {
      const listed = await recorded('u1', 'u2');
      const unlisted = [await side.addUnlisted(sale, 'u3'), await side.addUnlisted(sale, 'u4')];
      listed.push(...(await recorded('u5')));
      expect((await pagesOf(sale)).flat()).to.have.members(listed);
      expect(await unlistedOf(sale)).to.have.members(unlisted);
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

    it('names outbox rows that are old or were retried often, until they are done', async () => {
      const outboxId = await side.addRelease(sale.saleId);
      const stuck = (olderThanMs: number, attemptsMin: number) =>
        side.read.stuckRows(sale.saleId, { olderThanMs, attemptsMin }, 10);
      expect(await stuck(60_000, 5)).to.deep.equal([]);
      const [old] = await stuck(0, 5);
      expect(old).to.include({ outboxId, attempts: 0 });
      expect((await stuck(60_000, 0)).map((row) => row.outboxId)).to.deep.equal([outboxId]);
      expect(await side.read.stuckRows(`${sale.saleId}1`, { olderThanMs: 0, attemptsMin: 0 }, 10)).to.deep.equal([]);
      expect([await side.read.undoneReleases(sale.saleId), await side.read.isDone(outboxId)]).to.deep.equal([1, false]);
      await side.markDone(outboxId);
      expect([await side.read.undoneReleases(sale.saleId), await side.read.isDone(outboxId)]).to.deep.equal([0, true]);
      expect(await stuck(0, 0)).to.deep.equal([]);
    });
  });
}
