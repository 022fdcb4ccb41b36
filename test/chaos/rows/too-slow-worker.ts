import type { Arena } from '../arena.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectFields } from '../harness/expect.js';
import { readMetric } from '../harness/metrics.js';
import { deadLettersOf, recordedTimes, rowsOf } from '../harness/orders-of-sale.js';
import type { Program } from '../harness/programs.js';
import type { Row } from '../row.js';

// M11: a worker that is far too slow.

const STOCK = 300;
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
async function expectEachHasAnOrder(arena: Arena, saleId: string, buyers: Buyers): Promise<void> {
  await buyers.askAgain();
  const figures = await arena.rest(saleId);
  expectEqual(buyers.opLog.count('ok'), STOCK, 'buyers who heard yes: the stock');
  expectFields(figures, { rows: STOCK, failedRows: 0 }, 'rows of those who heard yes');
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
    const { saleId } = await arena.openSale({ stock: STOCK });
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
    await arena.until('the stock is held', () => opLog.count('ok') === STOCK, 60_000);
    const late = await buyers.buy('late');
    expectEqual([late?.status, late?.json.code], [409, 'sold_out'], 'status and code of the next answer');
    await load.stop();

    proxy.replyDelayMs = 0;
    await arena.start('worker'); // what waits is taken many at a time again
    arena.faultEnded();
    await expectEachHasAnOrder(arena, saleId, buyers);
    const pauses = pausesOf(keeper);
    expectGrowingPauses(pauses);
    const redriven = [...pauses.values()].reduce((sum, { length }) => sum + length, 0);
    const counted = await readMetric(keeper, 'seckill_redriven_batches_total');
    expectEqual(counted, redriven, 're-drives that the keeper counted, and those that its log tells');
  },
};

export const TOO_SLOW_WORKER_ROWS: readonly Row[] = [TOO_SLOW];
