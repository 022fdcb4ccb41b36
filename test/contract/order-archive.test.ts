import { expect } from 'chai';
import { MIGRATIONS } from '../../src/mysql/migrations.js';
import { createCouponRepository } from '../../src/mysql/coupon-repository.js';
import { ARCHIVED, createOrderArchive } from '../../src/mysql/order-archive.js';
import { createOrderStates } from '../../src/mysql/order-repository.js';
import { createOrderSearch } from '../../src/mysql/order-search.js';
import type { MysqlPool, Transaction } from '../../src/mysql/pool.js';
import { createReconcileRepository } from '../../src/mysql/reconcile-repository.js';
import { createOrderAudit } from '../invariants/order-audit.js';
import { createTraceRepository } from '../../src/operate/trace/trace-repository.js';
import { createOrderIdMinter } from '../../src/orders/order-id-minter.js';
import { recordBatches } from '../../src/orders/record-batches.js';
import { failPurchases } from '../../src/orders/fail-purchases.js';
import type { Batch } from '../../src/core/batch.js';
import type { Order } from '../../src/core/order.js';
import type { OrderFilter } from '../../src/core/ports/order-search.js';
import type { OrderCursor } from '../../src/core/ports/reconcile-repository.js';
import type { Sale } from '../../src/core/sale.js';
import { reacquiringStore } from '../helpers/memory/memory-redis.js';
import { batchOf, purchasesOf } from '../helpers/sales.js';
import { silentLog } from '../helpers/silent-log.js';
import { mysqlMoves, ordersIn, paymentOf, type MysqlMoves, type OrdersParts } from './order-transitions-worlds.js';
import { useWorld } from './on-each-world.js';

const OPTIONS = { paymentWindowMs: 900_000 };

describe('contract: OrderArchive on MySQL', () => {
  const world = useWorld(mysqlMoves);
  /** A retired sale, in which the first order is paid and all others are cancelled, except `unpaid`. */
  async function retiredSale(texts: readonly string[], parts: OrdersParts & { readonly unpaid?: number } = {}) {
    const { sale, orders } = await ordersIn(world, texts, parts);
    const ended = orders.length - (parts.unpaid ?? 0);
    for (const [index, order] of orders.slice(0, ended).entries()) {
      if (index === 0)
        await world.transitions.pay(order.orderId, paymentOf(order, { paymentId: `pay-${order.orderId}` }));
      else await world.transitions.cancel(order.orderId);
    }
    await world.sales.move(sale.saleId, 'warm');
    await world.sales.move(sale.saleId, 'closed');
    const retired = await world.retirement.retire(sale, 'keeper');
    expect(retired).to.equal(true);
    const now = await Promise.all(orders.map(({ orderId }) => world.orders.findOrder(orderId)));
    return { sale, orders: now as Order[] };
  }
  async function archive({ saleId }: Pick<Sale, 'saleId'>, max = 2): Promise<{ moved: number; kept: number }> {
    await world.archive.begin(saleId, 'keeper');
    const total = { moved: 0, kept: 0 };
    let from: OrderCursor | null = null;
    do {
      const { moved, kept, next }: Awaited<ReturnType<typeof world.archive.move>> = await world.archive.move(
        saleId,
        from,
        max,
      );
      total.moved += moved;
      total.kept += kept;
      from = next;
    } while (from !== null);
    return total;
  }
  const archivedSale = async (texts: readonly string[], parts: OrdersParts = {}) => {
    const made = await retiredSale(texts, parts);
    await world.retirement.forgotten(made.sale.saleId);
    expect(await archive(made.sale)).to.deep.equal({ moved: texts.length, kept: 0 });
    expect(await world.archive.finish(made.sale.saleId)).to.equal(true);
    return made;
  };
  async function found(filter: OrderFilter, max: number): Promise<Order[]> {
    const all: Order[] = [];
    let after: string | null = null;
    do {
      const page: Awaited<ReturnType<typeof world.search.page>> = await world.search.page(filter, after, max);
      all.push(...(page?.orders ?? []));
      after = page?.next ?? null;
    } while (after !== null);
    return all;
  }
  const ids = (orders: readonly Order[]): string[] => orders.map(({ orderId }) => orderId);
  const byId = (a: Order, b: Order): number => (BigInt(a.orderId) < BigInt(b.orderId) ? -1 : 1);

  it('due: returns sales that were retired long enough ago and forgotten by Redis, until they are archived', async () => {
    const { sale } = await retiredSale(['ann', 'bob']);
    const isDue = async (afterMs = 0): Promise<boolean> =>
      (await world.archive.due(afterMs, 1000)).includes(sale.saleId);
    expect(await isDue(), 'Redis has it').to.equal(false);
    await world.archive.begin(sale.saleId, 'keeper');
    expect((await world.sales.find(sale.saleId))?.epoch, 'not begun').to.equal(1);
    await world.retirement.forgotten(sale.saleId);
    expect(await isDue(60_000)).to.equal(false);
    expect(await isDue()).to.equal(true);
    expect(await world.archive.finish(sale.saleId), 'not begun').to.equal(false);

    await world.archive.begin(sale.saleId, 'keeper');
    expect((await world.archive.move(sale.saleId, null, 1)).next).not.to.equal(null);
    const { sale: other } = await retiredSale(['cid']);
    await world.retirement.forgotten(other.saleId);
    const firstDue = async (): Promise<string | undefined> =>
      (await world.archive.due(0, 1000)).find((id) => [sale.saleId, other.saleId].includes(id));
    expect(await firstDue(), 'one whose move has begun comes first').to.equal(sale.saleId);
    await world.archive.later(sale.saleId, 60_000);
    expect(await isDue(), 'it keeps an order').to.equal(false);
    expect(await firstDue(), 'the others have their turn').to.equal(other.saleId);
    await world.archive.later(sale.saleId, 0);
    expect(await isDue()).to.equal(true);
    expect(await world.archive.finish(sale.saleId), 'an order is left').to.equal(false);
    expect(await archive(sale)).to.deep.equal({ moved: 1, kept: 0 });
    expect(await archive(sale), 'again').to.deep.equal({ moved: 0, kept: 0 });
    expect((await world.sales.find(sale.saleId))?.epoch, 'risen once').to.equal(2);
    expect(await world.archive.finish(sale.saleId)).to.equal(true);
    expect(await isDue()).to.equal(false);
    expect(
      (await world.auditOf(`sale:${sale.saleId}`)).filter(({ action }) => action === 'sale.archived'),
    ).to.have.length(1);
  });

  it('finds an archived order as before: by id, purchase, buyer, sale and time', async () => {
    const texts = ['ann/k1', 'bob/k1', 'ann/k2', 'cid/k1', 'ann/k3'];
    const live = await ordersIn(world, ['ann/k9', 'bob/k9']);
    const { sale, orders } = await archivedSale(texts);
    for (const order of orders) expect(await world.orders.findOrder(order.orderId)).to.deep.equal(order);
    expect(await world.orders.findOrder('1')).to.equal(null);
    const { saleId } = sale;
    const byPurchase = await world.orders.findByPurchases(saleId, purchasesOf('ann/k2', 'cid/k1', 'ann/none'));
    expect(ids(byPurchase)).to.have.members([orders[2]?.orderId, orders[3]?.orderId]);
    expect(ids(await world.orders.findByPurchases(saleId, purchasesOf('bob/k1')))).to.deep.equal([orders[1]?.orderId]);

    for (const max of [1, 2, 3, 100]) {
      expect(await found({ saleId }, max), `pages of ${max}`).to.deep.equal([...orders].sort(byId));
      expect(await found({ saleId, state: 'paid' }, max)).to.deep.equal([orders[0]]);
      const ann = ids(await found({ userId: 'ann' }, max));
      const mine = ids([orders[4]!, orders[2]!, orders[0]!, live.orders[0]!].sort((a, b) => byId(b, a)));
      expect(
        ann.filter((id) => mine.includes(id)),
        'both tables, newest first',
      ).to.deep.equal(mine);
      const all = await found({ fromMs: 0 }, max);
      expect(ids(all), 'each once').to.deep.equal([...new Set(ids(all))]);
      expect(all, 'in the order of time').to.deep.equal([...all].sort(byId));
      expect(ids(all)).to.include.members(ids([...orders, ...live.orders]));
    }
  });

  it('repeats the payment of an archived order, records a refund for other money and refuses to cancel', async () => {
    const { orders } = await archivedSale(['ann', 'bob']);
    const [paid, cancelled] = orders as [Order, Order];
    const told = paymentOf(paid, { paymentId: `pay-${paid.orderId}` });
    expect(await world.transitions.pay(paid.orderId, told)).to.equal('paid');
    expect(await world.transitions.pay(paid.orderId, { ...told, amountCents: 1 })).to.equal('payment_conflict');
    const late = paymentOf(cancelled);
    expect(await world.transitions.pay(cancelled.orderId, late)).to.equal('refund_due');
    expect(await world.transitions.pay(cancelled.orderId, late)).to.equal('refund_due');
    expect(await world.refunds.refundsOf(cancelled.orderId)).to.have.length(1);
    expect(await world.transitions.pay(paid.orderId, paymentOf(paid)), 'twice').to.equal('refund_due');
    expect(await world.transitions.cancel(paid.orderId)).to.equal('wrong_state');
    expect(await world.transitions.cancel(cancelled.orderId)).to.equal('cancelled');
    expect(await world.transitions.expire(ids(orders))).to.equal(0);

    const { orders: others } = await ordersIn(world, ['cid']);
    const stolen = paymentOf(others[0]!, { paymentId: told.paymentId });
    expect(await world.transitions.pay(others[0]?.orderId ?? '', stolen), 'the id of an archived payment').to.equal(
      'payment_conflict',
    );
    expect((await world.orders.findOrder(others[0]?.orderId ?? ''))?.state).to.equal('pending_payment');
  });

  it('does not move an order that is unpaid or has unsettled money until it is settled', async () => {
    const { sale, orders } = await retiredSale(['ann', 'bob', 'cid', 'dan', 'eve'], { unpaid: 1 });
    const [, charged, owed, , unpaid] = orders as [Order, Order, Order, Order, Order];
    await world.retirement.forgotten(sale.saleId);
    await world.leaveOpenAttempt(charged.orderId, 'k');
    const refund = paymentOf(owed);
    expect(await world.transitions.pay(owed.orderId, refund)).to.equal('refund_due');
    for (const max of [1, 2, 100]) {
      const { kept } = await archive(sale, max);
      expect(kept, `steps of ${max}`).to.equal(3);
      expect(await world.archive.finish(sale.saleId)).to.equal(false);
    }
    expect(ids(await found({ saleId: sale.saleId }, 2)), 'across both').to.deep.equal(ids([...orders].sort(byId)));

    await world.attempts.close({ orderId: charged.orderId, key: 'k' }, 'not_charged');
    await world.refunds.markRefunded(refund.paymentId);
    await world.transitions.cancel(unpaid.orderId);
    expect(await archive(sale)).to.deep.equal({ moved: 3, kept: 0 });
    expect(await world.archive.finish(sale.saleId)).to.equal(true);
    expect(await world.refunds.refundsOf(owed.orderId), 'a refund stays').to.have.length(1);
  });

  it('creates no order for an old batch of an archived sale [C6]', async () => {
    const { sale, orders } = await archivedSale(['ann', 'bob']);
    const batchId = orders[0]?.batchId ?? '';
    const again: Batch = batchOf(sale, purchasesOf('ann', 'bob'), batchId);
    const minter = createOrderIdMinter(
      { slots: world.slots, clock: world.clock, log: silentLog },
      { owner: 'archive', leaseMs: 60_000 },
    );
    await minter.renew();
    const ports = { repository: world.orders, minter, clock: world.clock, store: reacquiringStore };

    expect(await recordBatches([again], ports, OPTIONS)).to.deep.equal([
      {
        outcome: 'already_recorded',
        orders: [{ userId: 'ann', requestId: 'k1', orderId: orders[0]?.orderId, state: 'paid' }],
      },
    ]);
    expect(await failPurchases(again, 'discarded', ports)).to.include({ failed: 0, kept: 2 });
    const more = batchOf(sale, purchasesOf('ann', 'zoe'));
    const [late] = await recordBatches([more], ports, OPTIONS);
    expect(late?.outcome, 'nothing is sold any more').to.equal('refused');
    const [zoe] = await world.orders.findByPurchases(sale.saleId, purchasesOf('zoe'));
    expect([zoe?.state, zoe?.reason]).to.deep.equal(['failed', 'units_lost']);
    expect(ids(await found({ saleId: sale.saleId }, 1))).to.have.members([...ids(orders), zoe?.orderId]);
    expect(await world.sales.find(sale.saleId)).to.include({ sold: 1 });
  });

  it('writes nothing when a writer read the sale before its move began', async () => {
    const { sale, orders } = await retiredSale(['ann', 'bob']);
    await world.retirement.forgotten(sale.saleId);
    const terms = await world.orders.termsOf([sale.saleId]);
    await archive(sale);
    const batch = batchOf(sale, purchasesOf('ann', 'bob'));
    const orderIds = orders.map(({ orderId }) => String(BigInt(orderId) + (1n << 40n)));
    const rows = batch.purchases.map((purchase, index) => {
      return { orderId: orderIds[index] as string, batch, purchase, failure: null };
    });
    const plan = { terms, orders: rows, releases: [], oneByOne: new Set<string>(), ...OPTIONS };
    expect(await world.orders.write(plan)).to.deep.equal({ outcome: 'epoch_changed' });
    expect(ids(await found({ saleId: sale.saleId }, 10))).to.have.members(ids(orders));
  });
});

describe('order archive in MySQL', () => {
  let world: MysqlMoves;
  let pool: MysqlPool;
  before(async () => {
    world = await mysqlMoves();
    ({ pool } = world);
  });
  after(() => world?.close());

  const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
  const TEXTS = Array.from({ length: 12 }, (_, index) => `u${index % 4}/k${index}`);
  /** A sale that may be moved. Its even orders are paid and have coupons, and its odd orders are cancelled. */
  async function begunSale(texts: readonly string[] = TEXTS) {
    const made = await ordersIn(world, texts, { metadata: { cart: '42' }, traceId: TRACE_ID });
    const { saleId } = made.sale;
    for (const [index, order] of made.orders.entries()) {
      if (index % 2 === 1) await world.transitions.cancel(order.orderId);
      else await world.transitions.pay(order.orderId, paymentOf(order));
    }
    await createCouponRepository(pool).issue(made.orders.map(({ orderId }) => orderId));
    await pool.execute(
      "UPDATE sales SET state = 'closed', retirement = 'done', retired_at = UTC_TIMESTAMP(3) WHERE id = ?",
      [saleId],
    );
    await world.archive.begin(saleId, 'keeper');
    return made;
  }
  const count = async (sql: string, orderIds: readonly string[]): Promise<number> =>
    Number((await pool.query<{ n: string }>(sql, [orderIds]))[0]?.n);
  /** Returns the number of rows of these orders in both tables, and the number in the archive. */
  async function rowsOf(table: (typeof ARCHIVED)[number]['table'], orderIds: readonly string[]) {
    const column = table === 'orders' ? 'id' : 'order_id';
    const live = await count(`SELECT COUNT(*) AS n FROM ${table} WHERE ${column} IN (?)`, orderIds);
    const archived = await count(`SELECT COUNT(*) AS n FROM ${table}_archive WHERE ${column} IN (?)`, orderIds);
    return { all: live + archived, archived };
  }

  it('copies every column except derived columns', async () => {
    for (const { table, columns } of ARCHIVED) {
      const sql =
        'SELECT column_name AS name FROM information_schema.columns WHERE table_schema = DATABASE()' +
        " AND table_name = ? AND COALESCE(generation_expression, '') = ''";
      for (const place of [table, `${table}_archive`]) {
        const rows = await pool.query<{ name: string }>(sql, [place]);
        expect([...columns], place).to.have.members(rows.map((row) => row.name));
      }
    }
    expect(MIGRATIONS.map(({ name }) => name)).to.include('0017-order-archive');
  });

  it('keeps each order, payment and coupon in one place after a crash at any statement [C3]', async () => {
    const { sale, orders } = await begunSale();
    const orderIds = orders.map(({ orderId }) => orderId);
    await world.leaveOpenAttempt(orderIds[1] ?? '', 'k');
    await world.attempts.close({ orderId: orderIds[1] ?? '', key: 'k' }, 'declined');
    let left = 0;
    const dying: MysqlPool = {
      ...pool,
      query: (...args) => pool.query(...args),
      execute: (...args) => pool.execute(...args),
      transaction: (work) =>
        pool.transaction((tx) => {
          const step = <T>(run: () => Promise<T>): Promise<T> => {
            if (left-- <= 0) throw new Error('killed by the test');
            return run();
          };
          const mortal: Transaction = {
            query: (...args) => step(() => tx.query(...args)),
            execute: (...args) => step(() => tx.execute(...args)),
            rollback: () => tx.rollback(),
          };
          return work(mortal);
        }),
    };
    const mover = createOrderArchive(dying, 0);
    let died = 0;
    let from: OrderCursor | null = null;
    for (let statements = 0; ; statements++) {
      left = statements;
      try {
        ({ next: from } = await mover.move(sale.saleId, from, 5));
        if (from === null) break;
      } catch (error) {
        expect((error as Error).message).to.equal('killed by the test');
        died++;
      }
      expect((await rowsOf('orders', orderIds)).all).to.equal(12);
      expect((await rowsOf('payments', orderIds)).all).to.equal(6);
      expect((await rowsOf('coupons', orderIds)).all).to.equal(6);
    }
    expect(died).to.be.at.least(12);
    expect(await rowsOf('orders', orderIds)).to.deep.equal({ all: 12, archived: 12 });
    expect(await rowsOf('payments', orderIds)).to.deep.equal({ all: 6, archived: 6 });
    expect(await rowsOf('coupons', orderIds)).to.deep.equal({ all: 6, archived: 6 });
    expect(await rowsOf('order_metadata', orderIds)).to.deep.equal({ all: 1, archived: 1 });
    expect(await rowsOf('order_traces', orderIds)).to.deep.equal({ all: 1, archived: 1 });
    const byTrace = await createTraceRepository(pool).findByTrace(TRACE_ID, { saleId: sale.saleId }, 10);
    expect(byTrace).to.deep.equal([{ userId: 'u0', saleId: sale.saleId, requestId: 'k0' }]);
    expect((await world.search.page({ saleId: sale.saleId }, null, 1))?.orders[0]?.metadata).to.deep.equal({
      cart: '42',
    });
    expect(await count('SELECT COUNT(*) AS n FROM payment_attempts WHERE order_id IN (?)', orderIds)).to.equal(0);
    expect(await count('SELECT COUNT(*) AS n FROM order_ranges WHERE sale_id IN (?)', [sale.saleId])).to.equal(0);
    expect(await world.archive.finish(sale.saleId)).to.equal(true);
  });

  it('keeps a range of orders that a worker commits during the move', async () => {
    const { sale, orders } = await begunSale(['ann', 'bob']);
    const first = orders.map(({ orderId }) => BigInt(orderId)).reduce((a, b) => (a < b ? a : b));
    const between = String(first - 1n); // Another worker made the range a moment before, and commits now.
    let committed = 0;
    const raced: MysqlPool = {
      ...pool,
      query: (...args) => pool.query(...args),
      execute: (...args) => pool.execute(...args),
      transaction: (work) =>
        pool.transaction((tx) =>
          work({
            query: (...args) => tx.query(...args),
            rollback: () => tx.rollback(),
            async execute(sql, ...args) {
              if (/delete from .?order_ranges/i.test(sql)) {
                committed++;
                await pool.execute('INSERT INTO order_ranges VALUES (?, ?, ?, 1)', [sale.saleId, between, between]);
              }
              return tx.execute(sql, ...args);
            },
          }),
        ),
    };
    expect(await createOrderArchive(raced, 0).move(sale.saleId, null, 10)).to.include({ moved: 2, kept: 0 });
    expect(committed).to.equal(1);
    const ranges = await pool.query('SELECT first_id FROM order_ranges WHERE sale_id = ?', [sale.saleId]);
    expect(ranges).to.deep.equal([{ first_id: between }]);
    expect(await world.archive.finish(sale.saleId), 'it is looked at again').to.equal(false);
  });

  it('shows every reader each order once, even while two movers run', async () => {
    const texts = Array.from({ length: 60 }, (_, index) => `r${index % 7}/k${index}`);
    const { sale, orders } = await begunSale(texts);
    const { saleId } = sale;
    const all = orders.map(({ orderId }) => orderId).sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1));
    let moving = 2;
    const mover = async (): Promise<void> => {
      for (let from: OrderCursor | null = null; ;) {
        const { next }: Awaited<ReturnType<typeof world.archive.move>> = await world.archive.move(saleId, from, 3);
        if (next === null) break;
        from = next;
      }
      moving--;
    };
    const reads = {
      async 'of the sale, by pages'() {
        const found: string[] = [];
        const search = createOrderSearch(pool, 7);
        for (let after: string | null = null; ;) {
          const page: Awaited<ReturnType<typeof search.page>> = await search.page({ saleId }, after, 5);
          found.push(...(page?.orders ?? []).map(({ orderId }) => orderId));
          if ((after = page?.next ?? null) === null) return found;
        }
      },
      async 'for a comparison'() {
        const found: string[] = [];
        const reconcile = createReconcileRepository(pool, 7);
        for (let from: OrderCursor | null = null; ;) {
          const page: Awaited<ReturnType<typeof reconcile.orderPage>> = await reconcile.orderPage(saleId, from);
          found.push(...page.rows.map(({ orderId }) => orderId));
          if ((from = page.next) === null) return found;
        }
      },
      async 'for an audit'() {
        const found: string[] = [];
        for await (const rows of createOrderAudit(pool, { windowRows: 7 }).orders(saleId)) {
          found.push(...rows.map(({ orderId }) => orderId));
        }
        return found;
      },
      async 'by purchase'() {
        return (await world.orders.findByPurchases(saleId, purchasesOf(...texts))).map(({ orderId }) => orderId);
      },
      async 'by id'() {
        return [...(await createOrderStates(pool).statesOf(all)).keys()];
      },
    };
    const reader = async (name: string, read: () => Promise<string[]>): Promise<number> => {
      let rounds = 0;
      do {
        const found = await read();
        expect(
          found.sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1)),
          name,
        ).to.deep.equal(all);
        rounds++;
      } while (moving > 0);
      return rounds;
    };
    await Promise.all([mover(), mover(), ...Object.entries(reads).map(([name, read]) => reader(name, read))]);
    expect(await rowsOf('orders', all)).to.deep.equal({ all: 60, archived: 60 });
  });

  it('stops the move if an order already exists in the archive, and loses nothing', async () => {
    const { sale, orders } = await begunSale(['ann', 'bob']);
    const [id] = orders.map(({ orderId }) => orderId);
    const columns = ARCHIVED[0].columns.map((column) => `\`${column}\``).join();
    await pool.execute(`INSERT INTO orders_archive (${columns}) SELECT ${columns} FROM orders WHERE id = ?`, [
      id ?? '',
    ]);
    const error = await world.archive.move(sale.saleId, null, 10).catch((cause: unknown) => cause);
    expect(error).to.include({ kind: 'duplicate', retryable: false });
    expect(await count('SELECT COUNT(*) AS n FROM orders WHERE id IN (?)', [id ?? ''])).to.equal(1);
    await pool.execute('DELETE FROM orders_archive WHERE id = ?', [id ?? '']);
    expect(await world.archive.move(sale.saleId, null, 10)).to.include({ moved: 2, next: null });
  });

  it('does not move an order that was written a moment ago', async () => {
    const { sale } = await begunSale(['ann', 'bob']);
    const archive = createOrderArchive(pool, 3_600_000);
    expect(await archive.move(sale.saleId, null, 10)).to.deep.equal({ moved: 0, kept: 2, next: null });
    expect(await world.archive.finish(sale.saleId)).to.equal(false);
    await pool.execute('UPDATE orders SET created_at = created_at - INTERVAL 2 HOUR WHERE sale_id = ?', [sale.saleId]);
    expect(await archive.move(sale.saleId, null, 10)).to.include({ moved: 2, kept: 0 });
  });

  it('includes archived orders in states, notifications, coupons and traces', async () => {
    const { sale, orders } = await begunSale(['ann', 'bob', 'cid']);
    const [paid, cancelled, bare] = orders.map(({ orderId }) => orderId) as [string, string, string];
    await pool.execute('DELETE FROM coupons WHERE order_id = ?', [bare]); // The event of the order has not arrived yet.
    await world.archive.move(sale.saleId, null, 10);
    const { orders: live } = await ordersIn(world, ['dan']);
    const asked = [live[0]?.orderId ?? '', paid, cancelled, bare, '1'];

    const states = createOrderStates(pool);
    expect(Object.fromEntries(await states.statesOf(asked))).to.deep.equal({
      [asked[0] as string]: 'pending_payment',
      [paid]: 'paid',
      [cancelled]: 'cancelled',
      [bare]: 'paid',
    });
    expect((await states.notificationsOf(asked)).map(({ userId }) => userId)).to.have.members([
      'dan',
      'ann',
      'bob',
      'cid',
    ]);
    expect(await states.dueOf(asked)).to.deep.equal([]);

    const coupons = createCouponRepository(pool);
    expect(await coupons.withoutCoupon([paid, cancelled, bare])).to.deep.equal([cancelled, bare]);
    expect(await coupons.issue([paid, cancelled, bare])).to.deep.equal({ issued: 1, unpaid: [cancelled] });
    expect(await coupons.issue([paid, bare])).to.deep.equal({ issued: 0, unpaid: [] });

    const trace = createTraceRepository(pool, 1);
    const ann = { userId: 'ann', saleId: sale.saleId, requestId: 'k1' };
    expect(await trace.findRequests(paid, {}, 5)).to.deep.equal([ann]);
    expect(await trace.findRequests(orders[0]?.batchId ?? '', {}, 5)).to.have.length(3);
    expect(await trace.findRequests('k1', { userId: 'ann', saleId: sale.saleId }, 5)).to.deep.equal([ann]);
    expect(await trace.walkForRequest('k1', { saleId: sale.saleId }, 5)).to.have.length(3);
    const walked = await createTraceRepository(pool).walkForRequest('k1', {}, 100);
    expect(walked).to.deep.include(ann);
    const read = await trace.read(ann);
    expect(read.order).to.include({ orderId: paid, state: 'paid' });
    expect([read.payments.length, read.coupon === null]).to.deep.equal([1, false]);
  });
});
