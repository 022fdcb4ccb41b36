import { expect } from 'chai';
import type { Sale } from '../../src/core/sale.js';
import { composeOrderId } from '../../src/core/order-id.js';
import { explainOrderId } from '../helpers/explain-order-id.js';
import { createOutbox } from '../../src/mysql/outbox.js';
import { createReconcileRepository } from '../../src/mysql/reconcile-repository.js';
import type { MintedWindow, ReconcileRepository } from '../../src/core/ports/reconcile-repository.js';
import type { MemoryDeadLetterRepository } from '../helpers/memory/memory-dead-letter-repository.js';
import { MemoryReconcileRepository } from '../helpers/memory/memory-reconcile.js';
import { batchOf, purchaseOf, purchasesOf } from '../helpers/sales.js';
import { memoryWorld, mysqlWorld, newSale, systemClock, type RepositoryWorld } from './repository-worlds.js';

interface RepositorySide {
  readonly world: RepositoryWorld;
  readonly read: ReconcileRepository;
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
      return {
        world,
        read: new MemoryReconcileRepository(world.repositories, world.deadLetters as MemoryDeadLetterRepository),
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
        addRelease: async (saleId) => {
          const sql = "INSERT INTO outbox (kind, `key`, payload) VALUES ('release', 'b', ?)";
          return (await pool.execute(sql, [JSON.stringify([releaseIn(saleId)])])).insertId;
        },
        markDone: (outboxId) => createOutbox(pool).markDone([outboxId]),
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

for (const [name, createSide] of WORLDS) {
  describe(`contract ReconcileRepository on ${name}`, () => {
    let side: RepositorySide;
    let sale: Sale;
    before(async () => {
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
      const found = rows.map(({ orderId, state, reason }) => ({ orderId, state, reason }));
      expect(found).to.have.deep.members([
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

    it('names outbox rows that are old or were tried often, until they are done', async () => {
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
