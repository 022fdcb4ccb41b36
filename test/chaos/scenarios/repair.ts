import type { Batch } from '../../../src/core/batch.js';
import { homeBucket } from '../../../src/core/bucket.js';
import { createDeadLetterParking } from '../../../src/mysql/dead-letters.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import type { SaleFigures } from '../../invariants/check-sale.js';
import type { ScenarioContext } from '../context.js';
import { deductBatch } from '../harness/batches.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { runCommand } from '../harness/commands.js';
import { expectAtMost, expectEqual } from '../harness/expect.js';
import { bucketStatusOf, endOfAof, observeLostWrites, restartRedis, untilRebuilt } from '../harness/redis.js';
import { rowsOf, unitsLeftOf } from '../harness/sale-state.js';
import { found } from '../harness/wait.js';
import { startSystem } from '../harness/load.js';
import type { Scenario } from '../scenario.js';

// R6, R10, R12: repairs that die, and data that a repair must keep.

/** Another keeper takes over after two seconds. A lease must be longer than one statement of MySQL. */
const REPAIR = {
  TEST_OVERRIDES: 'on',
  REPAIR_QUIET_MS: '300',
  REPAIR_LEASE_MS: '2000',
  MYSQL_QUERY_TIMEOUT_MS: '1500',
};

interface Sold {
  readonly saleId: string;
  readonly buyers: Buyers;
  /** The state of the sale at rest. */
  readonly figures: SaleFigures;
}

/** A sale that has sold some units and is at rest. */
async function startAndSell(context: ScenarioContext, env: Readonly<Record<string, string>> = {}): Promise<Sold> {
  const [api] = await Promise.all([context.start('api', { env }), context.start('worker')]);
  const { saleId } = await context.openSale({ stock: 30 });
  const buyers = context.buyers(saleId, [api]);
  await buyers.rush(userIds(context.random.whole(5, 15), 'early-'), 4, { tries: 30 });
  return { saleId, buyers, figures: await context.expectInvariants(saleId) };
}

/** Asserts that earlier purchases are as before, and lets three more buyers buy. */
async function expectUnchanged(context: ScenarioContext, { saleId, buyers }: Sold, before: SaleFigures): Promise<void> {
  expectEqual(await context.expectInvariants(saleId), before, 'the figures');
  await buyers.rush(userIds(3, 'late-'), 3, { tries: 30 });
  const rows = before.rows + 3;
  await context.expectFigures(saleId, { rows, liveRows: rows, failedRows: 0 }, 'it sells again');
}

/** A keeper may die in the repair of another scenario's sale, while this sale is merely locked. */
const VICTIMS_MAX = 5;

const DEATHS = (['repair_after_lock', 'repair_after_epoch', 'repair_after_stock'] as const).map((point): Scenario => ({
  name: `R10/${point}`,
  title: `a keeper dies at ${point}: the sale stays locked until another repair ends with the same numbers`,
  alone: true,
  async run(context) {
    const { stack } = context;
    const sold = await startAndSell(context);
    const { saleId, buyers } = sold;
    const used = point === 'repair_after_lock' ? 0 : 1;
    let epochBefore = 1;
    const isLocked = async (): Promise<boolean> => {
      const { state } = await bucketStatusOf(stack, saleId);
      const [row] = await stack.mysql.query<{ epoch: number }>('SELECT epoch FROM sales WHERE id = ?', [saleId]);
      return state === 'repair' && row?.epoch === epochBefore + used;
    };
    await context.observedInTries('the dead keeper left it locked', VICTIMS_MAX, async (tries) => {
      if (tries > 1) {
        const healthy = await context.start('keeper', { env: REPAIR });
        epochBefore = await untilRebuilt(stack, saleId, epochBefore);
        await healthy.stop();
      }
      const victim = await context.start('keeper', { env: REPAIR, failPoint: point });
      await restartRedis(stack);
      await context.diedAt(victim, point);
      return isLocked();
    });
    // the api may reconnect to Redis later than we do
    const buyTooEarly = async () => {
      const answer = await buyers.buy('too-early');
      return answer?.json.code === 'unavailable' ? null : answer;
    };
    const { status, json } = await found('an api that reaches Redis again', buyTooEarly);
    expectEqual([status, json.code], [503, 'loading'], 'the answer to a buyer');
    context.faultEnded();
    await context.start('keeper', { env: REPAIR });
    const epoch = await untilRebuilt(stack, saleId);
    expectEqual(epoch, epochBefore + used + 1, 'the epoch: never a used epoch');
    await expectUnchanged(context, sold, sold.figures);
  },
}));

/** Parks a purchase like a dead letter: it has a row, is not in `pending`, and keeps its units. */
async function park({ stack }: ScenarioContext, batch: Batch): Promise<void> {
  await createDeadLetterParking(stack.mysql).park({
    messageId: `chaos-${batch.batchId}`,
    group: 'seckill-order-writer',
    originTopic: 'seckill-purchase',
    saleId: batch.saleId,
    batchId: batch.batchId,
    body: batch.body,
    reason: 'retries_exhausted',
    detail: 'parked by a chaos scenario',
    attempts: 6,
  });
  await stack.redis.redis.zrem(bucketKeys(batch).pending, batch.batchId);
}

const KEEPS_HELD: Scenario = {
  name: 'R6/held_and_parked',
  title: 'a repair keeps the units of pending and parked batches, even of a batch whose marker is lost',
  alone: true,
  async run(context) {
    const { stack, random } = context;
    const [api] = await Promise.all([
      context.start('api'),
      context.start('keeper', { env: { REPAIR_QUIET_MS: '300', REDRIVE_AFTER_MS: '2000' } }),
    ]);
    const { saleId } = await context.openSale({ stock: 30 });
    // there is no message, so only the re-drive has it
    await deductBatch(stack, saleId, userIds(random.whole(1, 4), 'pending-'));
    await park(context, await deductBatch(stack, saleId, userIds(2, 'parked-')));
    const kept = await unitsLeftOf(stack, saleId);
    const end = await endOfAof(stack);
    await park(context, await deductBatch(stack, saleId, userIds(2, 'parked-late-')));
    const buyers = context.buyers(saleId, [api]);
    await buyers.rush(userIds(3, 'late-'), 3, { tries: 20 });

    const isFree = async (): Promise<boolean> => (await unitsLeftOf(stack, saleId)) === kept;
    await observeLostWrites(context, end, 'Redis forgot a parked batch', isFree);
    context.faultEnded();
    await untilRebuilt(stack, saleId);
    expectEqual(await unitsLeftOf(stack, saleId), kept - 2, 'units left: both parked batches hold theirs');
    await context.start('worker');
    const sold = 30 - kept + 3; // the three late purchases reacquire their units
    const areRecorded = async (): Promise<boolean> => (await rowsOf(stack, saleId)) === sold - 2;
    await context.until('purchases that are not parked are recorded', areRecorded);
    const replay = await runCommand(['dlq', 'replay', '--all-matching', '--sale', saleId, '--json'], context.env);
    const outcomes = replay.lines.map(({ outcome }) => outcome);
    expectEqual(outcomes, ['replayed', 'replayed'], 'the replays');
    const figures = { liveRows: sold + 2, unitsLeft: 28 - sold, failedRows: 0 };
    await context.expectFigures(saleId, figures, 'an order for each');
  },
};

const BUCKETS = 3;
const PER_BUCKET = 4;

const SEVERAL_BUCKETS: Scenario = {
  name: 'R12',
  title: 'three buckets lose their last writes: limits and keys hold, and the units are shared out anew',
  alone: true,
  async run(context) {
    const { stack, random } = context;
    const { saleId, buyers } = await startSystem(
      context,
      { stock: BUCKETS * PER_BUCKET, buckets: BUCKETS },
      { keeper: { REPAIR_QUIET_MS: '1000' } },
    );
    const buyersOf = (bucket: number): string[] =>
      userIds(200, `b${random.whole(0, 1_000)}-`).filter((user) => homeBucket(user, BUCKETS) === bucket);
    const [home, ...others] = [buyersOf(0), buyersOf(1), buyersOf(2)] as [string[], string[], string[]];
    const winners = home.slice(0, PER_BUCKET);
    await buyers.rush(winners, 2, { tries: 20 });
    expectEqual(await unitsLeftOf(stack, saleId), 0, 'units left in the first bucket');
    const late = await buyers.buy(home[PER_BUCKET] as string, { tries: 20 });
    expectEqual(late?.status, 202, 'the next buyer there: a unit of another bucket');
    const haveRows = async (rows: number): Promise<boolean> => (await rowsOf(stack, saleId)) === rows;
    await context.until('they have rows', () => haveRows(PER_BUCKET + 1));
    const end = await endOfAof(stack);
    for (const users of others) await buyers.rush(users.slice(0, 2), 2, { tries: 20 });
    await context.until('the others too', () => haveRows(PER_BUCKET + 5));
    const unitsPerBucket = (): Promise<number[]> =>
      Promise.all([0, 1, 2].map((bucket) => unitsLeftOf(stack, saleId, bucket)));
    const unitsLeft = async (): Promise<number> => (await unitsPerBucket()).reduce((sum, units) => sum + units, 0);
    const leftBefore = await unitsLeft();
    expectEqual(leftBefore, BUCKETS * PER_BUCKET - PER_BUCKET - 5, 'units left');

    const areFree = async (): Promise<boolean> => (await unitsLeft()) > leftBefore;
    await observeLostWrites(context, end, 'units that were sold are free again', areFree);
    context.faultEnded();
    await untilRebuilt(stack, saleId);
    const perBucket = await unitsPerBucket();
    expectEqual(await unitsLeft(), leftBefore, 'units left after the repair');
    const spread = Math.max(...perBucket) - Math.min(...perBucket);
    expectAtMost(spread, 1, 'units between the fullest bucket and the emptiest');

    const winner = winners[0] as string;
    const again = await buyers.buy(winner, { tries: 20 });
    expectEqual([again?.status, again?.json.status], [200, 'ordered'], 'the same key');
    const more = await buyers.buy(winner, { requestId: 'k2' });
    expectEqual(more?.json.code, 'limit_reached', 'a second key');
    const { json } = await buyers.status(winner);
    await buyers.move('cancel', winner, String(json.orderId));
    await context.until('the unit is back', async () => (await unitsLeft()) === leftBefore + 1);
    // buyers of one bucket, so that the last purchases need units of other buckets
    await buyers.rush(home.slice(PER_BUCKET + 1, PER_BUCKET + 2 + leftBefore), 2, { tries: 20 });
    const last = await buyers.buy(home[PER_BUCKET + 2 + leftBefore] as string);
    expectEqual(last?.json.code, 'sold_out', 'the answer when all buckets are empty');
    const figures = { sold: BUCKETS * PER_BUCKET, unitsLeft: 0, failedRows: 0 };
    await context.expectFigures(saleId, figures, 'sold out, each unit once');
  },
};

export const REPAIR_SCENARIOS: readonly Scenario[] = [KEEPS_HELD, ...DEATHS, SEVERAL_BUCKETS];
