import { expect } from 'chai';
import { OperationalError } from '../../src/core/errors.js';
import type { Order } from '../../src/core/order.js';
import { createOrderTransitions } from '../../src/mysql/order-transitions.js';
import { openMysqlPool, type MysqlPool, type Transaction } from '../../src/mysql/pool.js';
import type { Clock } from '../../src/core/ports/clock.js';
import type { Log } from '../../src/core/ports/log.js';
import { silentLog } from '../helpers/silent-log.js';
import { until } from '../chaos/harness/wait.js';
import { openLostCommitProxy, type LostCommitProxy } from './lost-commit-proxy.js';
import { ownMysqlWorld, systemClock } from './repository-worlds.js';
import { DUE_MS, LATER_MS, ordersIn, paymentOf, type MovesWorld } from './order-transitions-worlds.js';

describe('OrderTransitions on mysql with faults', () => {
  let world: Awaited<ReturnType<typeof ownMysqlWorld>>;
  /** Number of retries of a move. A pause precedes each retry. */
  let pauses = 0;
  /** No pause ends before this promise resolves. */
  let lockReleased: Promise<void> = Promise.resolve();
  const clock: Clock = {
    ...systemClock,
    async sleep(ms) {
      pauses++;
      await Promise.all([systemClock.sleep(ms), lockReleased]);
    },
  };
  const errors: object[] = [];
  const log: Log = { ...silentLog, error: (what) => void errors.push(what) };
  const transitions = () => createOrderTransitions(world.pool, { clock, log });

  before(async () => {
    world = await ownMysqlWorld(4); // A lock wait ends after one second.
  });
  beforeEach(() => {
    pauses = 0;
  });
  after(() => world?.close());

  const orderIn = async (paymentWindowMs = LATER_MS): Promise<Order> => {
    const { orders } = await ordersIn(world as unknown as MovesWorld, ['ann/k*2'], { paymentWindowMs });
    return orders[0] as Order;
  };
  /** Waits until a move has locked its order and is waiting for the sale, which the test has locked. */
  const blocked = (): Promise<void> =>
    until('a move waits for the sale', async () => {
      const [row] = await world.pool.query<{ waiting: string }>(
        'SELECT COUNT(*) AS waiting FROM information_schema.processlist' +
          " WHERE db = DATABASE() AND info LIKE 'update `sales` set `sold`%'",
      );
      return Number(row?.waiting) > 0;
    });
  async function expectCancelledOnce({ orderId, saleId }: Order): Promise<void> {
    expect((await world.orders.findOrder(orderId))?.state).to.equal('cancelled');
    expect((await world.sales.find(saleId))?.sold).to.equal(0);
    const rows = await world.pool.query<{ kind: string }>('SELECT kind FROM outbox WHERE `key` = ? ORDER BY kind', [
      orderId,
    ]);
    expect(rows.map(({ kind }) => kind)).to.deep.equal(['orders_moved', 'release']);
  }

  it('retries the whole move after lock wait 1205, and leaves nothing of the first attempt [D3]', async () => {
    const order = await orderIn();
    let cancelling: Promise<string> | undefined;
    await world.pool.transaction(async (tx) => {
      await tx.execute('UPDATE sales SET title = ? WHERE id = ?', ['held', order.saleId]);
      cancelling = transitions().cancel(order.orderId);
      await until('the move is tried again', () => pauses > 0);
    });
    expect(pauses, 'the fault happened').to.equal(1);
    expect(await cancelling).to.equal('cancelled');
    await expectCancelledOnce(order);
  });

  it('reports a fault of mysql within seconds and changes nothing when a lock is never released [D3]', async () => {
    const order = await orderIn();
    await world.pool.transaction(async (tx) => {
      await tx.execute('UPDATE sales SET title = ? WHERE id = ?', ['held', order.saleId]);
      const error = await transitions()
        .cancel(order.orderId)
        .catch((cause: unknown) => cause);
      expect(error).to.be.instanceOf(OperationalError).and.include({ dependency: 'mysql', retryable: true });
    });
    expect(await world.orders.findOrder(order.orderId)).to.deep.equal(order);
  });

  /**
   * Causes a deadlock: locks the sale, waits until the move has locked its order and waits for the sale, and then
   * requests the order.
   */
  async function deadlocked<T>(order: Order, move: () => Promise<T>): Promise<T> {
    let moving: Promise<T> | undefined;
    const holding = world.pool.transaction(async (tx: Transaction) => {
      // MySQL rolls back the smaller transaction.
      const values = Array.from({ length: 200 }, (_, index) => `('ballast', 'b${index}', '{}')`);
      await tx.execute(`INSERT INTO outbox (kind, \`key\`, payload) VALUES ${values.join()}`);
      await tx.execute('UPDATE sales SET title = ? WHERE id = ?', ['held', order.saleId]);
      moving = move();
      await blocked();
      await tx.query('SELECT id FROM orders WHERE id = ? FOR UPDATE', [order.orderId]);
      await tx.rollback();
    });
    // a sweep that retries earlier would skip the locked order
    lockReleased = holding.catch(() => undefined);
    await holding;
    return moving as Promise<T>;
  }

  it('retries a cancel that loses its locks in deadlock 1213, and ends the order once [D3]', async () => {
    const order = await orderIn();
    expect(await deadlocked(order, () => transitions().cancel(order.orderId))).to.equal('cancelled');
    expect(pauses, 'the fault happened').to.equal(1);
    await expectCancelledOnce(order);
  });

  it('retries a sweep that loses its locks in deadlock 1213 [D3]', async () => {
    const order = await orderIn(DUE_MS);
    expect(await deadlocked(order, () => transitions().expireDue(10))).to.equal(1);
    expect(pauses, 'the fault happened').to.equal(1);
    expect((await world.orders.findOrder(order.orderId))?.state).to.equal('expired');
    expect((await world.sales.find(order.saleId))?.sold).to.equal(0);
  });

  it('reports a sale whose `sold` is too low, and expires only orders of other sales [C4]', async () => {
    await transitions().expireDue(1000);
    const broken = await orderIn(2 * DUE_MS); // The sweep meets the oldest order first.
    const orders = [await orderIn(DUE_MS), await orderIn(DUE_MS)];
    await world.pool.execute('UPDATE sales SET sold = 1 WHERE id = ?', [broken.saleId]); // its order has two units
    const stateOf = async ({ orderId }: Order) => (await world.orders.findOrder(orderId))?.state;

    expect(await transitions().expireDue(1000)).to.equal(2);
    for (const order of orders) expect(await stateOf(order)).to.equal('expired');
    expect(await stateOf(broken)).to.equal('pending_payment');
    expect(errors).to.deep.equal([{ saleId: broken.saleId }]);
    expect(await transitions().expire([broken.orderId])).to.equal(0);
    const error = await transitions()
      .cancel(broken.orderId)
      .catch((cause: unknown) => cause);
    expect(error).to.be.instanceOf(OperationalError).and.include({ retryable: false });
    expect((await world.sales.find(broken.saleId))?.sold).to.equal(1);

    await world.pool.execute('UPDATE sales SET sold = 2 WHERE id = ?', [broken.saleId]);
    expect(await transitions().expireDue(1000)).to.equal(1);
  });

  describe('lost reply to COMMIT', () => {
    let proxy: LostCommitProxy;
    let lossy: MysqlPool;
    before(async () => {
      proxy = await openLostCommitProxy(world.url);
      lossy = openMysqlPool({ url: proxy.url, poolMax: 1, queryTimeoutMs: 4000 });
    });
    after(async () => {
      await lossy.close();
      await proxy.close();
    });

    it('fails `pay` with a retryable error, and a second report finds the payment recorded once [D4]', async () => {
      const order = await orderIn();
      const payment = paymentOf(order);
      const error = await createOrderTransitions(lossy, { clock, log })
        .pay(order.orderId, payment)
        .catch((cause: unknown) => cause);
      expect(proxy.lostReplies, 'the fault happened').to.equal(1);
      expect(error).to.be.instanceOf(OperationalError).and.include({ retryable: true });
      await until(
        'committed all the same',
        async () => (await world.orders.findOrder(order.orderId))?.state === 'paid',
      );
      expect(await transitions().pay(order.orderId, payment)).to.equal('paid');
      const rows = await world.pool.query('SELECT payment_id FROM payments WHERE order_id = ?', [order.orderId]);
      expect(rows).to.have.length(1);
    });
  });
});
