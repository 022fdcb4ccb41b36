import { expect } from 'chai';
import { Registry } from 'prom-client';
import { keepRunning, type Job } from '../../src/core/job.js';
import { loadConfig } from '../../src/core/config/load.js';
import type { Order } from '../../src/core/order.js';
import type { WitnessKind } from '../../src/core/ports/witness.js';
import { followBinlog } from '../../src/mysql/follow-binlog.js';
import { createJobLeases } from '../../src/mysql/job-leases.js';
import { createOrderRefunds } from '../../src/mysql/order-refunds.js';
import { createOutbox } from '../../src/mysql/outbox.js';
import type { MysqlPool, Transaction } from '../../src/mysql/pool.js';
import { eraseBuyer } from '../../src/operate/purge/erase-buyer.js';
import { purge } from '../../src/operate/purge/purge.js';
import { createWitnessStore, type WitnessFinding, type WitnessStore } from '../../src/mysql/witness-store.js';
import { openResolveJob } from '../../src/operate/findings/jobs.js';
import { resolveFinding } from '../../src/operate/findings/resolve.js';
import { Witness, WITNESS_EVERY_MS } from '../../src/operate/witness/jobs.js';
import { systemClock } from '../../src/process/system-clock.js';
import { found, until } from '../chaos/harness/wait.js';
import { RunningCommand, runCommand } from '../helpers/command.js';
import { mysqlIn } from '../helpers/servers.js';
import { startPrivateMariadb, type PrivateMariadb } from '../helpers/private-mariadb.js';
import { replacing } from '../helpers/replacing.js';
import { silentLog } from '../helpers/silent-log.js';
import { stackEnv } from '../helpers/stack-env.js';
import { DUE_MS, mysqlMoves, ordersIn, paymentOf, type MysqlMoves } from './order-transitions-worlds.js';
import { mysqlWorld } from './repository-worlds.js';

const VERSION = (process.env.SECKILL_MYSQL ?? 'mariadb-11.4') as Parameters<typeof startPrivateMariadb>[1];
const WISH = { restock: false, reason: 'broken' };
const PARTS = { clock: systemClock, log: silentLog };

describe('contract witness on a MySQL with a binary log', () => {
  let server: PrivateMariadb;
  let world: MysqlMoves;
  let store: WitnessStore;
  before(async () => {
    server = await startPrivateMariadb(4711, VERSION);
    world = await mysqlMoves(await mysqlWorld(8, server.url));
    store = createWitnessStore(world.pool);
  });
  after(async () => {
    await world?.close();
    await server?.stop();
  });

  const witnessOn = (mysql: MysqlPool, registry = new Registry()): Witness => {
    const config = { ...mysqlIn(stackEnv()), url: server.url };
    return new Witness(config, { mysql, registry, ...PARTS });
  };
  /** Ends the lease of a witness that was killed. */
  const freeLease = (): Promise<unknown> => world.pool.execute('DELETE FROM job_leases');
  /** Runs a witness while `work` runs, as a keeper does. It has read the present end of the log before. */
  async function watched<T>(work: () => Promise<T>): Promise<T> {
    await freeLease();
    const witness = witnessOn(world.pool);
    const stop = new AbortController();
    const metrics = { jobBegan: () => () => undefined, jobRan: () => undefined };
    const running = keepRunning(witness, WITNESS_EVERY_MS, stop.signal, { ...PARTS, metrics });
    try {
      const before = await store.position();
      await until('the witness reads', async () => {
        return ((await store.position())?.version ?? '0') !== (before?.version ?? '0');
      });
      return await work();
    } finally {
      stop.abort();
      await running;
      witness.close();
    }
  }

  const all = async (): Promise<WitnessFinding[]> => store.list({}, { max: 1000 });
  const findings = async (order: Order): Promise<string[]> =>
    (await all()).filter(({ saleId }) => saleId === order.saleId).map(({ kind, subject }) => `${kind} ${subject}`);
  const one = async (text = 'ann/k'): Promise<Order> => {
    const [order] = (await ordersIn(world, [text])).orders;
    if (order === undefined) throw new Error('an order was written');
    return order;
  };
  const paid = async (text?: string): Promise<Order> => {
    const order = await one(text);
    await world.transitions.pay(order.orderId, paymentOf(order));
    return order;
  };
  const sql = (text: string): Promise<unknown> => world.pool.execute(text);
  const ofDatabase = (table: string): string => `${new URL(server.url).pathname.slice(1)}.${table}`;
  /** Stores a finding as the witness does when somebody changed `sold`. */
  const noteSold = ({ saleId }: Order, at = 'UTC_TIMESTAMP(3)'): Promise<unknown> =>
    sql(`INSERT INTO witness_findings (place, kind, subject, sale_id, detail, committed_at)
      VALUES ('p', 'sold_differs', 'sales:${saleId}', ${saleId}, 'sales:${saleId}: x', ${at})`);
  const resolving = (word: 'off' | 'watch' | 'act', waitMs = 0, registry = new Registry()): Job | null => {
    const { keeper } = loadConfig(['keeper'], { WITNESS: word });
    return openResolveJob({ keeper }, { mysql: world.pool, registry, ...PARTS }, waitMs);
  };

  /** Changes by hand: what was done to an order, and what is found. */
  const BY_HAND: readonly (readonly [title: string, sql: (order: Order) => string, kinds: readonly WitnessKind[]])[] = [
    ['an amount changed', ({ orderId }) => `UPDATE orders SET amount_cents = 1 WHERE id = ${orderId}`, ['row_changed']],
    [
      'an order paid without money',
      ({ orderId }) => `UPDATE orders SET state = 'paid' WHERE id = ${orderId}`,
      ['paid_without_payment', 'order_without_outbox'],
    ],
    [
      'a move that no order makes',
      ({ orderId }) => `UPDATE orders SET state = 'failed' WHERE id = ${orderId}`,
      ['wrong_transition', 'order_without_outbox', 'sold_differs'],
    ],
    ['an order deleted', ({ orderId }) => `DELETE FROM orders WHERE id = ${orderId}`, ['row_deleted', 'sold_differs']],
    ['an outbox row deleted', ({ batchId }) => `DELETE FROM outbox WHERE \`key\` = '${batchId}'`, ['row_deleted']],
    ['sold changed', ({ saleId }) => `UPDATE sales SET sold = sold + 1 WHERE id = ${saleId}`, ['sold_differs']],
    [
      'an order written without its outbox row',
      ({ orderId, saleId }) =>
        `INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer)
         SELECT id + 1, sale_id, user_id, 'other', batch_id, 0, 0, 0 FROM orders WHERE id = ${orderId} AND sale_id = ${saleId}`,
      ['order_without_outbox'],
    ],
  ];

  it('finds each manual change once, with its order and sale', () =>
    watched(async () => {
      for (const [title, change, kinds] of BY_HAND) {
        const order = await one();
        await sql(change(order));
        await until(`${title} is found`, async () => (await findings(order)).length >= kinds.length, { everyMs: 20 });
        const found = (await findings(order)).map((text) => text.split(' ')[0]);
        expect(found, title).to.have.members(kinds);
      }
    }));

  it('finds a table that was emptied without rows in the log', () =>
    watched(async () => {
      await sql('TRUNCATE TABLE order_refunds');
      await sql('TRUNCATE TABLE order_refunds');
      await found('them', async () => (await all()).find(({ detail }) => detail.includes('truncate order_refunds')));
      await sql('TRUNCATE TABLE order_refunds');
      const next = await one('t/2');
      await sql(`UPDATE orders SET batch_id = 'x' WHERE id = ${next.orderId}`);
      await found('the next change', async () => (await findings(next))[0]);
      const same = (await all()).filter(({ detail }) => detail.includes('truncate order_refunds'));
      const kinds = same.map(({ kind }) => kind);
      expect(kinds, 'a reason that repeats').to.deep.equal(['not_readable']);
      await world.pool.execute('UPDATE witness_findings SET state = ?', ['closed']);
    }));

  it('finds nothing while orders are bought, paid, cancelled, expired, refunded, archived, erased and purged', () =>
    watched(async () => {
      await sql('DELETE FROM witness_findings');
      const { orders, sale } = await ordersIn(world, ['ann/a*2', 'bob/b', 'cid/c', 'dan/d'], { metadata: { a: '1' } });
      const [ann, bob, cid, dan] = orders as [Order, Order, Order, Order];
      await world.transitions.pay(ann.orderId, paymentOf(ann));
      await world.transitions.pay(bob.orderId, paymentOf(bob));
      await world.transitions.pay(bob.orderId, paymentOf(bob)); // twice: the second payment is owed back
      await world.transitions.cancel(cid.orderId);
      const late = await ordersIn(world, ['eve/e'], { paymentWindowMs: DUE_MS });
      await world.transitions.expire(late.orders.map(({ orderId }) => orderId));
      const oversold = await ordersIn(world, ['fay/f*2'], { sale: { stock: 2 } });
      expect(oversold.orders[0]?.state).to.equal('pending_payment');

      const refunds = createOrderRefunds(world.pool, { clock: systemClock });
      const due = async ({ orderId }: Order): Promise<string> =>
        (await refunds.refundsOf(orderId)).find(({ state }) => state === 'due')?.refundId ?? '';
      await refunds.order(ann.orderId, { ...WISH, amountCents: 1, key: 'part' }, 'ann');
      await refunds.settle(await due(ann));
      await refunds.order(ann.orderId, { ...WISH, key: 'refused' }, 'ann');
      await refunds.refuse(await due(ann), 'no');
      const back = await paid('gus/g');
      await refunds.order(back.orderId, { ...WISH, restock: true }, 'ann');
      await refunds.settle(await due(back));
      await refunds.cancel(dan.orderId, 'a call', 'ann');
      const { saleId } = await paid('hal/h');
      const wish = { unpaid: true, refundAll: true, dryRun: false, reason: 'a wrong price' };
      await world.sales.move(saleId, 'warm');
      await world.sales.move(saleId, 'closed');
      for (let after: string | null = null; ;) {
        const step = await refunds.voidNext(saleId, after, wish, 'ann');
        if (step.outcome !== 'done' || step.next === null) break;
        after = step.next;
      }

      const outbox = createOutbox(world.pool);
      for (const kind of ['batch_recorded', 'orders_moved', 'release'] as const) {
        const rows = await outbox.lease(kind, 1000, 60_000);
        const numbers = rows.map(({ outboxId }) => outboxId);
        await outbox.postpone(numbers.slice(0, 1), 0);
        await outbox.markDone(numbers);
      }
      await sql('UPDATE outbox SET done_at = UTC_TIMESTAMP(3) - INTERVAL 1 DAY WHERE done_at IS NOT NULL');
      expect(await outbox.removeDone(1000, 1000)).to.be.above(5);

      await world.refunds.takeOn((await world.refunds.list({}, { max: 1 }))[0]?.paymentId ?? '', 'ann');
      await world.sales.move(sale.saleId, 'warm');
      await world.sales.move(sale.saleId, 'closed');
      await sql(`UPDATE sales SET retirement = 'done', retired_at = UTC_TIMESTAMP(3) WHERE id = ${sale.saleId}`);
      await world.archive.begin(sale.saleId, 'keeper');
      expect((await world.archive.move(sale.saleId, null, 100)).moved).to.equal(4);
      await refunds.order(bob.orderId, WISH, 'ann');
      await refunds.settle(await due(bob));
      const parts = { pool: world.pool, clock: systemClock };
      expect((await eraseBuyer({ userId: 'bob', dryRun: false, actor: 'ann' }, parts)).outcome).to.equal('erased');
      const soon = { beforeMs: Date.now() + 86_400_000, kinds: ['archive'] as const, dryRun: false, actor: 'ann' };
      expect(await purge(soon, parts)).to.deep.equal([{ what: 'archive', removed: 4, kept: 0 }]);

      const last = await one('zoe/z');
      await sql(`UPDATE orders SET quantity = 3 WHERE id = ${last.orderId}`);
      await until('the change by hand after all this', async () => (await findings(last)).length === 2);
      expect(await all()).to.have.length(2);
    }));

  it('finds archived orders that were deleted without a purge', () =>
    watched(async () => {
      await sql("DELETE FROM audit_log WHERE action = 'data.purged'");
      const order = await paid('ida/i');
      await sql(`INSERT INTO orders_archive (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents,
        one_per_buyer, created_at) SELECT id, sale_id, user_id, request_id, batch_id, quantity, amount_cents,
        one_per_buyer, created_at FROM orders WHERE id = ${order.orderId}`);
      await sql(`DELETE FROM orders_archive WHERE id = ${order.orderId}`);
      const expected = ['row_added', 'sold_differs', 'row_deleted'];
      await until('all is found', async () => (await findings(order)).length === expected.length);
      expect((await findings(order)).map((text) => text.split(' ')[0])).to.have.members(expected);
    }));

  it('misses and repeats no change when it is killed before it stores its findings', async () => {
    const lost = replacing(world.pool, { transaction: () => Promise.reject(new Error('killed')) });
    await watched(() => Promise.resolve());
    const [before, between, after] = [await one('a/1'), await one('a/2'), await one('a/3')];
    const change = ({ orderId }: Order) => sql(`UPDATE orders SET batch_id = 'x' WHERE id = ${orderId}`);
    await change(before); // while no witness runs
    await freeLease();
    const killed = witnessOn(lost);
    await killed.runOnce();
    await change(between);
    let failed = false;
    await until('it tries to store a finding', async () => {
      await killed.runOnce().catch(() => (failed = true));
      return failed;
    });
    expect(await findings(before), 'nothing was stored').to.deep.equal([]);
    await watched(async () => {
      await change(after);
      await until('the last change is found', async () => (await findings(after)).length > 0);
    });
    for (const order of [before, between, after])
      expect(await findings(order)).to.deep.equal([`row_changed orders:${order.orderId}`]);
  });

  it('lets only one of two keepers store findings', async () => {
    await watched(() => Promise.resolve());
    const [mine, other] = [witnessOn(world.pool), witnessOn(world.pool)];
    await freeLease();
    await mine.runOnce();
    await other.runOnce(); // the lease is taken
    const order = await one('b/1');
    await sql(`UPDATE orders SET batch_id = 'x' WHERE id = ${order.orderId}`);
    await until('both have read it', async () => {
      await createJobLeases(world.pool).hold('witness', 'none', 0);
      for (const each of [mine, other]) {
        await freeLease(); // each believes that it holds the lease
        await each.runOnce();
      }
      return (await findings(order)).length > 0;
    });
    for (const each of [mine, other]) {
      await freeLease();
      await each.runOnce();
      each.close();
    }
    expect(await findings(order)).to.deep.equal([`row_changed orders:${order.orderId}`]);
  });

  it('reports a gap and judges what the log still has when its position is gone', async () => {
    await watched(() => Promise.resolve());
    await one('c/1');
    await server.admin('FLUSH BINARY LOGS');
    const order = await one('c/2');
    await sql(`UPDATE orders SET batch_id = 'x' WHERE id = ${order.orderId}`); // while no witness runs
    const logs = await server.admin('SHOW BINARY LOGS');
    await server.admin(`PURGE BINARY LOGS TO '${String(logs.at(-1)?.Log_name)}'`);
    await watched(async () => {
      await found('the gap', async () => (await all()).find(({ kind }) => kind === 'not_seen'));
      await until('the change in the log is found', async () => (await findings(order)).length > 0);
    });
    expect((await all()).filter(({ kind }) => kind === 'not_seen')).to.have.length(1);
  });

  it('names the gap and reads the whole log when its file and offset are of another server', async () => {
    await watched(() => Promise.resolve());
    const [judged, recent] = [await one('h/1'), await one('h/2')];
    const change = ({ orderId }: Order): string =>
      `UPDATE ${ofDatabase('orders')} SET batch_id = 'x' WHERE id = ${orderId}`;
    await sql(change(judged));
    const half = 'UTC_TIMESTAMP(3) + INTERVAL 30 MINUTE'; // of the hour between the two changes
    await sql(`UPDATE witness_position SET position = 'binlog.000001/4@another', read_to = ${half}`);
    await server.admin(`SET timestamp = ${Math.floor(Date.now() / 1000) + 3600}`);
    await server.admin(change(recent));
    await server.admin('SET timestamp = DEFAULT');
    await watched(() => until('the recent change is found', async () => (await findings(recent)).length > 0));
    expect(await findings(judged)).to.deep.equal([]);
    const gap = (await all()).find(({ detail }) => detail.includes('@another'));
    expect(gap).to.include({ kind: 'not_seen' });
    expect(gap?.detail).to.match(/the position is of server another, and this is server .+: from \d.+ to \d.+/);
  });

  const DROP = 'ALTER TABLE payments DROP COLUMN extra';
  const UNREADABLE = [
    ['whose table has fewer columns now', [DROP], [], 'schema changed'],
    [
      'whose table is gone',
      ['RENAME TABLE payments TO payments_away'],
      ['RENAME TABLE payments_away TO payments', DROP],
      'Insufficient permissions',
    ],
  ] as const;
  for (const [title, before, after, reason] of UNREADABLE) {
    it(`reports a transaction ${title}, and continues after it`, async () => {
      await watched(() => Promise.resolve());
      const [unread, next] = [await paid('i/1'), await one('i/2')];
      await sql('ALTER TABLE payments ADD COLUMN extra INT');
      await server.admin("SET GLOBAL binlog_row_metadata = 'MINIMAL'"); // without the names of the columns
      await sql(`UPDATE payments SET amount_cents = 1 WHERE order_id = ${unread.orderId}`);
      await server.admin("SET GLOBAL binlog_row_metadata = 'FULL'");
      for (const text of before) await sql(text);
      try {
        await sql(`UPDATE orders SET batch_id = 'x' WHERE id = ${next.orderId}`);
        await watched(() => until('the next change is found', async () => (await findings(next)).length > 0));
      } finally {
        for (const text of after) await sql(text);
      }
      const unreadable = (await all()).filter(({ detail }) => detail.includes(reason));
      expect(unreadable.map(({ kind }) => kind)).to.deep.equal(['not_readable']);
    });
  }

  it('continues when the server has closed its idle connection', async () => {
    const connections = async (): Promise<Map<string, unknown>> =>
      new Map((await server.admin('SHOW PROCESSLIST')).map(({ Id, Command }) => [String(Id), Command]));
    const others = await connections();
    let seen = 0;
    const config = { ...mysqlIn(stackEnv()), url: server.url };
    const stream = followBinlog(config, null, () => void seen++);
    try {
      await until('it is connected', async () => stream.position() !== null);
      const idle = [...(await connections())].filter(([id, command]) => command === 'Sleep' && !others.has(id));
      expect(idle).to.have.length(1);
      for (const [id] of idle) await server.admin(`KILL ${id}`);
      await until('it is closed', async () => !(await connections()).has(idle[0]?.[0] ?? ''));
      await one('j/1');
      await until('a change arrives', async () => seen > 0 || stream.failure() !== null);
      expect(stream.failure()).to.equal(null);
    } finally {
      stream.stop();
    }
  });

  describe('resolving', () => {
    const openOf = async ({ saleId }: Order): Promise<WitnessFinding[]> =>
      store.list({ state: 'open', saleId }, { max: 100 });
    const resolve = (findingId: string, dryRun = false, mysql = world.pool, outboxKeepMs = 86_400_000) =>
      resolveFinding(mysql, systemClock, findingId, { actor: 'ann', dryRun, outboxKeepMs });
    /** Outbox rows that name an order, each with its move or the orders of its event. */
    const rowsOf = async ({ orderId }: Order): Promise<string[]> => {
      const text = 'SELECT kind, payload FROM outbox WHERE INSTR(payload, ?) > 0 ORDER BY kind';
      const rows = await world.pool.query<{ kind: string; payload: string }>(text, [`"${orderId}"`]);
      return rows.map(({ kind, payload }) => {
        const { move, orders } = JSON.parse(payload) as { move?: string; orders?: readonly string[] };
        return [kind, move ?? orders?.length].filter((part) => part !== undefined).join(' ');
      });
    };
    const numbersOf = ({ orderId }: Order) =>
      world.pool.query('SELECT id, kind FROM outbox WHERE INSTR(payload, ?) > 0 ORDER BY id', [`"${orderId}"`]);
    /** Runs statements in one transaction, and waits until the witness has found it. */
    const byHand = async (order: Order, count: number, ...statements: readonly string[]): Promise<WitnessFinding[]> => {
      await world.pool.transaction(async (tx) => {
        for (const statement of statements) await tx.execute(statement);
      });
      await until('it is found', async () => (await openOf(order)).length === count, { everyMs: 20 });
      return openOf(order);
    };
    const ended = ({ orderId }: Order, state: string): string =>
      `UPDATE orders SET state = '${state}' WHERE id = ${orderId}`;
    const copied = ({ orderId }: Order, quantity: number, expires: string): string =>
      `INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer, expires_at)
       SELECT id + 1, sale_id, user_id, 'other', batch_id, ${quantity}, 0, 0, ${expires} FROM orders WHERE id = ${orderId}`;
    beforeEach(() => sql('DELETE FROM witness_findings'));

    const moved = ({ orderId, saleId }: Order): string =>
      `INSERT INTO outbox (kind, \`key\`, payload) VALUES ('orders_moved', '${orderId}',
        '{"move":"cancelled","saleId":"${saleId}","orders":["${orderId}"]}')`;
    const deleted = (kind: string, key: string): string =>
      `DELETE FROM outbox WHERE kind = '${kind}' AND \`key\` = '${key}'`;
    const RECORDED = 'batch_recorded 2';
    const ENDED = (move: string): string[] => [RECORDED, `orders_moved ${move}`, 'release'];
    /** What was done to the first of two orders, the number of findings, and the rows of the outbox that it has then. */
    const MENDED: readonly (readonly [string, (order: Order) => readonly string[], number, readonly string[]])[] = [
      ['an order cancelled', (order) => [ended(order, 'cancelled')], 2, ENDED('cancelled')],
      ['an order expired', (order) => [ended(order, 'expired')], 2, ENDED('expired')],
      [
        'an order cancelled, and `sold` lowered',
        (order) => [ended(order, 'cancelled'), `UPDATE sales SET sold = sold - 2 WHERE id = ${order.saleId}`],
        1,
        ENDED('cancelled'),
      ],
      [
        'an order cancelled with its event, but without its release',
        (order) => [ended(order, 'cancelled'), moved(order)],
        2,
        ENDED('cancelled'),
      ],
      ['the event of a batch deleted', ({ batchId }) => [deleted('batch_recorded', batchId)], 1, [RECORDED]],
      ['sold raised', ({ saleId }) => [`UPDATE sales SET sold = sold + 3 WHERE id = ${saleId}`], 1, [RECORDED]],
      ['sold lowered', ({ saleId }) => [`UPDATE sales SET sold = sold - 1 WHERE id = ${saleId}`], 1, [RECORDED]],
    ];

    it('resolves each clear change once, and finds nothing wrong in its own work', () =>
      watched(async () => {
        const job = resolving('act');
        const orders: Order[] = [];
        const check = async (title: string, order: Order, rows: readonly string[]): Promise<void> => {
          const found = await openOf(order);
          await job?.runOnce();
          expect(await openOf(order), title).to.deep.equal([]);
          expect(await rowsOf(order), title).to.deep.equal(rows);
          expect(await world.violations(order.saleId), title).to.deep.equal([]);
          for (const { findingId } of found) {
            expect(await resolve(findingId)).to.include({ outcome: 'closed' });
            const audit = await world.auditOf(`witness_finding:${findingId}`);
            expect(audit.map(({ actor, action }) => `${actor} ${action}`)).to.deep.equal([
              'witness witness_finding.resolved',
            ]);
          }
          expect(await rowsOf(order), `${title}, twice`).to.deep.equal(rows);
          orders.push(order);
        };
        for (const [title, statements, count, rows] of MENDED) {
          const [order] = (await ordersIn(world, ['ann/a*2', 'bob/b'], { metadata: { a: '1' } })).orders as [Order];
          await byHand(order, count, ...statements(order));
          await check(title, order, rows);
        }
        for (const kind of ['orders_moved', 'release']) {
          const [order] = (await ordersIn(world, ['ann/a*2', 'bob/b'])).orders as [Order];
          await world.transitions.cancel(order.orderId);
          const numbers = await numbersOf(order);
          await byHand(order, 1, deleted(kind, order.orderId));
          await check(`a row of kind ${kind} deleted`, order, ENDED('cancelled'));
          expect(await numbersOf(order), `${kind}: consumers know the event by its number`).to.deep.equal(numbers);
        }
        const first = await one();
        await byHand(first, 2, copied(first, 1, 'expires_at'));
        const added = { ...first, orderId: String(BigInt(first.orderId) + 1n) };
        await check('an order added', added, ['batch_recorded 1']);

        const last = await one();
        await byHand(last, 1, `UPDATE orders SET batch_id = 'x' WHERE id = ${last.orderId}`);
        for (const order of orders) expect(await openOf(order), 'its own changes').to.deep.equal([]);
      }));

    it('writes the deadline and the metadata of an order again', () =>
      watched(async () => {
        const [order] = (await ordersIn(world, ['ann/a', 'bob/b'], { metadata: { a: '1' } })).orders as [Order];
        const [before] = (await world.outboxOf(order.batchId)).recorded;
        const numbers = await numbersOf(order);
        await byHand(order, 1, deleted('batch_recorded', order.batchId));
        await resolving('act')?.runOnce();
        expect(await numbersOf(order)).to.deep.equal(numbers);
        const [after] = (await world.outboxOf(order.batchId)).recorded;
        expect(after).to.deep.equal({ ...before, paymentWindowMs: after?.paymentWindowMs });
        expect(after?.paymentWindowMs).to.be.within(1, before?.paymentWindowMs ?? 0);
      }));

    it('gives units back when another buyer uses the id of the order as a key', () =>
      watched(async () => {
        const order = await one();
        const found = await byHand(order, 2, ended(order, 'cancelled'));
        const other = await one(`eve/${order.orderId}`);
        await world.transitions.cancel(other.orderId); // its release names the key
        for (const { findingId } of found) await resolve(findingId);
        const rows = ['batch_recorded 1', 'orders_moved cancelled', 'release', 'release'];
        expect(await rowsOf(order)).to.deep.equal(rows);
      }));

    it('leaves changes of money and doubtful changes to a person, with the other findings of that sale', () =>
      watched(async () => {
        const job = resolving('act');
        const DOUBTS: readonly (readonly [string, (order: Order) => readonly string[], number, RegExp])[] = [
          ['paid', (order) => [ended(order, 'paid')], 2, /seckill (trace|reconcile)/],
          ['a move that no order makes', (order) => [ended(order, 'failed')], 3, /needs a person first|seckill orders/],
          ['deleted', ({ orderId }) => [`DELETE FROM orders WHERE id = ${orderId}`], 2, /seckill reconcile resolve/],
          ['no deadline', (order) => [copied(order, 0, 'NULL')], 1, /no deadline/],
          ['above the stock', (order) => [copied(order, 1000, 'expires_at')], 2, /1001 units, and the stock is 1000/],
          [
            'paid before it was cancelled',
            (order) => [
              `INSERT INTO payments (payment_id, order_id, amount_cents) VALUES ('p-${order.orderId}', ${order.orderId}, 1)`,
              ended(order, 'cancelled'),
            ],
            2,
            /a payment that is not owed back/,
          ],
        ];
        for (const [title, statements, count, note] of DOUBTS) {
          const order = await one();
          const found = await byHand(order, count, ...statements(order));
          const rows = await rowsOf(order);
          const results = await Promise.all(found.map(({ findingId }) => resolve(findingId, true)));
          expect(results.map((result) => result?.note).join(' '), title).to.match(note);
          if (title !== 'paid before it was cancelled')
            expect(new Set(results.map((result) => result?.outcome)), title).to.deep.equal(new Set(['person']));
          await job?.runOnce();
          expect(await rowsOf(order), title).to.deep.equal(rows);
          expect(await openOf(order), title).not.to.deep.equal([]);
        }
      }));

    it('leaves all sales of a transaction to a person when it has more findings than it names', () =>
      watched(async () => {
        const buyers = Array.from({ length: 20 }, (_, buyer) => `buyer-${buyer}/k`);
        const many = (await ordersIn(world, buyers)).orders;
        const hidden = await one();
        const gone = [...many, hidden].map(({ orderId }) => `DELETE FROM orders WHERE id = ${orderId}`);
        const [found] = await byHand(hidden, 1, ...gone); // only `sold_differs`: its order is counted with the others
        expect(found?.kind).to.equal('sold_differs');
        await resolving('act')?.runOnce();
        expect(await openOf(hidden)).to.deep.equal([found]);
        expect((await resolve(found?.findingId ?? ''))?.note).to.match(/same transaction/);
      }));

    it('does not act on an order that changed again, on a change younger than a minute, or under WITNESS=watch', async () => {
      const order = await one();
      const found = await watched(() => byHand(order, 2, ended(order, 'cancelled')));
      expect(resolving('watch')).to.equal(null);
      expect(resolving('off')).to.equal(null);
      await resolving('act', 60_000)?.runOnce();
      expect(await openOf(order)).to.deep.equal(found);
      await sql(ended(order, 'pending_payment')); // while no witness runs
      const notes = await Promise.all(found.map(({ findingId }) => resolve(findingId)));
      const move = notes.find((result) => result?.action === 'end_order');
      expect(move).to.include({ outcome: 'person' });
      expect(move?.note).to.match(/^The order is pending_payment now\. /);
      expect(await rowsOf(order)).to.deep.equal(['batch_recorded 1']);
    });

    it('leaves an event to a person when its row may have been published and removed since', () =>
      watched(async () => {
        const order = await one();
        const found = await byHand(order, 2, ended(order, 'cancelled'));
        const { findingId = '' } = found.find(({ kind }) => kind === 'order_without_outbox') ?? {};
        const resolved = await resolve(findingId, false, world.pool, 0);
        expect(resolved).to.include({ outcome: 'person', action: 'end_order' });
        expect(await rowsOf(order)).to.deep.equal(['batch_recorded 1']);
      }));

    it('acts on a finding that follows a finding with a future time', () =>
      watched(async () => {
        const later = await one();
        await noteSold(later, "'2100-01-01'");
        const order = await one();
        await byHand(order, 2, ended(order, 'cancelled'));
        await resolving('act')?.runOnce();
        expect(await openOf(order)).to.deep.equal([]);
        expect(await openOf(later)).to.have.length(1);
      }));

    it('leaves a sale to a person when MySQL cannot count its orders in time', async () => {
      const order = await one();
      await noteSold(order);
      const [{ findingId }] = (await openOf(order)) as [WitnessFinding];
      await server.admin(`LOCK TABLES ${ofDatabase('orders')} WRITE`); // the count waits for it
      try {
        const resolved = await resolve(findingId);
        expect(resolved).to.include({ outcome: 'person', action: 'recount_sold' });
        expect(resolved?.note).to.match(/within 2 s\. `seckill reconcile --sale \d+` counts/);
      } finally {
        await server.admin('UNLOCK TABLES');
      }
      expect(await resolve(findingId)).to.include({ outcome: 'resolved', note: 'sold is the sum of the orders' });
    });

    it('acts once when it is killed before its commit, and when another witness acts too', async () => {
      const order = await one();
      const found = await watched(() => byHand(order, 2, ended(order, 'cancelled')));
      const [{ findingId }] = found as [WitnessFinding];
      const killed = replacing(world.pool, {
        transaction: <T>(work: (tx: Transaction) => Promise<T>): Promise<T> =>
          world.pool.transaction(async (tx) => {
            await work(tx);
            throw new Error('killed');
          }),
      });
      for (const each of found)
        expect(await resolve(each.findingId, false, killed).then(String, String)).to.contain('killed');
      expect(await openOf(order)).to.deep.equal(found);
      expect(await rowsOf(order)).to.deep.equal(['batch_recorded 1']);
      const numbers = [findingId, ...found.map((one) => one.findingId), findingId];
      const both = await Promise.all(numbers.map((number) => resolve(number)));
      expect(both.filter((result) => result?.outcome === 'resolved')).to.have.length(2);
      expect(await rowsOf(order)).to.deep.equal(['batch_recorded 1', 'orders_moved cancelled', 'release']);
      expect(await world.violations(order.saleId)).to.deep.equal([]);
    });
  });

  describe('commands', () => {
    // a database of its own: the others of Redis know events of another MySQL
    const env = () => ({ ...stackEnv(), MYSQL_URL: server.url, REDIS_URL: `${stackEnv().REDIS_URL}/15` });

    it('`witness status` says why the witness does not follow the log', async () => {
      await watched(() => Promise.resolve());
      const status = async () => (await runCommand(['witness', 'status', '--json'], env())).lines[0];
      const position = (await store.position())?.position;
      expect(await status()).to.deep.include({ position, problem: null });
      await freeLease();
      const registry = new Registry();
      const witness = witnessOn(world.pool, registry);
      await server.admin("SET GLOBAL binlog_row_metadata = 'MINIMAL'");
      try {
        const why = await witness.runOnce().then(() => 'it follows', String);
        expect(why).to.contain('binlog_row_metadata is MINIMAL. Set binlog_row_metadata to FULL.');
        expect(why).to.contain(String((await status())?.problem));
        expect(await registry.metrics()).to.match(/^seckill_witness_behind_seconds \d/m);
      } finally {
        await server.admin("SET GLOBAL binlog_row_metadata = 'FULL'");
        witness.close();
      }
    });

    it('`witness` lists findings, and closes one with an entry in the audit log', async () => {
      await watched(async () => {
        const order = await one('d/1');
        await sql(`UPDATE orders SET batch_id = 'x' WHERE id = ${order.orderId}`);
        await until('it is found', async () => (await findings(order)).length > 0);
        const list = ['witness', 'list', '--sale', order.saleId, '--json'];
        const [finding] = (await runCommand(list, env())).lines;
        expect(finding).to.include({ kind: 'row_changed', orderId: order.orderId, state: 'open' });
        const closed = await runCommand(['witness', 'close', String(finding?.findingId)], env());
        expect(closed.stdout).to.equal(`finding ${String(finding?.findingId)} is closed.\n`);
        expect((await runCommand(list, env())).lines).to.deep.equal([]);
        const audit = await world.auditOf(`witness_finding:${String(finding?.findingId)}`);
        expect(audit.map(({ action }) => action)).to.deep.equal(['witness_finding.closed']);
      });
      expect(await runCommand(['witness', 'close', '987654321'], env())).to.include({ code: 1 });
    });

    it('`witness resolve` changes nothing in a dry run, and then acts as it has shown', async () => {
      await sql('DELETE FROM witness_findings');
      const order = await one('k/1');
      const books = async () => ({
        sale: await world.pool.query('SELECT sold FROM sales WHERE id = ?', [order.saleId]),
        outbox: await world.pool.query('SELECT id FROM outbox ORDER BY id'),
        findings: await all(),
        audit: await world.pool.query('SELECT id FROM audit_log ORDER BY id'),
      });
      await watched(async () => {
        await sql(`UPDATE orders SET state = 'expired' WHERE id = ${order.orderId}`);
        await until('it is found', async () => (await findings(order)).length === 2);
      });
      const before = await books();
      const dry = await runCommand(['witness', 'resolve', '--all', '--dry-run', '--json'], env());
      expect(dry.code, dry.stderr).to.equal(0);
      expect(dry.lines.map(({ outcome, action }) => `${String(outcome)} ${String(action)}`)).to.have.members([
        'would_resolve end_order',
        'would_resolve recount_sold',
      ]);
      expect(await books()).to.deep.equal(before);
      const numbers = before.findings.map(({ findingId }) => findingId);
      const done = await runCommand(['witness', 'resolve', ...numbers], env());
      expect(done.code, done.stderr).to.equal(0);
      expect(done.stdout).to.match(/resolved +end_order +order_without_outbox +writes orders_moved and release/);
      expect(await world.violations(order.saleId)).to.deep.equal([]);
      const again = await runCommand(['witness', 'resolve', ...numbers, '--json'], env());
      expect(again.lines.map(({ outcome }) => outcome)).to.deep.equal(['closed', 'closed']);
      expect(await runCommand(['witness', 'resolve', '987654321'], env())).to.include({ code: 1 });
      expect(await runCommand(['witness', 'resolve', '--all', '12'], env())).to.include({ code: 2 });
      expect(await runCommand(['witness', 'resolve'], env())).to.include({ code: 2 });
    });

    it('`witness resolve --all` continues after a finding that MySQL refuses to resolve', () =>
      watched(async () => {
        await sql('DELETE FROM witness_findings');
        const [refused, next] = [await one('l/1'), await one('l/2')];
        for (const { saleId } of [refused, next]) await sql(`UPDATE sales SET sold = sold + 1 WHERE id = ${saleId}`);
        await until('both are found', async () => (await all()).length === 2);
        await server.admin(`CREATE TRIGGER ${ofDatabase('refuse')} BEFORE UPDATE ON ${ofDatabase('sales')} FOR EACH ROW
          IF NEW.id = ${refused.saleId} THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not this sale'; END IF`);
        try {
          const done = await runCommand(['witness', 'resolve', '--all', '--json'], env());
          expect(done.code, done.stderr).to.equal(1);
          expect(done.lines.map(({ outcome }) => outcome)).to.deep.equal(['failed', 'resolved']);
          expect(done.lines[0]?.note).to.contain('not this sale');
          expect((await all()).map(({ state }) => state)).to.deep.equal(['open', 'closed']);
          await sql("UPDATE witness_findings SET state = 'open'");
          const registry = new Registry();
          await resolving('act', 0, registry)?.runOnce();
          const counted = await registry.metrics();
          for (const result of ['failed', 'resolved'])
            expect(counted).to.contain(`seckill_witness_actions_total{action="recount_sold",result="${result}"} 1`);
        } finally {
          await server.admin(`DROP TRIGGER ${ofDatabase('refuse')}`);
        }
      }));

    it('`changes` prints each change of an order and its sale, and continues after a position', async () => {
      const end = new RunningCommand(['changes', '--follow', '--json'], env()).signalAfter(12, 'SIGTERM');
      let isOver = false;
      void end.finally(() => (isOver = true));
      await until('it has printed some changes', async () => (await paid('f/1'), isOver), { everyMs: 200 });
      const { code, lines, stderr } = await end;
      expect(code, stderr).to.equal(0);
      const states = new Map<unknown, unknown[]>();
      for (const { what, id, after } of lines)
        if (what === 'order') states.set(id, [...(states.get(id) ?? []), (after as { state: string }).state]);
      expect([...states.values()].find((moves) => moves.length > 1)).to.deep.equal(['pending_payment', 'paid']);
      // only the last line of a transaction has the position behind it
      const last = lines.findIndex(({ position }, nth) => nth > 0 && position !== lines[nth - 1]?.position);
      const after = ['changes', '--follow', '--json', '--after', String(lines[last]?.position)];
      const again = await new RunningCommand(after, env()).signalAfter(1, 'SIGTERM');
      expect(again.lines[0], again.stderr).to.deep.equal(lines[last + 1]);
    });
  });
});
