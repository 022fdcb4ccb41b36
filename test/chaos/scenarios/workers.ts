import type { ScenarioContext } from '../context.js';
import { drainDeliveries } from '../harness/broker.js';
import { userIds, isAccepted } from '../harness/buyers.js';
import { expectAtLeast, expectBelow, expectEqual, expectTrue } from '../harness/expect.js';
import { NO_REDRIVE, type Program } from '../harness/programs.js';
import { pendingBatchesOf, pendingCountOf, recordedTimes, rowsOf } from '../harness/sale-state.js';
import type { Scenario } from '../scenario.js';

// G11, M9: a worker dies between two steps of recording.

const STOCK = 20;
const BUYERS = userIds(5);
/** Workers die in turn, each with a batch of its own sale. The last worker can die of an earlier worker's message. */
const POINTS = [
  'worker_after_mark_recorded',
  'worker_after_commit',
  'worker_before_commit',
  'worker_after_insert',
  'worker_after_receive',
] as const;
/** Points after the COMMIT. */
const LEAVES_ROWS: readonly string[] = ['worker_after_commit', 'worker_after_mark_recorded'];
/** Each death leaves messages of which the next worker may die, until they are drained. */
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

  /** Must be called before the next worker starts. */
  clear(): void {
    [this.#received, this.#inserted] = ['', ''];
  }

  /** Whether a worker that died before its COMMIT had one of these batches at that point. */
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
    // the worker may have died of a message of an earlier scenario, and left ours to the next worker
    const ours = LEAVES_ROWS.includes(point) ? rows > 0 : traffic.has(batchIds, point);
    if (ours) return { point, saleId, rows, pending };
    expectBelow(workers, WORKERS_MAX, `workers that died at ${point} of other messages`);
    if (workers % WORKERS_UNTIL_DRAIN === 0) {
      await drainDeliveries(context);
      ({ saleId, batchIds } = await sell());
    }
  }
}

/** Asserts the traces of a death, and that its message is delivered again and recorded once. */
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
  title: 'a worker dies between any two steps: its message is delivered again, and its batch recorded once',
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

export const WORKERS_SCENARIOS: readonly Scenario[] = [DEATHS];
