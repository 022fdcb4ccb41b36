import type { Arena } from '../arena.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { drainDeliveries } from '../harness/drain-deliveries.js';
import { expectAtLeast, expectBelow, expectEqual, expectFields } from '../harness/expect.js';
import { recordedTimes, rowsOf } from '../harness/orders-of-sale.js';
import type { Program } from '../harness/programs.js';
import type { Row } from '../row.js';

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

export const WORKER_DEATH_ROWS: readonly Row[] = [
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
