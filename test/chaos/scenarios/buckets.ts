import { homeBucket } from '../../../src/core/sale.js';
import type { Arena } from '../context.js';
import { type Buyers, userIds, wordOf } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectFields } from '../harness/expect.js';
import { type Answer, ask } from '../harness/http.js';
import type { Program } from '../harness/programs.js';
import type { Row } from '../scenario.js';

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

// G13: a sale is split into more buckets while it sells, and whoever splits it dies.

const RESHARD_STOCK = 2_000;
const PARALLEL = 32;
/** A sale is shut until the keeper has repaired it, and everybody in the queue waits for that. */
const TRIES = 100;
/** Where the api dies that scatters it, and into how many buckets. */
const DEATHS = [
  { buckets: 2, point: 'repair_after_lock' },
  { buckets: 4, point: 'repair_after_epoch' },
  { buckets: 8, point: 'repair_after_stock:1' },
  { buckets: 16, point: 'repair_after_stock:12' },
] as const;
const LAST_BUCKETS = 32;
/** The keeper takes over soon; a lease has to be longer than one statement of MySQL. */
const SOON = { REPAIR_LEASE_MS: '2000', MYSQL_QUERY_TIMEOUT_MS: '1500' };

const reshard = (buyers: Buyers, { url }: Program, buckets: number): Promise<Answer | null> =>
  ask(`${url}/admin/v1/sales/${buyers.saleId}/reshard`, {
    ...{ method: 'POST', token: buyers.token('chaos', ['admin']), body: { buckets }, timeoutMs: 30_000 },
  }).catch(() => null);

/** Buyers press while an api scatters their sale, and dies of it. */
async function dieInRound(
  arena: Arena,
  buyers: Buyers,
  apis: Program[],
  { buckets, point }: (typeof DEATHS)[number],
  users: readonly string[],
): Promise<void> {
  const victim = await arena.start('api', { failPoint: point, env: SOON });
  apis.push(victim);
  const rush = buyers.rush(users, PARALLEL, { tries: TRIES });
  await reshard(buyers, victim, buckets);
  await arena.diedAt(victim, point.split(':')[0] as string);
  apis.splice(apis.indexOf(victim), 1);
  await rush;
}

const RESHARDED: Row = {
  id: 'G13',
  title: 'a sale is scattered while it sells, and whoever does it dies on the way: each unit is sold once, and all',
  ...{ fast: false, alone: false },
  timeoutMs: 420_000, // five rounds, in four of which a sale waits for its repair
  healMaxMs: 120_000,
  async run(arena) {
    const [{ api }, { saleId }] = await Promise.all([arena.survivors(), arena.openSale({ stock: RESHARD_STOCK })]);
    const apis = [api];
    const buyers = arena.buyers(saleId, () => apis);
    const users = userIds(RESHARD_STOCK);
    const size = RESHARD_STOCK / (DEATHS.length + 1);
    for (const [round, death] of DEATHS.entries()) {
      await dieInRound(arena, buyers, apis, death, users.slice(round * size, (round + 1) * size));
    }
    arena.faultEnded();
    const rush = buyers.rush(users.slice(DEATHS.length * size), PARALLEL, { tries: TRIES });
    const answer = await reshard(buyers, api, LAST_BUCKETS);
    expectEqual(answer?.json['buckets'], LAST_BUCKETS, `buckets, as the api says (${answer?.text ?? 'no answer'})`);
    await rush;
    await buyers.askAgain();
    expectEqual(buyers.opLog.count('ok'), RESHARD_STOCK, 'buyers who have a unit');
    const sold = {
      rows: RESHARD_STOCK,
      sold: RESHARD_STOCK,
      unitsLeft: 0,
      inTransit: 0,
      failedRows: 0,
      oversold: 0,
      lost: 0,
    };
    expectFields(await arena.rest(saleId), sold, 'every unit once');
  },
};

export const BUCKETS_SCENARIOS: readonly Row[] = [TRANSFERS, RESHARDED];
