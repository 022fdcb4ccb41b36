import { isStopped } from '../../../deploy/local/stack/processes.js';
import type { ScenarioContext } from '../context.js';
import { drainDeliveries } from '../harness/broker.js';
import { userIds, type Buyers, isAccepted } from '../harness/buyers.js';
import { expectAtLeast, expectBelow, expectEqual, expectTrue } from '../harness/expect.js';
import { expectRowPerAccepted, startSystem } from '../harness/load.js';
import { NO_REDRIVE, readMetric, type Program } from '../harness/programs.js';
import { deadLettersOf, pendingBatchesOf, pendingCountOf, recordedTimes, rowsOf } from '../harness/sale-state.js';
import { MysqlWire } from '../harness/traffic.js';
import type { Scenario } from '../scenario.js';

// G11, M9 to M11: a worker dies between two steps of recording, stalls in its transaction, or is far too slow.

/**
 * Asserts that each accepted purchase has an order, each batch was recorded once, and no message used up its retries.
 */
async function expectRecordedOnce(context: ScenarioContext, buyers: Buyers): Promise<void> {
  await expectRowPerAccepted(context, buyers, { failedRows: 0 });
  expectEqual(await recordedTimes(context.stack, buyers.saleId), 1, 'how often a batch was recorded');
  expectEqual(await deadLettersOf(context.stack, buyers.saleId), 0, 'dead letters');
}

const STOCK = 20;
const BUYERS = userIds(5);
/**
 * Workers die one after another, each with the batch of its own sale. The last one can die of a message that an earlier
 * worker left.
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

/** The traces that a worker killed at a fail point must leave. */
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
    // it may have died of a message of an earlier scenario, so that ours is left for the next worker
    const ours = LEAVES_ROWS.includes(point) ? rows > 0 : traffic.has(batchIds, point);
    if (ours) return { point, saleId, rows, pending };
    expectBelow(workers, WORKERS_MAX, `workers that died at ${point} of other messages`);
    if (workers % WORKERS_UNTIL_DRAIN === 0) {
      await drainDeliveries(context);
      ({ saleId, batchIds } = await sell());
    }
  }
}

/** The traces that each death must leave. The message must be delivered again and recorded once. */
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

const INSERT_ORDERS = 'INSERT INTO orders';
const RAISE_SOLD = 'UPDATE sales SET sold';
const LOCK_WAIT = 1205;
/** WORKER_INVISIBLE_MS of the harness, after which a delivery goes to another worker. */
const INVISIBLE_MS = 10_000;
/** A lock wait of 5 s must end with the error of the server, not with our own time-out. */
const PATIENT = { MYSQL_QUERY_TIMEOUT_MS: '9000', WORKER_INVISIBLE_MS: '20000' };

const STALLED: Scenario = {
  name: 'M10',
  title: 'a worker stalls in its transaction: its locks are freed, another records, the late COMMIT and ack do no harm',
  alone: true,
  async run(context) {
    const { stack, random } = context;
    const [near, far] = [await context.proxy('mysql'), await context.proxy('mysql')];
    const [lateWire, otherWire] = [new MysqlWire(near.proxy), new MysqlWire(far.proxy)];
    const {
      worker: late,
      saleId,
      buyers,
    } = await startSystem(
      context,
      { stock: 100_000 },
      { worker: { ...near.env, WORKER_LOOPS: '1' }, keeper: NO_REDRIVE },
    );
    await buyers.rush(userIds(random.whole(3, 8), 'first-'), 8, { tries: 20 });
    await context.expectInvariants(saleId);

    const statement = random.pick([INSERT_ORDERS, RAISE_SOLD]);
    const ofSale = new RegExp(`\\b${saleId}\\b`);
    lateWire.onStatement = (text) => {
      if (text.startsWith(statement) && ofSale.test(text)) {
        late.signal('SIGSTOP'); // once the statement has been sent, so that its transaction stays open
        lateWire.onStatement = null;
      }
      return true;
    };
    const caught = userIds(random.whole(3, 8), 'caught-');
    await buyers.rush(caught, 8, { tries: 20 });
    await context.observed(`the worker was stopped after its ${statement}`, () => isStopped(late.pid));
    const stoppedMs = performance.now();
    const other = await context.start('worker', { env: { ...far.env, ...PATIENT } });
    const load = buyers.startLoad({ parallel: 8, pauseMs: random.whole(80, 160), tries: 1 });
    await context.observed('the other worker waited for its locks (1205)', () => otherWire.count(LOCK_WAIT) > 0);
    await buyers.untilAccepted(50, 'purchases are accepted all the same');

    const areRecorded = async (): Promise<boolean> => (await rowsOf(stack, saleId, caught)) === caught.length;
    await context.until('the other worker records the batch', areRecorded);
    const stalledMs = Math.round(performance.now() - stoppedMs);
    await context.observed(`it was stopped for ${stalledMs} ms all the while`, () => isStopped(late.pid));
    expectAtLeast(stalledMs, INVISIBLE_MS, 'ms that the worker was stopped');

    late.signal('SIGCONT');
    context.faultEnded();
    const foundLate = () => readMetric(late, 'seckill_deliveries_total{verdict="already_recorded"}');
    await context.observed('it went on and found its batch recorded', async () => (await foundLate()) > 0);
    await load.stop();
    await expectRecordedOnce(context, buyers);
    expectTrue(late.running && other.running, 'both workers go on');
  },
};

const SLOW_STOCK = 300;
const SLOWER = 10;
const AFTER_MS = 3000;
/** A batch that has waited for 8 times AFTER_MS was published again at 1, 2, 4 and 8 times that. */
const TRIES_SEEN = 4;
/** An interval starts a moment before the line of the log is written. */
const LOG_LAG_MS = 100;

/** Batch id → ms before each of its re-drives: since it was deducted, then from line to line of the log. */
function intervalsOf({ log }: Program): Map<string, number[]> {
  const intervals = new Map<string, number[]>();
  const loggedMs = new Map<string, number>();
  for (const line of log.split('\n')) {
    if (!line.includes('batch published again')) continue;
    const { batchId, ageMs, time } = JSON.parse(line) as { batchId: string; ageMs: number; time: string };
    const nowMs = Date.parse(time);
    const beforeMs = loggedMs.get(batchId);
    intervals.set(batchId, [...(intervals.get(batchId) ?? []), beforeMs === undefined ? ageMs : nowMs - beforeMs]);
    loggedMs.set(batchId, nowMs);
  }
  return intervals;
}

/** The first two are at least AFTER_MS, each later one twice the least of the one before. */
function expectGrowing(intervals: ReadonlyMap<string, readonly number[]>): void {
  for (const [batchId, ofBatch] of intervals) {
    for (const [i, intervalMs] of ofBatch.entries()) {
      const leastMs = AFTER_MS * 2 ** Math.max(0, i - 1) - LOG_LAG_MS;
      expectAtLeast(intervalMs, leastMs, `ms before re-drive ${i + 1} of batch ${batchId}`);
    }
  }
}

const TOO_SLOW: Scenario = {
  name: 'M11',
  title: 'a worker ten times too slow: 202 until the stock is held, then sold_out; re-drives at growing intervals',
  alone: true,
  async run(context) {
    const { stack, random } = context;
    const { proxy, env } = await context.proxy('mysql');
    const oneByOne = { WORKER_LOOPS: '1', WORKER_RECEIVE_MAX: '1' }; // as with a slow database
    const [api, keeper] = await Promise.all([
      context.start('api'),
      context.start('keeper', { env: { REDRIVE_AFTER_MS: String(AFTER_MS), KEEPER_EVERY_MS: '200' } }),
      context.start('worker', { env: { ...env, ...oneByOne } }),
    ]);
    const { saleId } = await context.openSale({ stock: SLOW_STOCK });
    const buyers = context.buyers(saleId, [api]);
    const { opLog } = buyers;
    await buyers.rush(userIds(5, 'first-'), 5, { tries: 20 });
    await context.expectInvariants(saleId);
    const before = { rows: await rowsOf(stack, saleId), ok: opLog.count('ok') };

    proxy.replyDelayMs = random.whole(600, 900);
    const load = buyers.startLoad({ parallel: 8, pauseMs: random.whole(200, 300), tries: 1 });
    const triedOften = (): boolean => [...intervalsOf(keeper).values()].some(({ length }) => length >= TRIES_SEEN);
    await context.observed(`a batch was published again ${TRIES_SEEN} times`, triedOften);
    const recorded = (await rowsOf(stack, saleId)) - before.rows;
    const accepted = opLog.count('ok') - before.ok;
    expectAtLeast(accepted, SLOWER * recorded, `purchases accepted while ${recorded} were recorded`);
    await context.until('the stock is held', () => opLog.count('ok') === SLOW_STOCK);
    const late = await buyers.buy('late');
    expectEqual([late?.status, late?.json.code], [409, 'sold_out'], 'status and code of the next answer');
    await load.stop();

    proxy.replyDelayMs = 0;
    await context.start('worker'); // receives many at a time again
    context.faultEnded();
    await expectRecordedOnce(context, buyers);
    expectEqual(opLog.count('ok'), SLOW_STOCK, 'accepted purchases: the stock');
    const intervals = intervalsOf(keeper);
    expectGrowing(intervals);
    const redriven = [...intervals.values()].reduce((sum, { length }) => sum + length, 0);
    const counted = await readMetric(keeper, 'seckill_redriven_batches_total');
    expectEqual(counted, redriven, 're-drives that the keeper counted, and those in its log');
  },
};

export const WORKERS_SCENARIOS: readonly Scenario[] = [DEATHS, STALLED, TOO_SLOW];
