import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { expect } from 'chai';
import { OperationalError } from '../../src/core/errors.js';
import type { Order } from '../../src/core/order.js';
import { createOrderTransitions } from '../../src/mysql/order-transitions.js';
import { openMysqlPool, type MysqlPool, type Transaction } from '../../src/mysql/pool.js';
import type { Clock } from '../../src/core/ports/clock.js';
import type { Log } from '../../src/core/ports/log.js';
import { silentLog } from '../helpers/silent-log.js';
import { until } from '../chaos/harness/wait.js';
import { ownDatabase, type OwnDatabase } from '../helpers/own-database.js';
import { mysqlWorld, systemClock } from './repository-worlds.js';
import { DUE_MS, LATER_MS, ordersIn, paymentOf, type MovesWorld } from './order-transitions-worlds.js';

describe('OrderTransitions on mysql under faults', function () {
  this.timeout(30_000);
  let database: OwnDatabase;
  let world: Awaited<ReturnType<typeof mysqlWorld>>;
  /** How often a move went again; each goes again after a pause. */
  let pauses = 0;
  /** No pause ends before this has come to pass. */
  let letGo: Promise<void> = Promise.resolve();
  const clock: Clock = {
    ...systemClock,
    async sleep(ms) {
      pauses++;
      await Promise.all([systemClock.sleep(ms), letGo]);
    },
  };
  const errors: object[] = [];
  const log: Log = { ...silentLog, error: (what) => void errors.push(what) };
  const moves = () => createOrderTransitions(world.pool, { clock, log });

  before(async () => {
    database = await ownDatabase();
    world = await mysqlWorld(4, database.url); // a lock wait ends after one second
  });
  beforeEach(() => {
    pauses = 0;
  });
  after(async () => {
    await world?.close();
    await database?.drop();
  });

  const orderIn = async (paymentWindowMs = LATER_MS): Promise<Order> => {
    const { orders } = await ordersIn(world as unknown as MovesWorld, ['ann/k*2'], { paymentWindowMs });
    return orders[0] as Order;
  };
  /** Until a move has its order and asks for the sale, which somebody else holds. */
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

  it('lock wait 1205 on the sale: the whole move goes again, nothing of the first try is left [D3]', async () => {
    const order = await orderIn();
    let cancelling: Promise<string> | undefined;
    await world.pool.transaction(async (tx) => {
      await tx.execute('UPDATE sales SET title = ? WHERE id = ?', ['held', order.saleId]);
      cancelling = moves().cancel(order.orderId);
      await until('the move goes again', () => pauses > 0);
    });
    expect(pauses, 'the fault happened').to.equal(1);
    expect(await cancelling).to.equal('cancelled');
    await expectCancelledOnce(order);
  });

  it('a lock that is never let go is a fault of mysql within seconds, and nothing has changed [D3]', async () => {
    const order = await orderIn();
    await world.pool.transaction(async (tx) => {
      await tx.execute('UPDATE sales SET title = ? WHERE id = ?', ['held', order.saleId]);
      const error = await moves()
        .cancel(order.orderId)
        .catch((cause: unknown) => cause);
      expect(error).to.be.instanceOf(OperationalError).and.include({ dependency: 'mysql', retryable: true });
    });
    expect(await world.orders.findOrder(order.orderId)).to.deep.equal(order);
  });

  /** Holds the sale, waits until the move has locked its order and waits too, then asks for that order: a deadlock. */
  async function deadlocked<T>(order: Order, move: () => Promise<T>): Promise<T> {
    let moving: Promise<T> | undefined;
    const holding = world.pool.transaction(async (tx: Transaction) => {
      // The victim is the transaction that has changed less.
      const values = Array.from({ length: 200 }, (_, index) => `('ballast', 'b${index}', '{}')`);
      await tx.execute(`INSERT INTO outbox (kind, \`key\`, payload) VALUES ${values.join()}`);
      await tx.execute('UPDATE sales SET title = ? WHERE id = ?', ['held', order.saleId]);
      moving = move();
      await blocked();
      await tx.query('SELECT id FROM orders WHERE id = ? FOR UPDATE', [order.orderId]);
      await tx.rollback();
    });
    // A sweep that goes again earlier passes over the order, as it should.
    letGo = holding.catch(() => undefined);
    await holding;
    return moving as Promise<T>;
  }

  it('deadlock 1213: a cancel that loses its locks goes again and ends the order once [D3]', async () => {
    const order = await orderIn();
    expect(await deadlocked(order, () => moves().cancel(order.orderId))).to.equal('cancelled');
    expect(pauses, 'the fault happened').to.equal(1);
    await expectCancelledOnce(order);
  });

  it('deadlock 1213: a sweep that loses its locks goes again [D3]', async () => {
    const order = await orderIn(DUE_MS);
    expect(await deadlocked(order, () => moves().expireDue(10))).to.equal(1);
    expect(pauses, 'the fault happened').to.equal(1);
    expect((await world.orders.findOrder(order.orderId))?.state).to.equal('expired');
    expect((await world.sales.find(order.saleId))?.sold).to.equal(0);
  });

  it("C4 a sale that counts too few units keeps its own orders from expiring, reported, and nobody else's", async () => {
    await moves().expireDue(1000);
    const broken = await orderIn(2 * DUE_MS); // the oldest: it is met first
    const orders = [await orderIn(DUE_MS), await orderIn(DUE_MS)];
    await world.pool.execute('UPDATE sales SET sold = 1 WHERE id = ?', [broken.saleId]); // its order has two
    const stateOf = async ({ orderId }: Order) => (await world.orders.findOrder(orderId))?.state;

    expect(await moves().expireDue(1000)).to.equal(2);
    for (const order of orders) expect(await stateOf(order)).to.equal('expired');
    expect(await stateOf(broken)).to.equal('pending_payment');
    expect(errors).to.deep.equal([{ saleId: broken.saleId }]);
    expect((await moves().overdue()).orders).to.equal(1);
    expect(await moves().expire([broken.orderId])).to.equal(0);
    const error = await moves()
      .cancel(broken.orderId)
      .catch((cause: unknown) => cause);
    expect(error).to.be.instanceOf(OperationalError).and.include({ retryable: false });
    expect((await world.sales.find(broken.saleId))?.sold).to.equal(1);

    await world.pool.execute('UPDATE sales SET sold = 2 WHERE id = ?', [broken.saleId]);
    expect(await moves().expireDue(1000)).to.equal(1);
  });

  describe('a lost reply to COMMIT', () => {
    let server: Server;
    let lossy: MysqlPool;
    let dropped = 0;
    before(async () => {
      const target = new URL(database.url);
      server = createServer((near) => {
        const far = connect(Number(target.port), target.hostname);
        near.on('error', () => far.destroy()).on('close', () => far.destroy());
        far.on('error', () => near.destroy()).on('data', (data) => void (dropped === 0 && near.write(data)));
        near.on('data', (data) => {
          if (dropped === 0 && data.toString('latin1').endsWith('COMMIT')) {
            dropped++;
            setTimeout(() => near.destroy(), 300); // time for the server to commit and answer into the void
          }
          far.write(data);
        });
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const url = new URL(database.url);
      url.port = String((server.address() as AddressInfo).port);
      lossy = openMysqlPool({ url: url.href, poolMax: 1, queryTimeoutMs: 4000 });
    });
    after(async () => {
      await lossy.close();
      await new Promise((resolve) => server.close(resolve));
    });

    it('a payment rejects as a fault, and reported again it is the one that was recorded [D4]', async () => {
      const order = await orderIn();
      const payment = paymentOf(order);
      const error = await createOrderTransitions(lossy, { clock, log })
        .pay(order.orderId, payment)
        .catch((cause: unknown) => cause);
      expect(dropped, 'the fault happened').to.equal(1);
      expect(error).to.be.instanceOf(OperationalError).and.include({ retryable: true });
      expect((await world.orders.findOrder(order.orderId))?.state, 'committed all the same').to.equal('paid');
      expect(await moves().pay(order.orderId, payment)).to.equal('paid');
      const rows = await world.pool.query('SELECT payment_id FROM payments WHERE order_id = ?', [order.orderId]);
      expect(rows).to.have.length(1);
    });
  });
});
