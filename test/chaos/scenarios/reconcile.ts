import { bucketKeys } from '../../../src/redis/keys.js';
import { userIds } from '../harness/buyers.js';
import { expectEqual } from '../harness/expect.js';
import { ACTOR, reconcileSale } from '../harness/sales.js';
import type { Scenario } from '../scenario.js';

// D6: Redis and MySQL differ by a manual change, which reconcile must report or repair.

const keysOf = (saleId: string) => bucketKeys({ saleId, bucket: 0 });

const UNITS_ADDED: Scenario = {
  name: 'D6',
  title: 'units are added to Redis by hand: exactly the surplus fails, and the stock is corrected',
  fast: true,
  mayFail: ['oversold_guard'],
  async run(context) {
    const { stack, random } = context;
    const stock = random.whole(5, 10);
    const surplus = random.whole(1, 4);
    const unsold = random.whole(1, 3);
    const [{ api }, { saleId }] = await Promise.all([context.healthyPrograms(), context.openSale({ stock })]);
    const added = surplus + unsold;
    await stack.redis.redis.incrby(keysOf(saleId).stock, added);
    expectEqual((await reconcileSale(stack, api, saleId)).found, [`drift -${added}`], 'found before any purchase');

    const buyers = context.buyers(saleId, [api]);
    await buyers.rush(userIds(stock + surplus), 8, { tries: 20 });
    expectEqual(buyers.opLog.count('ok'), stock + surplus, 'accepted purchases');
    const failed = async (): Promise<number> => {
      const sql = "SELECT id FROM orders WHERE sale_id = ? AND reason = 'oversold_guard'";
      return (await stack.mysql.query(sql, [saleId])).length;
    };
    const what = `the guard refused ${surplus} of ${stock + surplus}`;
    await context.observed(what, async () => (await failed()) === surplus);
    const expected = [`drift -${unsold}`, `oversell ${surplus}`].join();
    const areFound = async (): Promise<boolean> => (await reconcileSale(stack, api, saleId)).found.join() === expected;
    await context.until('both are found', areFound, { everyMs: 500 }); // young batches hide the drift
    const open = await reconcileSale(stack, api, saleId, { apply: true });
    expectEqual(open.jobs, [], 'no script sets the stock of an open sale');

    await stack.admin.close(saleId, ACTOR);
    const closed = await reconcileSale(stack, api, saleId, { apply: true });
    const jobs = closed.jobs.filter((job) => job.startsWith('drift'));
    expectEqual(jobs, ['drift compensated'], 'jobs of the closed sale');
    context.faultEnded();
    const figures = { sold: stock, liveRows: stock, failedRows: surplus, unitsLeft: 0 };
    await context.expectFigures(saleId, figures, 'exactly the surplus failed');
  },
};

export const RECONCILE_SCENARIOS: readonly Scenario[] = [UNITS_ADDED];
