import { setTimeout as sleep } from 'node:timers/promises';
import type { Transaction } from '../../../src/mysql/pool.js';
import type { ScenarioContext } from '../context.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectTrue } from '../harness/expect.js';
import { expectRowPerAccepted, startSystem } from '../harness/load.js';
import { readMetric } from '../harness/programs.js';
import { deadLettersOf, pendingCountOf, rowsOf } from '../harness/sale-state.js';
import type { ProxiedConnection } from '../harness/tcp-proxy.js';
import { MysqlWire } from '../harness/traffic.js';
import type { Scenario } from '../scenario.js';

// D1 to D4: MySQL stalls, is slow, aborts transactions, or loses connections at COMMIT.

const INSERT_ORDERS = 'INSERT INTO orders';
const RAISE_SOLD = 'UPDATE sales SET sold';
const DUPLICATE = 1062;
const LOCK_WAIT = 1205;
const DEADLOCK = 1213;
/** A lock wait of 5 s must end with the error of the server, not with our own time-out. */
const PATIENT = { MYSQL_QUERY_TIMEOUT_MS: '9000', WORKER_INVISIBLE_MS: '20000' };

/** Asserts that each accepted purchase has an order, nothing failed, and no message used up its retries. */
async function expectNothingLost(context: ScenarioContext, buyers: Buyers): Promise<void> {
  await expectRowPerAccepted(context, buyers, { failedRows: 0 });
  expectEqual(await deadLettersOf(context.stack, buyers.saleId), 0, 'dead letters');
}

const OUTAGE_MS = 5_000;
const HEAL_MS = 30_000;

const STALLED: Scenario = {
  name: 'D1',
  title: 'MySQL stalls under load: sales go on, nothing is parked, every row is there within 30 s',
  fast: true,
  alone: true,
  async run(context) {
    const { stack, random } = context;
    const env = { MYSQL_QUERY_TIMEOUT_MS: '3000' };
    const { worker, saleId, buyers } = await startSystem(context, { stock: 100_000 }, { api: env, worker: env });
    const options = { parallel: 16, pauseMs: random.whole(30, 70), tries: 1 };
    const load = await buyers.startLoadUntil(options, random.whole(100, 300));

    const mysql = stack.servers.server('mysql');
    expectTrue(mysql.kill('SIGSTOP'), 'MySQL ran');
    const stoppedMs = performance.now();
    const hasNoticed = async (): Promise<boolean> => (await readMetric(worker, 'seckill_mysql_outage')) === 1;
    await context.observed('the worker noticed that MySQL is silent', hasNoticed);
    await buyers.untilAccepted(20, 'purchases are accepted meanwhile');
    await context.until('the outage is over', () => performance.now() - stoppedMs > OUTAGE_MS);
    expectAtLeast(await pendingCountOf(stack, saleId), 1, 'batches that wait');
    mysql.kill('SIGCONT');
    context.faultEnded();
    await load.stop();

    await context.expectFigures(saleId, { failedRows: 0 }, 'nothing failed', HEAL_MS);
    await expectNothingLost(context, buyers);
  },
};

/** WORKER_INVISIBLE_MS of the harness, after which a delivery goes to another worker. */
const INVISIBLE_MS = 10_000;

const SLOW: Scenario = {
  name: 'D2',
  title:
    'MySQL takes seconds per statement, a pool is exhausted: a delivery is kept while it is written, no second row',
  alone: true,
  async run(context) {
    const { stack } = context;
    const { proxy, env } = await context.proxy('mysql');
    const wire = new MysqlWire(proxy);
    const [api] = await Promise.all([
      context.start('api', { env: { ...env, MYSQL_POOL_MAX: '1' } }),
      context.start('keeper'),
      context.start('worker', { env }),
      context.start('worker', { env }),
    ]);
    const { saleId } = await context.openSale({ stock: 100_000 });
    const buyers = context.buyers(saleId, [api]);
    await buyers.rush(userIds(8), 8, { tries: 20 });
    await context.expectInvariants(saleId);
    const before = await rowsOf(stack, saleId);

    proxy.replyDelayMs = context.random.whole(1_800, 2_300);
    const slowMs = performance.now();
    const load = buyers.startLoad({ parallel: 4, pauseMs: 100, tries: 1 });
    const answers = await Promise.all(userIds(8).map((userId) => buyers.order(userId, '1').catch(() => null)));
    await context.observed('the pool of the api was exhausted', () => answers.some((answer) => answer?.status === 503));
    await buyers.untilAccepted(50, 'purchases are accepted all the same');
    const areWritten = async (): Promise<boolean> => (await rowsOf(stack, saleId)) > before;
    await context.until('slow transactions are committed', areWritten);
    const tookMs = Math.round(performance.now() - slowMs);
    const what = `a transaction took ${tookMs} ms, longer than a delivery stays hidden, ${INVISIBLE_MS} ms`;
    await context.observed(what, () => tookMs > INVISIBLE_MS);
    await load.stop();
    proxy.replyDelayMs = 0;
    context.faultEnded();
    await expectNothingLost(context, buyers);
    expectEqual(wire.count(DUPLICATE, `-${saleId}-`), 0, 'rows that a second delivery tried to write');
  },
};

/** An api, a keeper, and a worker that reaches MySQL through a proxy; a sale and its buyers. */
async function startBehindProxy(context: ScenarioContext, stock: number) {
  const { proxy, env } = await context.proxy('mysql');
  const wire = new MysqlWire(proxy, [INSERT_ORDERS, RAISE_SOLD]);
  const [api] = await Promise.all([
    context.start('api'),
    context.start('keeper'),
    context.start('worker', { env: { ...PATIENT, ...env } }),
  ]);
  const { saleId } = await context.openSale({ stock });
  return { saleId, wire, buyers: context.buyers(saleId, [api]) };
}

/** Runs `meanwhile` while another transaction holds the row of the sale, then rolls that transaction back. */
function whileLocked(
  { stack }: ScenarioContext,
  saleId: string,
  meanwhile: (tx: Transaction) => Promise<void>,
): Promise<void> {
  return stack.mysql.transaction(async (tx) => {
    await tx.query('SELECT id FROM sales WHERE id = ? FOR UPDATE', [saleId]);
    await meanwhile(tx);
    await tx.rollback();
  });
}

const LOCKED: Scenario = {
  name: 'D3/lock_wait',
  title: 'another session locks the row of the sale: ROLLBACK, then the whole transaction again, never a part of it',
  alone: true,
  async run(context) {
    const { saleId, wire, buyers } = await startBehindProxy(context, 100);
    await whileLocked(context, saleId, async () => {
      await buyers.rush(userIds(context.random.whole(5, 20)), 5, { tries: 5 });
      await context.observed('a lock wait timed out (1205)', () => wire.count(LOCK_WAIT) > 0);
      expectEqual(await rowsOf(context.stack, saleId), 0, 'rows while the sale is locked');
    });
    context.faultEnded();
    expectAtLeast(wire.sent(INSERT_ORDERS), 2, 'the whole transaction again: INSERTs sent');
    await expectNothingLost(context, buyers);
  },
};

/** More rows than a worker writes here, because a deadlock ends the transaction with fewer changes. */
const BALLAST = 500;

const DEADLOCKED: Scenario = {
  name: 'D3/deadlock',
  title: 'the worker loses a deadlock: the whole transaction again, recorded once',
  alone: true,
  async run(context) {
    const { saleId, wire, buyers } = await startBehindProxy(context, 100);
    const users = userIds(context.random.whole(5, 20));
    await whileLocked(context, saleId, async (tx) => {
      const ballast = Array.from({ length: BALLAST }, () => "('ballast', 'ballast', '{}', UTC_TIMESTAMP(3))");
      await tx.execute(`INSERT INTO outbox (kind, \`key\`, payload, done_at) VALUES ${ballast.join()}`);
      await buyers.rush(users.slice(0, 1), 1, { tries: 5 });
      await context.until('the worker waits for the sale', () => wire.sent(RAISE_SOLD) > 0);
      await buyers.rush(users.slice(1), 5, { tries: 5 });
      await tx.execute(
        `INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer)
         VALUES (1, ?, ?, 'k1', 'rival', 1, 1, 1)`,
        [saleId, users[0] as string],
      );
    });
    await context.observed('the worker lost a deadlock (1213)', () => wire.count(DEADLOCK) > 0);
    context.faultEnded();
    await expectNothingLost(context, buyers);
  },
};

type CommitFault = 'lost reply' | 'lost request' | 'KILL';

/** Far longer than a COMMIT takes. */
const COMMIT_MS = 500;
const FAULTS_OF_EACH = 3;

/** Breaks COMMITs of transactions that write orders, one per fault. @returns how many of each fault are done */
function breakCommits(
  { stack }: ScenarioContext,
  wire: MysqlWire,
  faults: CommitFault[],
): ReadonlyMap<CommitFault, number> {
  const done = new Map<CommitFault, number>();
  /** Connections in a transaction that writes orders, each with its id at the server. */
  const writing = new Map<ProxiedConnection, Promise<string | undefined>>();
  const idOf = async ({ serverSidePort }: ProxiedConnection): Promise<string | undefined> => {
    const sql = 'SELECT id AS id FROM information_schema.processlist WHERE host LIKE ?';
    return (await stack.mysql.query<{ id: string }>(sql, [`%:${serverSidePort}`]))[0]?.id;
  };
  wire.onStatement = (text, connection) => {
    if (text.startsWith(INSERT_ORDERS)) writing.set(connection, idOf(connection));
    const connectionId = writing.get(connection);
    if (!text.startsWith('COMMIT') || connectionId === undefined) return true;
    writing.delete(connection);
    const fault = faults.shift();
    if (fault === undefined) return true;
    done.set(fault, (done.get(fault) ?? 0) + 1);
    switch (fault) {
      case 'lost reply': // it arrives, and is executed long before the connection breaks
        void sleep(COMMIT_MS).then(() => connection.reset());
        wire.dropReplies(connection);
        return true;
      case 'lost request':
        connection.reset();
        return false;
      case 'KILL': // arrives before, during or after the COMMIT
        void connectionId.then((id) => stack.mysql.execute(`KILL CONNECTION ${id}`)).catch(() => undefined);
        return true;
    }
  };
  return done;
}

const COMMITS_LOST: Scenario = {
  name: 'D4',
  title: 'COMMITs lose their reply, get lost or are killed: what exists is found, what is missing is written, once',
  alone: true,
  async run(context) {
    const { saleId, wire, buyers } = await startBehindProxy(context, 100_000);
    const all: CommitFault[] = ['lost reply', 'lost request', 'KILL'];
    const faults = context.random.shuffled(Array.from({ length: FAULTS_OF_EACH }, () => all).flat());
    const options = { parallel: 8, pauseMs: context.random.whole(20, 60), tries: 1 };
    const load = await buyers.startLoadUntil(options, 50);

    const done = breakCommits(context, wire, faults);
    for (const fault of all) {
      const areDone = (): boolean => done.get(fault) === FAULTS_OF_EACH;
      await context.observed(`${FAULTS_OF_EACH} × COMMIT, ${fault}`, areDone);
    }
    const areFound = (): boolean => wire.count(DUPLICATE, `-${saleId}-`) > 0;
    await context.observed('rows of a lost COMMIT were found', areFound);
    context.faultEnded();
    await load.stop();
    await expectNothingLost(context, buyers);
  },
};

export const MYSQL_SCENARIOS: readonly Scenario[] = [STALLED, SLOW, LOCKED, DEADLOCKED, COMMITS_LOST];
