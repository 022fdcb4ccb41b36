import { homeBucket } from '../../../src/core/sale.js';
import { wordOf } from '../harness/answers.js';
import { userIds } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectFields } from '../harness/expect.js';
import type { Program } from '../harness/programs.js';
import type { Row } from '../row.js';

// G12: units that move between buckets, and processes that die while they move them.

const BUCKETS = 8;
const STOCK = 10_000;
/** One victim each: the first sell what their buyers' bucket has, the others need units of other buckets. */
const ROUNDS = 10;
const LATE_BUYERS = 200;
const DEATHS_MIN = 3;
/** Steps of a transfer that a process may die behind. */
const POINTS = ['after_transfer_out', 'after_transfer_in'] as const;

/** Most of them belong to one bucket, so that its units are soon gone. */
function crowd(count: number): string[] {
  const hot = userIds(count * BUCKETS, 'hot').filter((userId) => homeBucket(userId, BUCKETS) === 3);
  const isHot = (at: number): boolean => at % 4 !== 0;
  return userIds(count).map((userId, at) => (isHot(at) ? (hot[at] ?? userId) : userId));
}

/** Kills an api that its fail point has left alive. @returns whether it died in a transfer */
async function killed(victim: Program): Promise<boolean> {
  const diedThere = !victim.running && victim.log.includes('"failPoint"');
  if (victim.running) await victim.crash();
  return diedThere;
}

const TRANSFERS: Row = {
  id: 'G12',
  title: 'an api is killed between lend, borrow and confirm, again and again: 8 buckets sell each unit once, and all',
  ...{ fast: false, alone: true }, // the broker would ask the dead about half messages of rows beside it
  timeoutMs: 420_000, // 10,000 purchases, and an api started for each of ten rounds
  healMaxMs: 120_000, // 10,000 orders are written meanwhile
  async run(arena) {
    const [{ saleId }, api] = await Promise.all([
      arena.openSale({ stock: STOCK, buckets: BUCKETS }),
      arena.start('api'),
      arena.start('worker'),
      arena.start('keeper'),
    ]);
    let victim = api;
    const buyers = arena.buyers(saleId, () => [victim.running ? victim : api]);
    const users = arena.random.shuffled(crowd(STOCK));
    const size = STOCK / ROUNDS;
    let deaths = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const some = users.slice(round * size, (round + 1) * size);
      victim = await arena.start('api', { failPoint: POINTS[round % POINTS.length] });
      await buyers.rush(some, 64, { tries: 30 });
      if (await killed(victim)) deaths++;
    }
    await arena.bite(`an api died in a transfer, ${deaths} times`, () => deaths >= DEATHS_MIN);
    arena.faultEnded();
    await buyers.askAgain();
    expectEqual(buyers.opLog.count('ok'), STOCK, 'buyers who have a unit');

    const late = await buyers.rush(userIds(LATE_BUYERS, 'late'), 16, { tries: 30 });
    const words = new Set(late.map(wordOf));
    expectEqual([...words], ['sold_out'], 'what everybody hears after the last unit');
    expectAtLeast(late.length, LATE_BUYERS, 'buyers who came late');
    const sold = { rows: STOCK, sold: STOCK, unitsLeft: 0, inTransit: 0, failedRows: 0, oversold: 0, lost: 0 };
    expectFields(await arena.rest(saleId), sold, 'every unit once');
  },
};

export const BUCKET_ROWS: readonly Row[] = [TRANSFERS];
