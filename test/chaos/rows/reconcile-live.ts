import { bucketKeys } from '../../../src/redis/keys.js';
import type { Arena } from '../arena.js';
import { userIds } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectFields } from '../harness/expect.js';
import { repaired } from '../harness/lost-writes.js';
import type { Program } from '../harness/programs.js';
import { RECONCILE_ENV, reconcileSale } from '../harness/reconcile-sale.js';
import { markersOf } from '../harness/stack-hands.js';
import { leakBatch } from '../harness/stray-batch.js';
import type { Row } from '../row.js';

// C5 and C7: reconcile in a sale that sells, and after one that is over.

const OPERATOR = 'a-chaos-row';
const keysOf = (saleId: string) => bucketKeys({ saleId, bucket: 0 });

const OPEN_SALE: Row = {
  id: 'C5',
  title: 'a leak and units too many in a sale under load: found, nothing else is; the stock is set once it is paused',
  ...{ fast: false, alone: false },
  timeoutMs: 300_000,
  async run(arena) {
    const { stack, random } = arena;
    const [{ api }, { saleId }] = await Promise.all([arena.survivors(), arena.openSale({ stock: 100_000 })]);
    const added = random.whole(1, 50);
    const leaked = userIds(random.whole(1, 5), 'leaked-');
    const leaks = leaked.map((userId) => `leak ${userId}`);
    const drift = `drift -${added}`;
    await stack.redis.redis.incrby(keysOf(saleId).stock, added);
    await leakBatch(stack, saleId, leaked);
    const buyers = arena.buyers(saleId, [api]);
    const load = buyers.startLoad({ parallel: 8, pauseMs: random.whole(5, 20) });
    await arena.until('the load is on', () => buyers.opLog.count('ok') > 100, 30_000);
    for (let run = 1; run <= 3; run++) {
      const { found } = await reconcileSale(stack, api, saleId);
      expectEqual(
        found.filter((one) => one !== drift),
        leaks,
        `found by run ${run}, but for the drift`,
      );
    }
    await arena.bite('found under load', () => buyers.opLog.count('ok') > 100);
    const applied = await reconcileSale(stack, api, saleId, { apply: true });
    expectEqual(
      applied.jobs,
      leaked.map(() => 'leak compensated'),
      'jobs while the sale is open',
    );
    await load.stop();
    await arena.until(
      'the units stand still',
      async () => {
        return (await reconcileSale(stack, api, saleId, { apply: true })).found.join() === drift;
      },
      20_000,
      500,
    );

    await stack.admin.pause(saleId, OPERATOR);
    expectEqual(
      (await reconcileSale(stack, api, saleId, { apply: true })).jobs,
      ['drift compensated'],
      'jobs of the paused sale',
    );
    arena.faultEnded();
    expectEqual((await reconcileSale(stack, api, saleId)).found, [], 'found afterwards');
    const figures = await arena.rest(saleId);
    expectFields(figures, { rows: buyers.opLog.count('ok') + leaked.length, failedRows: 0 }, 'an order for each');
  },
};

async function closeAndTidy(arena: Arena, api: Program, saleId: string): Promise<void> {
  await arena.stack.admin.close(saleId, OPERATOR);
  const tidied = async (): Promise<boolean> => {
    await reconcileSale(arena.stack, api, saleId, { apply: true });
    return (await markersOf(arena.stack, saleId)).size === 0; // those of rows that are old enough go
  };
  await arena.until('no marker is left', tidied, 30_000, 500);
}

const MARKERS_GONE: Row = {
  id: 'C7',
  title:
    'the markers of a closed sale are removed, then Redis restarts: that is no loss; it stays closed, the books match',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack, random } = arena;
    const [api] = await Promise.all([
      arena.start('api', { env: RECONCILE_ENV }),
      arena.start('worker'),
      arena.start('keeper'),
    ]);
    const [over, other] = [await arena.openSale({ stock: 50 }), await arena.openSale({ stock: 1000 })];
    const buyers = arena.buyers(over.saleId, [api]);
    await buyers.rush(userIds(random.whole(10, 40)), 8, { tries: 20 });
    const before = await arena.rest(over.saleId);
    expectAtLeast((await markersOf(stack, over.saleId)).size, 1, 'markers before');
    await closeAndTidy(arena, api, over.saleId);

    const server = stack.servers.server('redis');
    await server.stop({ signal: 'SIGKILL' });
    await arena.bite('Redis was killed, without the markers', () => server.pid() === null);
    await server.start();
    await server.waitReady();
    arena.faultEnded();
    await arena.until('we are connected again', async () => (await markersOf(stack, over.saleId)).size === 0, 30_000);
    const openBuyers = arena.buyers(other.saleId, [api]);
    await openBuyers.rush(userIds(20), 8, { tries: 50 });
    expectEqual(openBuyers.opLog.count('ok'), 20, 'buyers of the open sale');
    await repaired(stack, over.saleId); // nobody can tell that nothing is lost, so closed sales have their turn too
    expectEqual(await arena.rest(over.saleId), before, 'the closed sale');
    expectEqual((await buyers.buy('late'))?.json.code, 'closed', 'what a late buyer hears');
    const { outcome, found } = await reconcileSale(stack, api, over.saleId);
    expectEqual([outcome, found], ['match', []], 'reconcile of the closed sale');
    const state = await stack.redis.redis.hget(keysOf(over.saleId).sale, 'state');
    expectEqual(state, 'closed', 'its state in Redis');
  },
};

export const RECONCILE_LIVE_ROWS: readonly Row[] = [OPEN_SALE, MARKERS_GONE];
