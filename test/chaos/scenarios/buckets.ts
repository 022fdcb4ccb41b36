import { homeBucket } from '../../../src/core/bucket.js';
import { outcomeOf, userIds, type Buyers } from '../harness/buyers.js';
import { expectAtLeast, expectEqual } from '../harness/expect.js';
import { ask, type Answer } from '../harness/http.js';
import type { Program } from '../harness/programs.js';
import type { Scenario } from '../scenario.js';

// G12 and G13: units move between buckets, a sale gets more buckets, and processes die in between.

const ALL_SOLD = { unitsLeft: 0, inTransit: 0, failedRows: 0, oversold: 0, lost: 0 };

const BUCKETS = 8;
const STOCK = 10_000;
/** Each round kills an api: first one that sells units of its buyers' own buckets, later of other buckets. */
const ROUNDS = 10;
const LATE_BUYERS = 200;
const DEATHS_MIN = 3;
/** Steps of a transfer after which a process may die. */
const TRANSFER_POINTS = ['after_transfer_out', 'after_transfer_in'] as const;

/** Three out of four buyers belong to one bucket, so that its units soon run out. */
function unevenBuyers(count: number): string[] {
  const hot = userIds(count * BUCKETS, 'hot').filter((userId) => homeBucket(userId, BUCKETS) === 3);
  return userIds(count).map((userId, nth) => (nth % 4 === 0 ? userId : (hot[nth] ?? userId)));
}

const TRANSFERS: Scenario = {
  name: 'G12',
  title: 'ten apis are killed between the steps of a transfer: 8 buckets sell every unit exactly once',
  alone: true, // the broker would ask dead apis about half messages of parallel scenarios
  timeoutMs: 420_000, // 10,000 purchases, and an api started for each of ten rounds
  healMaxMs: 120_000, // 10,000 orders are written at the same time
  async run(context) {
    const [{ saleId }, api] = await Promise.all([
      context.openSale({ stock: STOCK, buckets: BUCKETS }),
      context.start('api'),
      context.start('worker'),
      context.start('keeper'),
    ]);
    let victim = api;
    const buyers = context.buyers(saleId, () => [victim.running ? victim : api]);
    const users = context.random.shuffled(unevenBuyers(STOCK));
    const size = STOCK / ROUNDS;
    let deaths = 0;
    for (let round = 0; round < ROUNDS; round++) {
      victim = await context.start('api', { failPoint: TRANSFER_POINTS[round % TRANSFER_POINTS.length] });
      await buyers.rush(users.slice(round * size, (round + 1) * size), 64, { tries: 30 });
      if (victim.running) await victim.crash();
      else if (victim.log.includes('"failPoint"')) deaths++;
    }
    await context.observed(`an api died in a transfer, ${deaths} times`, () => deaths >= DEATHS_MIN);
    context.faultEnded();
    await buyers.retryUnknown();
    expectEqual(buyers.opLog.count('ok'), STOCK, 'buyers who have a unit');

    const late = await buyers.rush(userIds(LATE_BUYERS, 'late'), 16, { tries: 30 });
    expectEqual([...new Set(late.map(outcomeOf))], ['sold_out'], 'answers after the last unit');
    expectAtLeast(late.length, LATE_BUYERS, 'buyers who came late');
    await context.expectFigures(saleId, { rows: STOCK, sold: STOCK, ...ALL_SOLD }, 'every unit once');
  },
};

const RESHARD_STOCK = 2_000;
const PARALLEL = 32;
/** A sale is locked until the keeper has repaired it, and every buyer waits for that. */
const TRIES = 100;
/** The number of buckets into which an api reshards the sale, and where the api dies. */
const DEATHS = [
  { buckets: 2, point: 'repair_after_lock' },
  { buckets: 4, point: 'repair_after_epoch' },
  { buckets: 8, point: 'repair_after_stock:1' },
  { buckets: 16, point: 'repair_after_stock:12' },
] as const;
const LAST_BUCKETS = 32;
/** The keeper takes over soon. A lease must be longer than one statement of MySQL. */
const SHORT_LEASE = { REPAIR_LEASE_MS: '2000', MYSQL_QUERY_TIMEOUT_MS: '1500' };

const reshard = (buyers: Buyers, { operatorsUrl }: Program, buckets: number): Promise<Answer | null> =>
  ask(`${operatorsUrl}/admin/v1/sales/${buyers.saleId}/reshard`, {
    method: 'POST',
    token: buyers.token('chaos', ['admin']),
    body: { buckets },
    timeoutMs: 30_000,
  }).catch(() => null);

const RESHARDED: Scenario = {
  name: 'G13',
  title: 'each api that reshards a selling sale is killed: every unit is sold exactly once',
  timeoutMs: 420_000, // in four of five rounds, a sale waits for its repair
  healMaxMs: 120_000,
  async run(context) {
    const [{ api }, { saleId }] = await Promise.all([
      context.healthyPrograms(),
      context.openSale({ stock: RESHARD_STOCK }),
    ]);
    const apis = [api];
    const buyers = context.buyers(saleId, () => apis);
    const users = userIds(RESHARD_STOCK);
    const size = RESHARD_STOCK / (DEATHS.length + 1);
    for (const [round, { buckets, point }] of DEATHS.entries()) {
      const victim = await context.start('api', { failPoint: point, env: SHORT_LEASE });
      apis.push(victim);
      const rush = buyers.rush(users.slice(round * size, (round + 1) * size), PARALLEL, { tries: TRIES });
      await reshard(buyers, victim, buckets);
      await context.diedAt(victim, point.split(':')[0] as string);
      apis.splice(apis.indexOf(victim), 1);
      await rush;
    }
    context.faultEnded();
    const rush = buyers.rush(users.slice(DEATHS.length * size), PARALLEL, { tries: TRIES });
    const answer = await reshard(buyers, api, LAST_BUCKETS);
    expectEqual(answer?.json['buckets'], LAST_BUCKETS, `buckets, as the api says (${answer?.text ?? 'no answer'})`);
    await rush;
    await buyers.retryUnknown();
    expectEqual(buyers.opLog.count('ok'), RESHARD_STOCK, 'buyers who have a unit');
    await context.expectFigures(saleId, { rows: RESHARD_STOCK, sold: RESHARD_STOCK, ...ALL_SOLD }, 'every unit once');
  },
};

export const BUCKETS_SCENARIOS: readonly Scenario[] = [TRANSFERS, RESHARDED];
