import type { ScenarioContext } from '../context.js';
import { deductBatch, publishBatches } from '../harness/batches.js';
import { userIds, isAccepted } from '../harness/buyers.js';
import { runCommand } from '../harness/commands.js';
import { expectAtLeast, expectEqual, expectFields, expectTrue, expectBelow } from '../harness/expect.js';
import { sumMetric, NO_REDRIVE, type Program, readMetric } from '../harness/programs.js';
import { found } from '../harness/wait.js';
import type { Scenario } from '../scenario.js';
import { drainDeliveries } from '../harness/broker.js';
import { pendingBatchesOf, pendingCountOf, recordedTimes, rowsOf, deadLettersOf } from '../harness/sale-state.js';
import { expectRowPerAccepted, startSystem } from '../harness/load.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import { ACTOR, reconcileSale } from '../harness/sales.js';

// M5, M8, M9, D1, D6: a batch arrives often, cannot be recorded, meets a dying worker or a silent MySQL, or has no units.

interface DeadLetter {
  readonly batch_id: string;
  readonly origin_topic: string;
  readonly reason: string;
  readonly state: string;
  readonly attempts: number;
  readonly detail: string;
  readonly body: string;
}

const deadLettersOfBatch = ({ stack }: ScenarioContext, batchId: string): Promise<DeadLetter[]> =>
  stack.mysql.query<DeadLetter>(
    'SELECT batch_id, origin_topic, reason, state, attempts, detail, body FROM dead_letters WHERE batch_id = ?',
    [batchId],
  );

const COPIES = 5;

const COPIED: Scenario = {
  name: 'M5',
  title: 'one batch delivered five times at once, to two workers, is recorded once',
  fast: true,
  async run(context) {
    const { stack } = context;
    const [{ saleId }, { workers }] = await Promise.all([context.openSale({ stock: 50 }), context.healthyPrograms()]);
    const batch = await deductBatch(stack, saleId, userIds(40));
    const again = (): Promise<number> => sumMetric(workers, 'seckill_deliveries_total{verdict="already_recorded"}');
    const before = await again();
    await publishBatches(
      stack,
      Array.from({ length: COPIES }, () => batch),
    );
    context.faultEnded(); // the last copy is sent
    await context.observed('five copies arrived', async () => (await again()) >= before + COPIES - 1);
    await context.expectFigures(saleId, { rows: 40, sold: 40, unitsLeft: 10, duplicates: 0 }, 'recorded once');
    const sql = "SELECT id FROM outbox WHERE kind = 'batch_recorded' AND `key` = ?";
    expectEqual((await stack.mysql.query(sql, [batch.batchId])).length, 1, 'rows of the outbox');
  },
};

/** While `work` runs, MySQL refuses every order of the sale. */
async function whileRefused<T>({ stack }: ScenarioContext, saleId: string, work: () => Promise<T>): Promise<T> {
  const trigger = `refuse_sale_${saleId}`;
  await stack.mysql.execute(
    `CREATE TRIGGER ${trigger} AFTER INSERT ON orders FOR EACH ROW
       IF NEW.sale_id = ${saleId} THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused by a chaos scenario'; END IF`,
  );
  try {
    return await work();
  } finally {
    await stack.mysql.execute(`DROP TRIGGER ${trigger}`);
  }
}

const ALWAYS_REFUSED: Scenario = {
  name: 'M8',
  title: 'a batch that MySQL always refuses is parked once, its unit stays held until a replay, other sales go on',
  fast: true,
  async run(context) {
    const { stack } = context;
    const { api, workers } = await context.healthyPrograms();
    const [refused, healthy] = [await context.openSale(), await context.openSale({ stock: 1000 })];
    const [unlucky, lucky] = [context.buyers(refused.saleId, [api]), context.buyers(healthy.saleId, [api])];
    const inRedis = () => stack.audit.store.snapshot({ saleId: refused.saleId, bucket: 0 });
    const deadLetter = await whileRefused(context, refused.saleId, async () => {
      const retries = (): Promise<number> => sumMetric(workers, 'seckill_deliveries_total{verdict="retry"}');
      const retriesBefore = await retries();
      const load = lucky.startLoad({ parallel: 2, pauseMs: 100 });
      expectTrue(isAccepted(await unlucky.buy('ann', { tries: 4 })), 'the purchase that will be refused');
      const [batchId = ''] = (await inRedis())?.pending ?? [];
      const parked = async () => (await deadLettersOfBatch(context, batchId))[0];
      const one = await found('the dead letter', parked);
      await load.stop();
      expectAtLeast((await retries()) - retriesBefore, 5, 'every try was made, and the last one parked it');
      return one;
    });
    const expected = { reason: 'retries_exhausted', state: 'parked', origin_topic: 'seckill-purchase' };
    expectFields(deadLetter, expected, 'the dead letter');
    expectEqual(deadLetter.detail, 'poison: ER_SIGNAL_EXCEPTION: refused by a chaos scenario', 'its error');
    const isParked = async (): Promise<boolean> => (await inRedis())?.pending.length === 0;
    await context.observed('the batch is parked and out of pending', isParked);
    expectEqual((await inRedis())?.unitsLeft, 9, 'units left while it is parked');
    expectEqual((await unlucky.status('ann')).json.status, 'pending', 'its status');
    expectAtLeast((await context.expectInvariants(healthy.saleId)).rows, 11, 'orders of other sales');

    context.faultEnded();
    const args = ['dlq', 'replay', '--all-matching', '--sale', refused.saleId, '--json'];
    const replay = await runCommand(args, context.env);
    expectEqual(replay.lines.length, 1, `lines of the replay (${replay.stderr})`);
    const [line = {}] = replay.lines as { readonly outcome?: unknown }[];
    const byUs = { outcome: 'replayed', note: 'recorded: 1 live, 0 ended' };
    const byKeeper = { outcome: 'already_closed', note: 'it is replayed' }; // it saw the order first
    expectFields(line, line.outcome === byUs.outcome ? byUs : byKeeper, 'the replay');
    expectEqual((await unlucky.status('ann')).json.status, 'ordered', 'its status then');
    await context.expectFigures(refused.saleId, { rows: 1, sold: 1, unitsLeft: 9 }, 'one order');
    expectEqual((await deadLettersOfBatch(context, deadLetter.batch_id)).length, 1, 'parked once');
  },
};

const STOCK = 20;
const BUYERS = userIds(5);
/**
 * Workers run one after the other, so that each gets the batch of its own sale. The last worker receives a message that
 * is left.
 */
const POINTS = [
  'worker_after_mark_recorded',
  'worker_after_commit',
  'worker_before_commit',
  'worker_after_insert',
  'worker_after_receive',
] as const;
/** Points after the COMMIT. */
const LEAVES_ROWS: readonly string[] = ['worker_after_commit', 'worker_after_mark_recorded'];
/** Each death leaves messages, and the next worker may die of them. They are drained at the end. */
const WORKERS_UNTIL_DRAIN = 4;
const WORKERS_MAX = 12;

/** The traces of a worker that was killed at a fail point. */
interface Death {
  readonly point: string;
  readonly saleId: string;
  readonly rows: number;
  readonly pending: number;
}

/** The received and written text that passed the proxies of a worker. */
class WorkerTraffic {
  readonly env: Readonly<Record<string, string>>;
  #received = '';
  #inserted = '';

  private constructor(env: Readonly<Record<string, string>>) {
    this.env = env;
  }

  static async start(context: ScenarioContext): Promise<WorkerTraffic> {
    const [broker, mysql] = [await context.proxy('broker'), await context.proxy('mysql')];
    const traffic = new WorkerTraffic({ ...broker.env, ...mysql.env });
    broker.proxy.intercept = (what, chunk) => {
      if (what === 'replies') traffic.#received += chunk.toString('latin1');
      return true;
    };
    mysql.proxy.intercept = (what, chunk) => {
      if (what === 'requests' && chunk.includes('INSERT INTO orders')) traffic.#inserted += chunk.toString('latin1');
      return true;
    };
    return traffic;
  }

  /** Before the next worker starts. */
  clear(): void {
    [this.#received, this.#inserted] = ['', ''];
  }

  /** Tells whether the worker that died before its COMMIT had one of these batches at that point. */
  has(batchIds: readonly string[], point: string): boolean {
    const text = point === 'worker_after_receive' ? this.#received : this.#inserted;
    return batchIds.some((batchId) => text.includes(batchId));
  }
}

async function killAt(context: ScenarioContext, api: Program, traffic: WorkerTraffic, point: string): Promise<Death> {
  const { stack } = context;
  const sell = async (): Promise<{ saleId: string; batchIds: readonly string[] }> => {
    const { saleId } = await context.openSale({ stock: STOCK });
    const answers = await context.buyers(saleId, [api]).rush(BUYERS, BUYERS.length, { tries: 4 });
    for (const answer of answers) expectTrue(isAccepted(answer), 'the purchase');
    return { saleId, batchIds: await pendingBatchesOf(stack, saleId) };
  };
  let { saleId, batchIds } = await sell();
  for (let workers = 1; ; workers++) {
    traffic.clear();
    const worker = await context.start('worker', { env: traffic.env, failPoint: point });
    await context.diedAt(worker, point);
    const rows = await rowsOf(stack, saleId);
    const pending = await pendingCountOf(stack, saleId);
    // it may have died of a message of an earlier scenario; then ours is there for the next worker
    const ours = LEAVES_ROWS.includes(point) ? rows > 0 : traffic.has(batchIds, point);
    if (ours) return { point, saleId, rows, pending };
    expectBelow(workers, WORKERS_MAX, `workers that died at ${point} of other messages`);
    if (workers % WORKERS_UNTIL_DRAIN === 0) {
      await drainDeliveries(context);
      ({ saleId, batchIds } = await sell());
    }
  }
}

/** The traces that each death must leave. Its message is delivered again and recorded once. */
async function expectRedelivered(context: ScenarioContext, { point, saleId, rows, pending }: Death): Promise<void> {
  if (LEAVES_ROWS.includes(point)) expectAtLeast(rows, 1, `rows after ${point}`);
  else expectEqual(rows, 0, `rows after ${point}: no half-recorded batch`);
  if (point !== 'worker_after_mark_recorded') expectAtLeast(pending, 1, `batches pending after ${point}`);
  const count = BUYERS.length;
  await context.expectFigures(saleId, { rows: count, sold: count, unitsLeft: STOCK - count, failedRows: 0 }, point);
  expectEqual(await recordedTimes(context.stack, saleId), 1, `rows of the outbox per batch after ${point}`);
}

const DEATHS: Scenario = {
  name: 'M9',
  also: ['G11'],
  title: 'a worker dies between any two steps: no row or all rows, the message is delivered again, recorded once',
  fast: true,
  alone: true,
  async run(context) {
    await drainDeliveries(context);
    const [api, traffic] = await Promise.all([context.start('api'), WorkerTraffic.start(context)]);
    const deaths: Death[] = [];
    for (const point of POINTS) deaths.push(await killAt(context, api, traffic, point));
    await Promise.all([context.start('worker'), context.start('keeper', { env: NO_REDRIVE })]);
    context.faultEnded();
    await Promise.all(deaths.map((death) => expectRedelivered(context, death)));
  },
};

const OUTAGE_MS = 5_000;
const HEAL_MS = 30_000;

const MYSQL_STALLED: Scenario = {
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
    await expectRowPerAccepted(context, buyers, { failedRows: 0 });
    expectEqual(await deadLettersOf(stack, saleId), 0, 'dead letters');
  },
};

const UNITS_ADDED: Scenario = {
  name: 'D6',
  title: 'units are added to Redis by hand: exactly the surplus fails at the last guard; the stock is corrected',
  fast: true,
  mayFail: ['oversold_guard'],
  async run(context) {
    const { stack, random } = context;
    const stock = random.whole(5, 10);
    const surplus = random.whole(1, 4);
    const unsold = random.whole(1, 3);
    const [{ api }, { saleId }] = await Promise.all([context.healthyPrograms(), context.openSale({ stock })]);
    const added = surplus + unsold;
    await stack.redis.redis.incrby(bucketKeys({ saleId, bucket: 0 }).stock, added);
    expectEqual((await reconcileSale(stack, api, saleId)).found, [`drift -${added}`], 'found before any purchase');

    const buyers = context.buyers(saleId, [api]);
    await buyers.rush(userIds(stock + surplus), 8, { tries: 20 });
    expectEqual(buyers.opLog.count('ok'), stock + surplus, 'accepted purchases');
    const failed = async (): Promise<number> => {
      const sql = "SELECT id FROM orders WHERE sale_id = ? AND reason = 'oversold_guard'";
      return (await stack.mysql.query(sql, [saleId])).length;
    };
    const what = `the guard refused ${surplus} of ${stock + surplus}`;
    await context.observed(what, async () => (await failed()) === surplus);
    const expected = [`drift -${unsold}`, `oversell ${surplus}`].join();
    const areFound = async (): Promise<boolean> => (await reconcileSale(stack, api, saleId)).found.join() === expected;
    await context.until('both are found', areFound, { everyMs: 500 }); // young batches hide the drift
    const open = await reconcileSale(stack, api, saleId, { apply: true });
    expectEqual(open.jobs, [], 'no script sets the stock of an open sale');

    await stack.admin.close(saleId, ACTOR);
    const closed = await reconcileSale(stack, api, saleId, { apply: true });
    const jobs = closed.jobs.filter((job) => job.startsWith('drift'));
    expectEqual(jobs, ['drift compensated'], 'jobs of the closed sale');
    context.faultEnded();
    const figures = { sold: stock, liveRows: stock, failedRows: surplus, unitsLeft: 0 };
    await context.expectFigures(saleId, figures, 'exactly the surplus failed');
  },
};

export const RECORDING_SCENARIOS: readonly Scenario[] = [COPIED, ALWAYS_REFUSED, DEATHS, MYSQL_STALLED, UNITS_ADDED];
