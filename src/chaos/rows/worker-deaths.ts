import type { Arena } from '../arena.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectFields } from '../harness/expect.js';
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
  'worker_after_settle',
  'worker_after_commit',
  'worker_before_commit',
  'worker_after_insert',
  'worker_after_receive',
] as const;
/** Points behind the COMMIT. */
const LEAVES_ROWS: readonly string[] = ['worker_after_commit', 'worker_after_settle'];
const WORKERS_MAX = 4;

/** What a worker left behind that was killed at a fail point. */
interface Death {
  readonly point: string;
  readonly saleId: string;
  readonly buyers: Buyers;
  readonly rows: number;
  readonly pending: number;
}

async function killAt(arena: Arena, api: Program, point: string): Promise<Death> {
  const { stack } = arena;
  const { saleId } = await arena.openSale({ stock: STOCK });
  const buyers = arena.buyers(saleId, [api]);
  for (const answer of await buyers.rush(BUYERS, BUYERS.length)) expectEqual(answer?.status, 202, 'the purchase');
  for (let workers = 1; ; workers++) {
    const worker = await arena.start('worker', { failPoint: point });
    await arena.diedAt(worker, point, 30_000);
    const rows = await rowsOf(stack, saleId);
    const pending = await stack.audit.ledger.pendingCount({ saleId, bucket: 0 });
    // A message that an earlier row has left may be what killed it; then ours is there for the next worker.
    const ours = rows > 0 || !LEAVES_ROWS.includes(point);
    if (ours || workers === WORKERS_MAX) return { point, saleId, buyers, rows, pending };
  }
}

/** What each death must have left, and that its message came again and was recorded once. */
async function expectRecordedOnce(arena: Arena, { point, saleId, rows, pending }: Death): Promise<void> {
  if (LEAVES_ROWS.includes(point)) expectAtLeast(rows, 1, `rows after ${point}`);
  else expectEqual(rows, 0, `rows after ${point}: no half-recorded batch`);
  if (point !== 'worker_after_settle') expectAtLeast(pending, 1, `batches not settled after ${point}`);
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
      const api = await arena.start('api');
      const deaths: Death[] = [];
      for (const point of POINTS) deaths.push(await killAt(arena, api, point));
      await Promise.all([arena.start('worker'), arena.start('keeper', { env: NO_REDRIVE })]);
      arena.faultEnded();
      await Promise.all(deaths.map((death) => expectRecordedOnce(arena, death)));
    },
  },
];
