import { isStopped } from '../../../deploy/local/stack/processes.js';
import type { Arena } from '../context.js';
import { drainDeliveries } from '../harness/broker.js';
import { type Buyers, userIds } from '../harness/buyers.js';
import { expectAtLeast, expectBelow, expectEqual, expectFields, expectTrue } from '../harness/expect.js';
import { deadLettersOf, recordedTimes, rowsOf } from '../harness/orders.js';
import { type Program, readMetric } from '../harness/programs.js';
import { MysqlWire } from '../harness/traffic.js';
import type { Row } from '../scenario.js';

// M9 and G11: a worker dies between two steps of recording.

/** What comes again must come from the broker. */
const NO_REDRIVE = { REDRIVE_AFTER_MS: '3600000' };
const STOCK = 20;
const BUYERS = userIds(5);
/**
 * One after the other, so that each worker gets the batch of its own sale; the last one receives a message that is left.
 */
const POINTS = [
  'worker_after_mark_recorded',
  'worker_after_commit',
  'worker_before_commit',
  'worker_after_insert',
  'worker_after_receive',
] as const;
/** Points behind the COMMIT. */
const LEAVES_ROWS: readonly string[] = ['worker_after_commit', 'worker_after_mark_recorded'];
/** Each death leaves messages that come again, and may be what kills the next worker. */
const WORKERS_MAX = 12;

/** What a worker left behind that was killed at a fail point. */
interface Death {
  readonly point: string;
  readonly saleId: string;
  readonly buyers: Buyers;
  readonly rows: number;
  readonly pending: number;
}

/** What reached a worker, and what it wrote, as text. */
class Passed {
  readonly env: Readonly<Record<string, string>>;
  #delivered = '';
  #inserted = '';

  private constructor(env: Readonly<Record<string, string>>) {
    this.env = env;
  }

  static async by(arena: Arena): Promise<Passed> {
    const [broker, mysql] = [await arena.proxy('broker'), await arena.proxy('mysql')];
    const passed = new Passed({ ...broker.env, ...mysql.env });
    broker.proxy.meddle = (what, chunk) => {
      if (what === 'replies') passed.#delivered += chunk.toString('latin1');
      return true;
    };
    mysql.proxy.meddle = (what, chunk) => {
      if (what === 'requests' && chunk.includes('INSERT INTO orders')) passed.#inserted += chunk.toString('latin1');
      return true;
    };
    return passed;
  }

  /** Before the next worker starts. */
  forget(): void {
    [this.#delivered, this.#inserted] = ['', ''];
  }

  /** Whether the worker that died before its COMMIT had one of these batches at that point. */
  has(batchIds: readonly string[], point: string): boolean {
    const text = point === 'worker_after_receive' ? this.#delivered : this.#inserted;
    return batchIds.some((batchId) => text.includes(batchId));
  }
}

async function killAt(arena: Arena, api: Program, passed: Passed, point: string): Promise<Death> {
  const { stack } = arena;
  const { saleId } = await arena.openSale({ stock: STOCK });
  const buyers = arena.buyers(saleId, [api]);
  for (const answer of await buyers.rush(BUYERS, BUYERS.length)) expectEqual(answer?.status, 202, 'the purchase');
  const { pending: batchIds = [] } = (await stack.audit.store.snapshot({ saleId, bucket: 0 })) ?? {};
  for (let workers = 1; ; workers++) {
    passed.forget();
    const worker = await arena.start('worker', { env: passed.env, failPoint: point });
    await arena.diedAt(worker, point, 30_000);
    const rows = await rowsOf(stack, saleId);
    const pending = await stack.audit.store.pendingCount({ saleId, bucket: 0 });
    // A message that an earlier row has left may be what killed it; then ours is there for the next worker.
    const ours = LEAVES_ROWS.includes(point) ? rows > 0 : passed.has(batchIds, point);
    if (ours) return { point, saleId, buyers, rows, pending };
    expectBelow(workers, WORKERS_MAX, `workers that died at ${point} of other messages`);
  }
}

/** What each death must have left, and that its message came again and was recorded once. */
async function expectRecordedOnce(arena: Arena, { point, saleId, rows, pending }: Death): Promise<void> {
  if (LEAVES_ROWS.includes(point)) expectAtLeast(rows, 1, `rows after ${point}`);
  else expectEqual(rows, 0, `rows after ${point}: no half-recorded batch`);
  if (point !== 'worker_after_mark_recorded') expectAtLeast(pending, 1, `batches not settled after ${point}`);
  const count = BUYERS.length;
  const figures = await arena.rest(saleId);
  expectFields(figures, { rows: count, sold: count, unitsLeft: STOCK - count, failedRows: 0 }, point);
  expectEqual(await recordedTimes(arena.stack, saleId), 1, `rows of the outbox per batch after ${point}`);
}

const WORKER_DEATH_ROWS: readonly Row[] = [
  {
    id: 'M9',
    also: ['G11'],
    title: 'a worker dies between any two steps: no row or all rows, its message comes again, recorded once',
    ...{ fast: true, alone: true },
    async run(arena) {
      await drainDeliveries(arena);
      const [api, passed] = await Promise.all([arena.start('api'), Passed.by(arena)]);
      const deaths: Death[] = [];
      for (const point of POINTS) deaths.push(await killAt(arena, api, passed, point));
      await Promise.all([arena.start('worker'), arena.start('keeper', { env: NO_REDRIVE })]);
      arena.faultEnded();
      await Promise.all(deaths.map((death) => expectRecordedOnce(arena, death)));
    },
  },
];

// M10: a worker that stalls in its transaction.

const INSERT_ORDERS = 'INSERT INTO orders';
const RAISE_SOLD = 'UPDATE sales SET sold';
const LOCK_WAIT = 1205;
/** What a delivery is ours for, WORKER_INVISIBLE_MS of the harness. */
const INVISIBLE_MS = 10_000;
/** The server frees the rows of a silent connection after 20 s; then the batch must come again and be written. */
const RECORDED_WITHIN_MS = 45_000;
const ONE_LOOP = { WORKER_LOOPS: '1' };
/** A statement that waits for a lock for 5 s is to hear so from the server, not from our own time-out. */
const PATIENT = { MYSQL_QUERY_TIMEOUT_MS: '9000', WORKER_INVISIBLE_MS: '20000' };
/** What heals must not be the re-drive. */
const LATE_REDRIVE = { REDRIVE_AFTER_MS: '600000' };

/** Whoever heard yes has an order, each batch was recorded once, and no message used its retries up. */
async function expectEachHasAnOrder(arena: Arena, saleId: string, buyers: Buyers): Promise<void> {
  await buyers.askAgain();
  const figures = await arena.rest(saleId);
  expectFields(figures, { rows: buyers.opLog.count('ok'), failedRows: 0 }, 'rows of those who heard yes');
  expectEqual(await recordedTimes(arena.stack, saleId), 1, 'how often a batch was recorded');
  expectEqual(await deadLettersOf(arena.stack, saleId), 0, 'dead letters');
}

/** Stops a worker with SIGSTOP once this statement of the sale has gone out: its transaction stays open. */
function stallAt(wire: MysqlWire, worker: Program, statement: string, saleId: string): void {
  const ofSale = new RegExp(`\\b${saleId}\\b`);
  wire.onStatement = (text) => {
    if (text.startsWith(statement) && ofSale.test(text)) {
      worker.signal('SIGSTOP');
      wire.onStatement = null;
    }
    return true;
  };
}

const STALLED: Row = {
  id: 'M10',
  title:
    'a worker stopped in its transaction: its locks are freed, another one records, its late COMMIT and ack do no harm',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack, random } = arena;
    const [near, far] = [await arena.proxy('mysql'), await arena.proxy('mysql')];
    const [lateWire, otherWire] = [new MysqlWire(near.proxy), new MysqlWire(far.proxy)];
    const [api, late] = await Promise.all([
      arena.start('api'),
      arena.start('worker', { env: { ...near.env, ...ONE_LOOP } }),
      arena.start('keeper', { env: LATE_REDRIVE }),
    ]);
    const { saleId } = await arena.openSale({ stock: 100_000 });
    const buyers = arena.buyers(saleId, [api]);
    await buyers.rush(userIds(random.whole(3, 8), 'first-'), 8, { tries: 20 });
    await arena.rest(saleId);

    const statement = random.pick([INSERT_ORDERS, RAISE_SOLD]);
    stallAt(lateWire, late, statement, saleId);
    const caught = userIds(random.whole(3, 8), 'caught-');
    await buyers.rush(caught, 8, { tries: 20 });
    await arena.bite(`the worker was stopped behind its ${statement}`, () => isStopped(late.pid));
    const stoppedMs = performance.now();
    const other = await arena.start('worker', { env: { ...far.env, ...PATIENT } });
    const load = buyers.startLoad({ parallel: 8, pauseMs: random.whole(80, 160), tries: 1 });
    await arena.bite('its locks were in the way of the other worker (1205)', () => otherWire.count(LOCK_WAIT) > 0);
    const okBefore = buyers.opLog.count('ok');
    await arena.until('purchases are accepted all the same', () => buyers.opLog.count('ok') > okBefore + 50);

    const recorded = async (): Promise<boolean> => (await rowsOf(stack, saleId, caught)) === caught.length;
    await arena.until('the other worker records what was caught', recorded, RECORDED_WITHIN_MS);
    const stalledMs = Math.round(performance.now() - stoppedMs);
    await arena.bite(`it was stopped for ${stalledMs} ms all the while`, () => isStopped(late.pid));
    expectAtLeast(stalledMs, INVISIBLE_MS, 'ms that the worker was stopped');

    late.signal('SIGCONT');
    arena.faultEnded();
    const foundLate = () => readMetric(late, 'seckill_deliveries_total{verdict="already_recorded"}');
    await arena.bite('it woke up and found its batch recorded', async () => (await foundLate()) > 0);
    await load.stop();
    await expectEachHasAnOrder(arena, saleId, buyers);
    expectTrue(late.running && other.running, 'both workers go on');
  },
};

// M11: a worker that is far too slow.

const SLOW_STOCK = 300;
const SLOWER = 10;
/** One batch after the other, none beside it: what a slow database makes of a worker. */
const ONE_BY_ONE = { WORKER_LOOPS: '1', WORKER_RECEIVE_MAX: '1' };
const AFTER_MS = 3000;
const QUICK_REDRIVE = { REDRIVE_AFTER_MS: String(AFTER_MS), KEEPER_EVERY_MS: '200' };
/** A batch that has waited for 8 times AFTER_MS was published again at 1, 2, 4 and 8 times that. */
const TRIES_SEEN = 4;
/** A pause begins a moment before the line of the log is written. */
const LOG_LAG_MS = 100;

/** Whoever heard yes has an order, each batch was recorded once, and no message used its retries up. */
async function expectStockSold(arena: Arena, saleId: string, buyers: Buyers): Promise<void> {
  await buyers.askAgain();
  const figures = await arena.rest(saleId);
  expectEqual(buyers.opLog.count('ok'), SLOW_STOCK, 'buyers who heard yes: the stock');
  expectFields(figures, { rows: SLOW_STOCK, failedRows: 0 }, 'rows of those who heard yes');
  expectEqual(await recordedTimes(arena.stack, saleId), 1, 'how often a batch was recorded');
  expectEqual(await deadLettersOf(arena.stack, saleId), 0, 'dead letters');
}

/** Batch id → pauses before each of its re-drives, in ms: since it was deducted, then from line to line of the log. */
function pausesOf({ log }: Program): Map<string, number[]> {
  const pauses = new Map<string, number[]>();
  const loggedMs = new Map<string, number>();
  for (const line of log.split('\n')) {
    if (!line.includes('batch published again')) continue;
    const { batchId, ageMs, time } = JSON.parse(line) as { batchId: string; ageMs: number; time: string };
    const nowMs = Date.parse(time);
    const beforeMs = loggedMs.get(batchId);
    pauses.set(batchId, [...(pauses.get(batchId) ?? []), beforeMs === undefined ? ageMs : nowMs - beforeMs]);
    loggedMs.set(batchId, nowMs);
  }
  return pauses;
}

const mostTries = (pauses: ReadonlyMap<string, readonly number[]>): number =>
  Math.max(0, ...[...pauses.values()].map(({ length }) => length));

/** The first two are AFTER_MS at least, each later one twice what the one before had to be. */
function expectGrowingPauses(pauses: ReadonlyMap<string, readonly number[]>): void {
  for (const [batchId, ofBatch] of pauses) {
    for (const [i, pauseMs] of ofBatch.entries()) {
      const leastMs = AFTER_MS * 2 ** Math.max(0, i - 1) - LOG_LAG_MS;
      expectAtLeast(pauseMs, leastMs, `ms before re-drive ${i + 1} of batch ${batchId}`);
    }
  }
}

const TOO_SLOW: Row = {
  id: 'M11',
  title:
    'a worker ten times too slow: 202s until the stock is held, then sold_out; re-drives at growing pauses, nothing lost',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack, random } = arena;
    const { proxy, env } = await arena.proxy('mysql');
    const [api, keeper] = await Promise.all([
      arena.start('api'),
      arena.start('keeper', { env: QUICK_REDRIVE }),
      arena.start('worker', { env: { ...env, ...ONE_BY_ONE } }),
    ]);
    const { saleId } = await arena.openSale({ stock: SLOW_STOCK });
    const buyers = arena.buyers(saleId, [api]);
    const { opLog } = buyers;
    await buyers.rush(userIds(5, 'first-'), 5, { tries: 20 });
    await arena.rest(saleId);
    const before = { rows: await rowsOf(stack, saleId), ok: opLog.count('ok') };

    proxy.replyDelayMs = random.whole(600, 900);
    const load = buyers.startLoad({ parallel: 8, pauseMs: random.whole(200, 300), tries: 1 });
    const triedOften = (): boolean => mostTries(pausesOf(keeper)) >= TRIES_SEEN;
    await arena.bite(`a batch was published again ${TRIES_SEEN} times`, triedOften, 60_000);
    const recorded = (await rowsOf(stack, saleId)) - before.rows;
    const accepted = opLog.count('ok') - before.ok;
    expectAtLeast(accepted, SLOWER * recorded, `purchases accepted while ${recorded} were recorded`);
    await arena.until('the stock is held', () => opLog.count('ok') === SLOW_STOCK, 60_000);
    const late = await buyers.buy('late');
    expectEqual([late?.status, late?.json.code], [409, 'sold_out'], 'status and code of the next answer');
    await load.stop();

    proxy.replyDelayMs = 0;
    await arena.start('worker'); // what waits is taken many at a time again
    arena.faultEnded();
    await expectStockSold(arena, saleId, buyers);
    const pauses = pausesOf(keeper);
    expectGrowingPauses(pauses);
    const redriven = [...pauses.values()].reduce((sum, { length }) => sum + length, 0);
    const counted = await readMetric(keeper, 'seckill_redriven_batches_total');
    expectEqual(counted, redriven, 're-drives that the keeper counted, and those that its log tells');
  },
};

export const WORKERS_SCENARIOS: readonly Row[] = [STALLED, TOO_SLOW, ...WORKER_DEATH_ROWS];
