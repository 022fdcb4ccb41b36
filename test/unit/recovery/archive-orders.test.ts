import { expect } from 'chai';
import type { Sale } from '../../../src/core/sale.js';
import { archiveOrders } from '../../../src/recovery/archive-orders.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryOrderArchive } from '../../helpers/memory/memory-order-archive.js';
import { MemoryRepositories } from '../../helpers/memory/memory-repositories.js';
import { batchOf, purchaseOf, saleOf } from '../../helpers/sales.js';
import { noRecoveryMetrics } from '../../helpers/no-metrics.js';

const DAY_MS = 86_400_000;

describe('keeper: archive-orders', () => {
  let clock: ManualClock;
  let mysql: MemoryRepositories;
  let archive: MemoryOrderArchive;
  let open: Set<string>;
  let said: string[];
  let backlog: number;
  let moved: number;
  let lastId: number;
  beforeEach(() => {
    clock = new ManualClock();
    mysql = new MemoryRepositories({ clock });
    open = new Set();
    archive = new MemoryOrderArchive(mysql, (orderId) => open.has(orderId));
    said = [];
    [backlog, moved, lastId] = [0, 0, 0];
  });

  const log = {
    debug: () => undefined,
    info: () => undefined,
    warn: (_: object, text: string) => void said.push(text),
    error: (_: object, text: string) => void said.push(text),
  };
  const job = (ordersPerRun = 1000) => {
    const metrics = {
      ...noRecoveryMetrics,
      ordersArchived: (orders: number) => void (moved += orders),
      salesToArchive: (sales: number) => void (backlog = sales),
    };
    return archiveOrders({ archive, log, metrics }, { afterMs: DAY_MS, ordersPerRun });
  };
  /** Creates a retired sale with `orders` paid orders. */
  async function retiredSale(orders: number, agoMs = 2 * DAY_MS): Promise<Sale> {
    const sale = saleOf({ stock: 10_000, state: 'closed', retiredAtMs: clock.nowMs() - agoMs }, clock.nowMs());
    mysql.putSale(sale);
    await mysql.forgotten(sale.saleId);
    for (let nth = 0; nth < orders; nth++) {
      const purchase = purchaseOf(`u${nth}`);
      const orderId = String(++lastId);
      const row = { orderId, batch: batchOf(sale, [purchase]), purchase, failure: null };
      const terms = await mysql.termsOf([sale.saleId]);
      const plan = { terms, orders: [row], releases: [], oneByOne: new Set<string>(), paymentWindowMs: 1000 };
      expect((await mysql.write(plan)).outcome).to.equal('written');
      mysql.putOrder({ ...(await mysql.findOrder(orderId))!, state: 'paid', paidAtMs: clock.nowMs() });
    }
    return sale;
  }

  it('moves only the orders of sales that were retired long ago', async () => {
    const [old, young] = [await retiredSale(3), await retiredSale(2, DAY_MS / 2)];
    await job().runOnce();
    expect([moved, archive.isArchived(old.saleId), archive.isArchived(young.saleId)]).to.deep.equal([3, true, false]);
    expect(backlog).to.equal(0);
  });

  it('moves a limited number of orders per run and continues in the next', async () => {
    const sale = await retiredSale(7);
    const archiving = job(3);
    for (const expected of [3, 6, 7]) {
      await archiving.runOnce();
      expect(moved).to.equal(expected);
    }
    expect(archive.isArchived(sale.saleId)).to.equal(true);
    expect(backlog, 'seen when the sale was begun').to.equal(0);
  });

  it('after a crash, leaves the rest to the next keeper, which counts no order twice', async () => {
    const sale = await retiredSale(5);
    await job(2).runOnce();
    await job().runOnce();
    expect([moved, archive.isArchived(sale.saleId)]).to.deep.equal([5, true]);
  });

  it('keeps an order with unsettled money, retries its sale later and moves the other sales', async () => {
    const [kept, other] = [await retiredSale(3), await retiredSale(2)];
    open.add('2');
    const archiving = job();
    await archiving.runOnce();
    expect([moved, archive.isArchived(kept.saleId), archive.isArchived(other.saleId)]).to.deep.equal([4, false, true]);
    expect(said).to.deep.equal(['orders of a retired sale cannot be archived yet']);
    expect(backlog, 'nothing else is due').to.equal(0);
    open.clear();
    await archiving.runOnce();
    expect(archive.isArchived(kept.saleId), 'not at once').to.equal(false);
    clock.advance(10 * 60_000);
    await archiving.runOnce();
    expect([moved, archive.isArchived(kept.saleId)]).to.deep.equal([5, true]);
  });

  it('repeats a step that fails or loses its reply, and postpones a sale that cannot move, with a log line', async () => {
    const [first, second] = [await retiredSale(2), await retiredSale(2)];
    const archiving = job();
    archive.breakNext('move_reply_lost');
    expect(await archiving.runOnce().catch((error: unknown) => error)).to.be.instanceOf(Error);
    await archiving.runOnce();
    expect(archive.isArchived(second.saleId), 'the other is not held up').to.equal(true);
    clock.advance(10_000);
    archive.breakNext('move_refused');
    await archiving.runOnce().catch(() => undefined);
    expect(said).to.deep.equal(['could not archive the orders of a sale']);
    clock.advance(10 * 60_000);
    await archiving.runOnce();
    expect(archive.isArchived(first.saleId)).to.equal(true);
  });
});
