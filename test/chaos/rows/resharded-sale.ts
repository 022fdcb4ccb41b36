import type { Arena } from '../arena.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { expectEqual, expectFields } from '../harness/expect.js';
import { ask, type Answer } from '../harness/http-client.js';
import type { Program } from '../harness/programs.js';
import type { Row } from '../row.js';

// G13: a sale is split into more buckets while it sells, and whoever splits it dies.

const STOCK = 2_000;
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
    const [{ api }, { saleId }] = await Promise.all([arena.survivors(), arena.openSale({ stock: STOCK })]);
    const apis = [api];
    const buyers = arena.buyers(saleId, () => apis);
    const users = userIds(STOCK);
    const size = STOCK / (DEATHS.length + 1);
    for (const [round, death] of DEATHS.entries()) {
      await dieInRound(arena, buyers, apis, death, users.slice(round * size, (round + 1) * size));
    }
    arena.faultEnded();
    const rush = buyers.rush(users.slice(DEATHS.length * size), PARALLEL, { tries: TRIES });
    const answer = await reshard(buyers, api, LAST_BUCKETS);
    expectEqual(answer?.json['buckets'], LAST_BUCKETS, `buckets, as the api says (${answer?.text ?? 'no answer'})`);
    await rush;
    await buyers.askAgain();
    expectEqual(buyers.opLog.count('ok'), STOCK, 'buyers who have a unit');
    const sold = { rows: STOCK, sold: STOCK, unitsLeft: 0, inTransit: 0, failedRows: 0, oversold: 0, lost: 0 };
    expectFields(await arena.rest(saleId), sold, 'every unit once');
  },
};

export const RESHARD_ROWS: readonly Row[] = [RESHARDED];
