import { homeBucket } from '../../domain/sale.js';
import type { Arena } from '../arena.js';
import { wordOf } from '../harness/answers.js';
import { userIds } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectFields } from '../harness/expect.js';
import type { Program } from '../harness/programs.js';
import type { Row } from '../row.js';

// G12: units that move between buckets, and processes that die while they move them.

const BUCKETS = 8;
const STOCK = 10_000;
/** One victim each: the first sells what its buyers' bucket has, the others need units of other buckets. */
const ROUNDS = 10;
const LATE_BUYERS = 200;
const DEATHS_MIN = 3;
/** Steps of a transfer that a process may die behind. */
const POINTS = ['after_lend', 'after_borrow'] as const;

/** Most of them belong to one bucket, so that its units are soon gone. */
function crowd(count: number): string[] {
  const hot = userIds(count * BUCKETS, 'hot').filter((userId) => homeBucket(userId, BUCKETS) === 3);
  const isHot = (at: number): boolean => at % 4 !== 0;
  return userIds(count).map((userId, at) => (isHot(at) ? (hot[at] ?? userId) : userId));
}

/** A round of buyers at an api that dies in a transfer, and at one that lives. @returns whether it died there */
async function killInRound(arena: Arena, apis: Program[], point: string, buy: () => Promise<void>): Promise<boolean> {
  const victim = await arena.start('api', { failPoint: point });
  apis.push(victim);
  await buy();
  const diedThere = !victim.running && victim.log.includes('"failPoint"');
  if (victim.running) await victim.crash();
  apis.splice(apis.indexOf(victim), 1);
  return diedThere;
}

const TRANSFERS: Row = {
  id: 'G12',
  title: 'an api is killed between lend, borrow and confirm, again and again: 8 buckets sell each unit once, and all',
  ...{ fast: false, alone: false },
  timeoutMs: 420_000, // 10,000 purchases, and an api started for each of ten rounds
  healMaxMs: 120_000, // 10,000 orders are written meanwhile
  async run(arena) {
    const [{ api }, { saleId }] = await Promise.all([
      arena.survivors(),
      arena.openSale({ stock: STOCK, buckets: BUCKETS }),
    ]);
    const apis = [api];
    const buyers = arena.buyers(saleId, () => apis);
    const users = arena.random.shuffled(crowd(STOCK));
    const size = STOCK / ROUNDS;
    let deaths = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const some = users.slice(round * size, (round + 1) * size);
      const point = `${POINTS[round % POINTS.length]}:${arena.random.whole(1, 2)}`;
      const buy = async (): Promise<void> => void (await buyers.rush(some, 64, { tries: 30 }));
      if (await killInRound(arena, apis, point, buy)) deaths++;
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
