import { setTimeout as sleep } from 'node:timers/promises';
import type { Transaction } from '../../../src/mysql/pool.js';
import type { Arena } from '../context.js';
import { type Buyers, userIds } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectFields, expectTrue } from '../harness/expect.js';
import { ask } from '../harness/http.js';
import { deadLettersOf, rowsOf } from '../harness/orders.js';
import type { Program } from '../harness/programs.js';
import type { Line } from '../harness/tcp-proxy.js';
import { MysqlWire } from '../harness/traffic.js';
import type { Row } from '../scenario.js';

// D: MySQL stalls, dies, forgets.

const OUTAGE_MS = 20_000;
const HEAL_MS = 30_000;
const ENV = { MYSQL_QUERY_TIMEOUT_MS: '3000' };

const MYSQL_ROWS: readonly Row[] = [
  {
    id: 'D1',
    title: 'MySQL stopped for 20 s under load: sales go on, nothing is parked, every row lands within 30 s',
    ...{ fast: true, alone: true },
    async run(arena) {
      const { stack, random } = arena;
      const [api, worker] = await Promise.all([
        arena.start('api', { env: ENV }),
        arena.start('worker', { env: ENV }),
        arena.start('keeper'),
      ]);
      const { saleId } = await arena.openSale({ stock: 100_000 });
      const buyers = arena.buyers(saleId, [api]);
      const { opLog } = buyers;
      const load = buyers.startLoad({ parallel: 16, pauseMs: random.whole(30, 70), tries: 1 });
      const before = random.whole(100, 300);
      await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);

      const mariadb = stack.servers.server('mariadb');
      expectTrue(mariadb.kill('SIGSTOP'), 'MySQL ran');
      const stoppedMs = performance.now();
      const outFor = (ms: number): boolean => performance.now() - stoppedMs > ms;
      await arena.bite('the worker noticed that MySQL is silent', async () => {
        const { text } = await ask(`${worker.probeUrl}/metrics`);
        return /seckill_mysql_outage\S* 1/.test(text);
      });
      await arena.until('18 s have passed', () => outFor(OUTAGE_MS - 2000), OUTAGE_MS);
      const okBefore = opLog.count('ok');
      await arena.until('the outage is over', () => outFor(OUTAGE_MS), OUTAGE_MS);
      expectAtLeast(opLog.count('ok'), okBefore + 1, 'purchases accepted meanwhile');
      const waiting = await stack.audit.store.pendingCount({ saleId, bucket: 0 });
      expectAtLeast(waiting, 1, 'batches that wait');
      mariadb.kill('SIGCONT');
      arena.faultEnded();
      await load.stop();

      expectFields(await arena.rest(saleId, HEAL_MS), { failedRows: 0 }, 'nothing failed');
      const parked = await stack.mysql.query('SELECT id FROM dead_letters WHERE sale_id = ?', [saleId]);
      expectEqual(parked.length, 0, 'letters: retries were not used up');
      await buyers.askAgain();
      const settled = await arena.rest(saleId);
      expectEqual(settled.rows, opLog.count('ok'), 'rows and buyers who heard yes');
    },
  },
];

// D2 to D4: MySQL is slow, takes locks away, breaks a connection at COMMIT.

const INSERT_ORDERS = 'INSERT INTO orders';
const RAISE_SOLD = 'UPDATE sales SET sold';
const DUPLICATE = 1062;
const LOCK_WAIT = 1205;
const DEADLOCK = 1213;
/** A statement that waits for a lock for 5 s is to hear so from the server, not from our own time-out. */
const PATIENT = { MYSQL_QUERY_TIMEOUT_MS: '9000', WORKER_INVISIBLE_MS: '20000' };
/** What a delivery is ours for, WORKER_INVISIBLE_MS of the harness. */
const INVISIBLE_MS = 10_000;

/** An api, a keeper, and a worker that speaks to MySQL through a proxy. */
async function startBehindWire(arena: Arena): Promise<{ readonly api: Program; readonly wire: MysqlWire }> {
  const { proxy, env } = await arena.proxy('mysql');
  const wire = new MysqlWire(proxy, [INSERT_ORDERS, RAISE_SOLD]);
  const [api] = await Promise.all([
    arena.start('api'),
    arena.start('keeper'),
    arena.start('worker', { env: { ...PATIENT, ...env } }),
  ]);
  return { api, wire };
}

/** Whoever heard yes has an order, nothing failed, and no message used its retries up. */
async function expectEachHasAnOrder(arena: Arena, saleId: string, buyers: Buyers): Promise<void> {
  await buyers.askAgain();
  const figures = await arena.rest(saleId);
  expectFields(figures, { rows: buyers.opLog.count('ok'), failedRows: 0 }, 'rows of those who heard yes');
  expectEqual(await deadLettersOf(arena.stack, saleId), 0, 'dead letters');
}

const SLOW: Row = {
  id: 'D2',
  title:
    'seconds per statement, an exhausted pool: a delivery stays ours while it is written, 202s go on, no second row',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { proxy, env } = await arena.proxy('mysql');
    const wire = new MysqlWire(proxy);
    const [api] = await Promise.all([
      arena.start('api', { env: { ...env, MYSQL_POOL_MAX: '1' } }),
      arena.start('keeper'),
      ...[1, 2].map(() => arena.start('worker', { env })),
    ]);
    const { saleId } = await arena.openSale({ stock: 100_000 });
    const buyers = arena.buyers(saleId, [api]);
    const { opLog } = buyers;
    await buyers.rush(userIds(8), 8, { tries: 20 });
    await arena.rest(saleId);
    const before = await rowsOf(arena.stack, saleId);

    proxy.replyDelayMs = arena.random.whole(1_800, 2_300);
    const slowMs = performance.now();
    const load = buyers.startLoad({ parallel: 4, pauseMs: 100, tries: 1 });
    const asked = await Promise.all(userIds(8).map((userId) => buyers.order(userId, '1').catch(() => null)));
    await arena.bite('the pool of the api was exhausted', () => asked.some((answer) => answer?.status === 503));
    const okBefore = opLog.count('ok');
    await arena.until('purchases are accepted all the same', () => opLog.count('ok') > okBefore + 50);
    await arena.until(
      'slow transactions are committed',
      async () => (await rowsOf(arena.stack, saleId)) > before,
      60_000,
    );
    const tookMs = Math.round(performance.now() - slowMs);
    await arena.bite(
      `a transaction took ${tookMs} ms, a delivery is ours for ${INVISIBLE_MS}`,
      () => tookMs > INVISIBLE_MS,
    );
    await load.stop();
    proxy.replyDelayMs = 0;
    arena.faultEnded();
    await expectEachHasAnOrder(arena, saleId, buyers);
    expectEqual(wire.count(DUPLICATE, `-${saleId}-`), 0, 'rows that a second delivery tried to write');
  },
};

/** Runs `meanwhile` while somebody else holds the row of the sale, and then gives everything of his up. */
function whileHeld({ stack }: Arena, saleId: string, meanwhile: (tx: Transaction) => Promise<void>): Promise<void> {
  return stack.mysql.transaction(async (tx) => {
    await tx.query('SELECT id FROM sales WHERE id = ? FOR UPDATE', [saleId]);
    await meanwhile(tx);
    await tx.rollback();
  });
}

const LOCKED: Row = {
  ...{ id: 'D3', variant: 'lock_wait' },
  title: 'somebody holds the row of the sale: ROLLBACK, then again as a whole; nothing is half there meanwhile',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { api, wire } = await startBehindWire(arena);
    const { saleId } = await arena.openSale({ stock: 100 });
    const buyers = arena.buyers(saleId, [api]);
    await whileHeld(arena, saleId, async () => {
      await buyers.rush(userIds(arena.random.whole(5, 20)), 5, { tries: 5 });
      await arena.bite('a lock wait timed out (1205)', () => wire.count(LOCK_WAIT) > 0);
      expectEqual(await rowsOf(arena.stack, saleId), 0, 'rows while the sale is held');
    });
    arena.faultEnded();
    expectAtLeast(wire.sent(INSERT_ORDERS), 2, 'the whole transaction again: INSERTs sent');
    await expectEachHasAnOrder(arena, saleId, buyers);
  },
};

/** More rows than a worker writes here: of two in a deadlock the one that has changed less is the victim. */
const BALLAST = 500;

const DEADLOCKED: Row = {
  ...{ id: 'D3', variant: 'deadlock' },
  title: 'the worker is the victim of a deadlock: the whole transaction again, recorded once',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { api, wire } = await startBehindWire(arena);
    const { saleId } = await arena.openSale({ stock: 100 });
    const buyers = arena.buyers(saleId, [api]);
    const users = userIds(arena.random.whole(5, 20));
    await whileHeld(arena, saleId, async (tx) => {
      const ballast = Array.from({ length: BALLAST }, () => "('ballast', 'ballast', '{}', UTC_TIMESTAMP(3))");
      await tx.execute(`INSERT INTO outbox (kind, \`key\`, payload, done_at) VALUES ${ballast.join()}`);
      await buyers.rush(users.slice(0, 1), 1, { tries: 5 });
      await arena.until('the worker waits for the sale', () => wire.sent(RAISE_SOLD) > 0);
      await buyers.rush(users.slice(1), 5, { tries: 5 });
      await tx.execute(
        `INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer)
         VALUES (1, ?, ?, 'k1', 'rival', 1, 1, 1)`,
        [saleId, users[0] as string],
      );
    });
    await arena.bite('the worker lost a deadlock (1213)', () => wire.count(DEADLOCK) > 0);
    arena.faultEnded();
    await expectEachHasAnOrder(arena, saleId, buyers);
  },
};

type CommitFault = 'lost reply' | 'lost request' | 'KILL';

/** Breaks COMMITs of transactions that write orders, each one otherwise, until there is no fault left. */
function breakCommits({ stack }: Arena, wire: MysqlWire, faults: CommitFault[]): ReadonlyMap<CommitFault, number> {
  const done = new Map<CommitFault, number>();
  /** Lines in a transaction that writes orders, each with its id at the server. */
  const writing = new Map<Line, Promise<string | undefined>>();
  const idOf = async ({ farPort }: Line): Promise<string | undefined> => {
    const sql = 'SELECT id FROM information_schema.processlist WHERE host LIKE ?';
    return (await stack.mysql.query<{ id: string }>(sql, [`%:${farPort}`]))[0]?.id;
  };
  wire.onStatement = (text, line) => {
    if (text.startsWith(INSERT_ORDERS)) writing.set(line, idOf(line));
    const connectionId = writing.get(line);
    if (!text.startsWith('COMMIT') || connectionId === undefined) return true;
    writing.delete(line);
    const fault = faults.shift();
    if (fault === undefined) return true;
    done.set(fault, (done.get(fault) ?? 0) + 1);
    switch (fault) {
      case 'lost reply': // it arrives, and is done long before the line breaks
        void sleep(COMMIT_MS).then(() => line.reset());
        wire.mute(line);
        return true;
      case 'lost request':
        line.reset();
        return false;
      case 'KILL': // at the server they meet by chance: before, in or after the COMMIT
        void connectionId.then((id) => stack.mysql.execute(`KILL CONNECTION ${id}`)).catch(() => undefined);
        return true;
    }
  };
  return done;
}

/** Far longer than a COMMIT takes. */
const COMMIT_MS = 500;
const FAULTS_OF_EACH = 3;

const COMMITS: Row = {
  id: 'D4',
  title:
    'COMMITs without reply, lost on the way or killed: what is there is found, what is not is written, counted once',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { api, wire } = await startBehindWire(arena);
    const { saleId } = await arena.openSale({ stock: 100_000 });
    const buyers = arena.buyers(saleId, [api]);
    const all: CommitFault[] = ['lost reply', 'lost request', 'KILL'];
    const faults = arena.random.shuffled(Array.from({ length: FAULTS_OF_EACH }, () => all).flat());
    const load = buyers.startLoad({ parallel: 8, pauseMs: arena.random.whole(20, 60), tries: 1 });
    await arena.until('the load is on', () => buyers.opLog.count('ok') > 50, 30_000);

    const done = breakCommits(arena, wire, faults);
    for (const fault of all) {
      await arena.bite(`${FAULTS_OF_EACH} × COMMIT, ${fault}`, () => done.get(fault) === FAULTS_OF_EACH, 60_000);
    }
    await arena.bite('rows of a lost COMMIT were found', () => wire.count(DUPLICATE, `-${saleId}-`) > 0);
    arena.faultEnded();
    await load.stop();
    await expectEachHasAnOrder(arena, saleId, buyers);
  },
};

export const MYSQL_SCENARIOS: readonly Row[] = [SLOW, LOCKED, DEADLOCKED, COMMITS, ...MYSQL_ROWS];
