import { bucketKeys } from '../../../src/redis/keys.js';
import { leakBatch, publishBatches } from '../harness/batches.js';
import { userIds } from '../harness/buyers.js';
import { runCommand } from '../harness/commands.js';
import { expectAtLeast, expectEqual, expectFields } from '../harness/expect.js';
import { untilRebuilt } from '../harness/redis.js';
import { cancelPlanted, markersOf, plantOrder, promisedReleasesOf, statesOf } from '../harness/sale-state.js';
import { ACTOR, RECONCILE_ENV, reconcileSale } from '../harness/sales.js';
import type { StackControls } from '../harness/stack-controls.js';
import type { Scenario } from '../scenario.js';

// D5 to D7, C1, C2, C5, C7: Redis and MySQL are made to differ by hand, and reconcile must report or repair exactly
// that.

const keysOf = (saleId: string) => bucketKeys({ saleId, bucket: 0 });

/** Removes the orders of some buyers from MySQL, as a restore from an older copy does. */
async function removeOrders({ mysql }: StackControls, saleId: string, users: readonly string[]): Promise<void> {
  await mysql.transaction(async (tx) => {
    await tx.execute('DELETE FROM orders WHERE sale_id = ? AND user_id IN (?)', [saleId, users]);
    await tx.execute('UPDATE sales SET sold = sold - ? WHERE id = ?', [users.length, saleId]);
  });
}

const ORDERS_LOST: Scenario = {
  name: 'D5',
  title:
    'MySQL is restored without some orders: pending, never 404, reported, not written again until an operator says so',
  async run(context) {
    const { stack, random } = context;
    const [{ api }, { saleId }] = await Promise.all([context.healthyPrograms(), context.openSale({ stock: 20 })]);
    const users = userIds(random.whole(5, 10));
    await context.buyers(saleId, [api]).rush(users, 5, { tries: 20 });
    await context.expectInvariants(saleId);
    const lost = random.shuffled(users).slice(0, random.whole(1, 4)).sort();
    await removeOrders(stack, saleId, lost);
    const count = users.length - lost.length;
    const sold = async (): Promise<number> => (await stack.audit.repository.findSale(saleId))?.sold ?? Number.NaN;
    await context.observed(`${lost.length} recorded orders are gone`, async () => (await sold()) === count);

    const later = context.buyers(saleId, [api]); // a buyer who saw the order before now reads `pending` (decision 10)
    const expectReported = async (when: string): Promise<void> => {
      for (const userId of lost) {
        expectEqual((await later.status(userId)).json.status, 'pending', `the status ${when}`);
      }
      const { outcome, found, jobs } = await reconcileSale(stack, api, saleId, { apply: true });
      const expected = lost.map((userId) => `order_lost ${userId}`);
      expectEqual(found, expected, `found ${when} (${String(outcome)})`);
      expectEqual(jobs, [], 'jobs: nothing is written again by itself');
      expectEqual(await sold(), count, 'units sold as before');
    };
    await expectReported('at first');
    await expectReported('after a run that may repair');
    const repair = await runCommand(['sale', 'repair', saleId, '--force', '--json'], context.env);
    const kept = { outcome: 'repaired', rows: count, ordersLost: lost.length, unitsLeft: 20 - users.length };
    expectFields(repair.lines.at(-1) ?? {}, kept, 'the repair keeps their units');
    await expectReported('after a repair');

    const resolved = await runCommand(['reconcile', 'resolve', '--write', '--sale', saleId, '--json'], context.env);
    const counts = { written: lost.length, failed: 0, recorded: 0, left: 0 };
    expectFields(resolved.lines.at(-1) ?? {}, { outcome: 'resolved', counts }, 'the operator has them written');
    context.faultEnded();
    const { found } = await reconcileSale(stack, api, saleId);
    expectEqual(found, [], 'found afterwards');
    for (const userId of lost) expectEqual((await later.status(userId)).json.status, 'ordered', 'the status then');
    await context.expectFigures(saleId, { rows: users.length, failedRows: 0 }, 'as before');
  },
};

const UNITS_ADDED: Scenario = {
  name: 'D6',
  title: 'units are added to Redis by hand: exactly the surplus fails at the last guard; the stock is corrected',
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

const ORDER_UNKNOWN_TO_REDIS: Scenario = {
  name: 'D7/active_key',
  title: 'a buyer has a live order unknown to Redis: their second one fails for the limit, other orders stand',
  mayFail: ['limit_reached'],
  async run(context) {
    const { stack, random } = context;
    const [{ api }, { saleId }] = await Promise.all([context.healthyPrograms(), context.openSale({ stock: 20 })]);
    const users = userIds(random.whole(4, 10));
    const twice = random.pick(users);
    await plantOrder(stack, saleId, twice);
    const buyers = context.buyers(saleId, [api]);
    await buyers.rush(users, users.length, { tries: 20 });
    await context.observed('the unique key of live orders refused the second', async () => {
      const { status, reason } = (await buyers.status(twice, 'k1', 2)).json;
      return status === 'failed' && reason === 'limit_reached';
    });
    await cancelPlanted(stack, saleId);
    context.faultEnded();
    const others = users.length - 1;
    const figures = { rows: users.length + 1, liveRows: others, failedRows: 1, unitsLeft: 20 - others };
    await context.expectFigures(saleId, figures, 'only that one failed, and its unit is back');
  },
};

/** Plants jobs whose last attempt is due, so that the keeper gives up each of these purchases. */
async function plantLastAttempts(
  { mysql }: StackControls,
  saleId: string,
  purchases: readonly (readonly [userId: string, batchId: string])[],
): Promise<void> {
  const rows = purchases.map(
    ([userId, batchId]) =>
      `('leak', '${saleId}/${userId}/k1', ${saleId}, '${batchId}', '${userId}', 'k1', 'planted', 5)`,
  );
  await mysql.execute(
    'INSERT INTO compensation_jobs (kind, subject, sale_id, batch_id, user_id, request_id, detail, attempts)' +
      ` VALUES ${rows.join()}`,
  );
}

const BATCHES = 12;
const BATCH_SIZE = 5;

const GIVEN_UP: Scenario = {
  name: 'C2',
  title: 'the keeper gives up purchases while a worker records them: the first row wins, and no winner is released',
  async run(context) {
    const { stack, random } = context;
    const [{ api }, { saleId }] = await Promise.all([context.healthyPrograms(), context.openSale({ stock: 100 })]);
    const all = userIds(BATCHES * BATCH_SIZE);
    const batches = [];
    for (let nth = 0; nth < BATCHES; nth++) {
      batches.push(await leakBatch(stack, saleId, all.slice(nth * BATCH_SIZE, (nth + 1) * BATCH_SIZE)));
    }
    const polling = context.buyers(saleId, [api]).pollStatus(random.shuffled(all).slice(0, 10));
    const purchases = batches.flatMap(({ batchId, purchases: some }) =>
      some.map(({ userId }) => [userId, batchId] as const),
    );
    await plantLastAttempts(stack, saleId, random.shuffled(purchases));
    const failedNow = async (): Promise<number> => (await statesOf(stack, saleId)).failed ?? 0;
    const haveRows = async (): Promise<boolean> => {
      const counts = Object.values(await statesOf(stack, saleId));
      return counts.reduce((sum, count) => sum + count, 0) === all.length;
    };
    for (const batch of random.shuffled(batches)) {
      const before = await failedNow();
      // the keeper continues with one or more purchases, unless the worker has taken the last of them
      const goesOn = async (): Promise<boolean> => (await failedNow()) > before || (await haveRows());
      await context.until('the keeper is at work', goesOn, { everyMs: 5 });
      await publishBatches(stack, [batch]);
    }
    await context.until('each has a row', haveRows);
    context.faultEnded();
    const { failed = 0, pending_payment: live = 0 } = await statesOf(stack, saleId);
    await context.observed(`the keeper won ${failed}, the worker ${live}`, () => failed > 0 && live > 0);
    const figures = { rows: all.length, failedRows: failed, liveRows: live, unitsLeft: 100 - live };
    await context.expectFigures(saleId, figures, 'units of failed purchases are back');
    await polling.stop();
    const sql = "SELECT id FROM orders WHERE sale_id = ? AND state = 'failed'";
    const lost = (await stack.mysql.query<{ id: string }>(sql, [saleId])).map(({ id }) => id).sort();
    expectEqual(await promisedReleasesOf(stack, saleId), lost, 'promised back, each once');
  },
};

const MARKERS_GONE: Scenario = {
  name: 'C7',
  title: 'the markers of a closed sale are removed, then Redis restarts: no loss is found, the sale stays closed',
  alone: true,
  async run(context) {
    const { stack, random } = context;
    const [api] = await Promise.all([
      context.start('api', { env: RECONCILE_ENV }),
      context.start('worker'),
      context.start('keeper'),
    ]);
    const [over, open] = [await context.openSale({ stock: 50 }), await context.openSale({ stock: 1000 })];
    const buyers = context.buyers(over.saleId, [api]);
    await buyers.rush(userIds(random.whole(10, 40)), 8, { tries: 20 });
    const before = await context.expectInvariants(over.saleId);
    const markers = async (): Promise<number> => (await markersOf(stack, over.saleId)).size;
    expectAtLeast(await markers(), 1, 'markers before');
    await stack.admin.close(over.saleId, ACTOR);
    const areGone = async (): Promise<boolean> => {
      await reconcileSale(stack, api, over.saleId, { apply: true });
      return (await markers()) === 0; // it removes the markers of batches whose rows are old enough
    };
    await context.until('no marker is left', areGone, { everyMs: 500 });

    const server = stack.servers.server('redis');
    await server.stop({ signal: 'SIGKILL' });
    await context.observed('Redis was killed, without the markers', () => server.pid() === null);
    await server.start();
    await server.waitReady();
    context.faultEnded();
    await context.until('we are connected again', async () => (await markers()) === 0);
    const openBuyers = context.buyers(open.saleId, [api]);
    await openBuyers.rush(userIds(20), 8, { tries: 50 });
    expectEqual(openBuyers.opLog.count('ok'), 20, 'accepted purchases of the open sale');
    await buyers.buy('too-late'); // a closed sale is rebuilt when a client asks for data that only Redis may hold
    await untilRebuilt(stack, over.saleId);
    expectEqual(await context.expectInvariants(over.saleId), before, 'the closed sale');
    expectEqual((await buyers.buy('late'))?.json.code, 'closed', 'the answer to a late buyer');
    const { outcome, found } = await reconcileSale(stack, api, over.saleId);
    expectEqual([outcome, found], ['match', []], 'reconcile of the closed sale');
    const state = await stack.redis.redis.hget(keysOf(over.saleId).sale, 'state');
    expectEqual(state, 'closed', 'its state in Redis');
  },
};

export const RECONCILE_SCENARIOS: readonly Scenario[] = [
  ORDERS_LOST,
  UNITS_ADDED,
  ORDER_UNKNOWN_TO_REDIS,
  GIVEN_UP,
  MARKERS_GONE,
];
