import { expect } from 'chai';
import { composeOrderId } from '../../src/core/order-id.js';
import { createLandedOrders, type LandedOrders } from '../../src/operate/live/landed-orders.js';
import { createOrderArchive } from '../../src/mysql/order-archive.js';
import type { Sale } from '../../src/core/sale.js';
import { batchOf, purchaseOf } from '../helpers/sales.js';
import { newSale, ownMysqlWorld, type MysqlWorld, type RepositoryWorld } from './repository-worlds.js';
import { useWorld } from './on-each-world.js';

const START_MS = Math.floor(Date.now() / 1000) * 1000 - 600_000;
/** Creation time of each order of a sale, ms from the start. Each order has its own transaction. */
const WRITTEN_MS = [0, 1, 999, 1000, 2500, 2999, 59_000];

let orderCount = 0;

/** Adds orders of one millisecond in one transaction. */
async function write(world: RepositoryWorld, sale: Sale, atMs: number, count = 1): Promise<void> {
  const purchases = Array.from({ length: count }, (_, index) => purchaseOf(`buyer${orderCount + index}`));
  const batch = batchOf(sale, purchases);
  const terms = await world.orders.termsOf([sale.saleId]);
  const orders = purchases.map((purchase) => {
    const orderId = composeOrderId(atMs, 9, purchase.userId, orderCount++ % 256);
    return { orderId, batch, purchase, failure: null };
  });
  const plan = { terms, orders, releases: [], oneByOne: new Set<string>(), paymentWindowMs: 900_000 };
  expect((await world.orders.write(plan)).outcome).to.equal('written');
}

describe('contract LandedOrders on mysql', () => {
  let world: MysqlWorld;
  let landed: LandedOrders;
  const sales: Sale[] = [];
  before(async () => {
    world = await ownMysqlWorld();
    landed = createLandedOrders(world.pool);
    for (let index = 0; index < 3; index++) {
      sales.push(await world.sales.create(newSale({ stock: 100, limitPerBuyer: 10, opensAtMs: START_MS })));
    }
    const [one, other] = sales as [Sale, Sale];
    for (const ms of WRITTEN_MS) await write(world, one, START_MS + ms);
    await write(world, other, START_MS + 1500);
  });
  after(() => world?.close());
  const idOf = (index: number): string => (sales[index] as Sale).saleId;

  it('counts the orders of each sale in a time range, and omits a sale without orders', async () => {
    const all = sales.map(({ saleId }) => saleId);
    const counted = async (fromMs: number, toMs: number, saleIds = all): Promise<unknown> =>
      Object.fromEntries(await landed.bySale(saleIds, START_MS + fromMs, START_MS + toMs));
    expect(await counted(0, 1000)).to.deep.equal({ [idOf(0)]: 3 });
    expect(await counted(1000, 2000)).to.deep.equal({ [idOf(0)]: 1, [idOf(1)]: 1 });
    expect(await counted(1000, 2000, [idOf(1)])).to.deep.equal({ [idOf(1)]: 1 });
    expect(await counted(3000, 59_000)).to.deep.equal({});
    expect(await counted(0, 60_000, [])).to.deep.equal({});
  });

  it('counts the orders of a sale per second, in order', async () => {
    const { seconds, readToMs } = await landed.bySecond(idOf(0), START_MS, START_MS + 60_000);
    expect([...seconds].map(([atMs, orders]) => [atMs - START_MS, orders])).to.deep.equal([
      [0, 3],
      [1000, 1],
      [2000, 2],
      [59_000, 1],
    ]);
    expect(readToMs).to.equal(START_MS + 60_000);
    const some = await landed.bySecond(idOf(0), START_MS + 1000, START_MS + 2000);
    expect([...some.seconds.values()]).to.deep.equal([1]);
    expect((await landed.bySecond(idOf(2), START_MS, START_MS + 60_000)).seconds.size).to.equal(0);
  });
});

describe('LandedOrders on mysql', () => {
  const world = useWorld(ownMysqlWorld);

  async function soldOut(...ms: readonly number[]): Promise<string> {
    const sale = await world.sales.create(newSale({ stock: 100, limitPerBuyer: 10, opensAtMs: START_MS }));
    for (const one of ms) await write(world, sale, START_MS + one);
    return sale.saleId;
  }

  it('ends at the last complete second if there are more orders than one read returns', async () => {
    const saleId = await soldOut(0, 500, 1000, 1500, 1999, 5000);
    const few = createLandedOrders(world.pool, { ranges: 4, orders: 4 });
    const { seconds, readToMs } = await few.bySecond(saleId, START_MS, START_MS + 60_000);
    expect([...seconds]).to.deep.equal([[START_MS, 2]]);
    expect(readToMs).to.equal(START_MS + 1000);
    const next = await few.bySecond(saleId, readToMs, START_MS + 60_000);
    expect([...next.seconds.values(), next.readToMs]).to.deep.equal([3, START_MS + 5000]);
    const last = await few.bySecond(saleId, next.readToMs, START_MS + 60_000);
    expect([...last.seconds.values(), last.readToMs]).to.deep.equal([1, START_MS + 60_000]);
  });

  it('counts a second up to the maximum of one read, and continues with the next second', async () => {
    const saleId = await soldOut(0, 200, 400, 600, 800, 999, 3000);
    const few = createLandedOrders(world.pool, { ranges: 4, orders: 4 });
    const { seconds, readToMs } = await few.bySecond(saleId, START_MS, START_MS + 60_000);
    expect([...seconds]).to.deep.equal([[START_MS, 4]]);
    expect(readToMs, 'later rows were not read').to.equal(START_MS + 1000);
    const next = await few.bySecond(saleId, readToMs, START_MS + 60_000);
    expect([...next.seconds, next.readToMs]).to.deep.equal([[START_MS + 3000, 1], START_MS + 60_000]);
  });

  /** Returns an archive that may move the sale: all orders have ended, and Redis has forgotten the sale. */
  async function begunArchive(saleId: string): Promise<ReturnType<typeof createOrderArchive>> {
    for (const state of ['warm', 'closed'] as const) await world.sales.move(saleId, state);
    await world.pool.execute("UPDATE orders SET state = 'cancelled' WHERE sale_id = ?", [saleId]);
    await world.retirement.retire({ saleId, epoch: 1 }, 'test');
    await world.retirement.forgotten(saleId);
    const archive = createOrderArchive(world.pool, 0);
    await archive.begin(saleId, 'test');
    return archive;
  }

  it('counts each order once while its sale moves to the archive, even next to an order that stays', async () => {
    const sale = await world.sales.create(newSale({ stock: 100, limitPerBuyer: 10, opensAtMs: START_MS }));
    const { saleId } = sale;
    await write(world, sale, START_MS, 20);
    // Another worker writes in the same millisecond, so two ranges overlap.
    await write(world, sale, START_MS, 10);
    await write(world, sale, START_MS + 2999, 5);
    const landed = createLandedOrders(world.pool);
    const before = await landed.bySecond(saleId, START_MS, START_MS + 60_000);
    expect([...before.seconds.values()]).to.deep.equal([30, 5]);
    const archive = await begunArchive(saleId);
    await world.pool.execute(
      `INSERT INTO refunds (payment_id, order_id, amount_cents, reason, state)
       SELECT 'owed', MIN(id), 100, 'order_cancelled', 'due' FROM orders WHERE sale_id = ?`,
      [saleId],
    );
    let step = await archive.move(saleId, null, 8);
    for (let moves = 1; ; moves++) {
      expect(await landed.bySecond(saleId, START_MS, START_MS + 60_000), `move ${moves}`).to.deep.equal(before);
      if (step.next === null) break;
      step = await archive.move(saleId, step.next, 8);
    }
    expect(await archive.finish(saleId), 'the buyer has not got the money back').to.equal(false);
    const few = createLandedOrders(world.pool, { ranges: 100, orders: 10 });
    const cut = await few.bySecond(saleId, START_MS, START_MS + 60_000);
    expect(cut.readToMs).to.equal(START_MS + 1000);
    const next = await few.bySecond(saleId, cut.readToMs, START_MS + 60_000);
    expect([...next.seconds, next.readToMs]).to.deep.equal([[START_MS + 2000, 5], START_MS + 60_000]);
    expect((await landed.bySecond(saleId, START_MS + 1000, START_MS + 2000)).seconds.size).to.equal(0);
  });
});
