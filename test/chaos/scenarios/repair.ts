import type { Batch } from '../../../src/core/batch.js';
import { homeBucket } from '../../../src/core/bucket.js';
import { createDeadLetterParking } from '../../../src/mysql/dead-letters.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import type { SaleFigures } from '../../invariants/check-sale.js';
import type { ScenarioContext } from '../context.js';
import { deductBatch } from '../harness/batches.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { runCommand, RunningCommand } from '../harness/commands.js';
import { expectAtMost, expectEqual, expectFields, expectOneOf } from '../harness/expect.js';
import { readMetric, sumMetric } from '../harness/programs.js';
import { bucketStatusOf, endOfAof, observeLostWrites, restartRedis, untilRebuilt } from '../harness/redis.js';
import { rowsOf, unitsLeftOf } from '../harness/sale-state.js';
import type { TcpProxy } from '../harness/tcp-proxy.js';
import { atScriptCall } from '../harness/traffic.js';
import { found } from '../harness/wait.js';
import { startSystem } from '../harness/load.js';
import type { Scenario } from '../scenario.js';

// R6, R10, R12: repairs that die, come late or collide with other commands, and what a repair keeps.

/** Another keeper takes over after two seconds. A lease must be longer than one statement of MySQL. */
const REPAIR = {
  TEST_OVERRIDES: 'on',
  REPAIR_QUIET_MS: '300',
  REPAIR_LEASE_MS: '2000',
  MYSQL_QUERY_TIMEOUT_MS: '1500',
};
/** A command that the proxy holds back must not time out. */
const PATIENT = { REDIS_REPLY_TIMEOUT_MS: '15000' };

/** Part of every key of a sale, because a keeper repairs other sales too. */
const keyOf = (saleId: string): string => `{${saleId}:`;
/** A repair that needs no restart of Redis. */
const repairCommand = (saleId: string): string[] => ['sale', 'repair', saleId, '--force', '--json'];

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

/** A keeper may die in the repair of an older sale that another scenario left, while this sale is merely locked. */
const VICTIMS_MAX = 5;

const DEATHS = (['repair_after_lock', 'repair_after_epoch', 'repair_after_stock'] as const).map((point): Scenario => ({
  name: `R10/${point}`,
  title: `a keeper dies at ${point}: the sale stays locked, the next repair ends with the same numbers`,
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
    // the connection of the api to Redis may come back later than ours
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

const LATE_COMMAND: Scenario = {
  name: 'R10/late_command',
  also: ['R6'],
  title: 'a repair command is delayed until another repair has ended and the sale sells: it changes nothing',
  alone: true,
  async run(context) {
    const { stack, random } = context;
    const redis = await context.proxy('redis');
    const [sold, slow] = await Promise.all([
      startAndSell(context),
      context.start('keeper', { env: { ...REPAIR, ...PATIENT, ...redis.env } }),
    ]);
    const { saleId, buyers } = sold;
    const script = random.pick(['lock', 'stage', 'swap'] as const);
    let isHeld = false;
    let goOn: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (goOn = resolve));
    atScriptCall(redis.proxy, script, () => ((isHeld = true), held), 1, keyOf(saleId));
    await restartRedis(stack);
    await context.observed(`${script} of a keeper is under way`, () => isHeld);

    context.faultEnded(); // Redis is back, and purchases under way must not need a repair
    await context.start('keeper', { env: REPAIR });
    const epoch = await untilRebuilt(stack, saleId);
    await buyers.rush(userIds(5, 'between-'), 5, { tries: 30 });
    const before = await context.expectInvariants(saleId);
    goOn();
    await context.until('the slow keeper gives up its repair', async () => {
      const repairs = (result: string) => readMetric(slow, `seckill_sale_repairs_total{result="${result}"}`);
      return (await repairs('superseded')) + (await repairs('busy')) > 0;
    });
    expectFields(await bucketStatusOf(stack, saleId), { state: 'open', epoch, sameServer: true }, 'the sale');
    await expectUnchanged(context, sold, before);
  },
};

/** One of two keepers may have finished before the other polls. */
const RESTARTS_MAX = 5;

const TWO_KEEPERS: Scenario = {
  name: 'R10/two_keepers',
  title: 'two keepers find the same sale in need of repair: it is repaired once',
  alone: true,
  async run(context) {
    const { stack } = context;
    const [sold, ...keepers] = await Promise.all([
      startAndSell(context),
      context.start('keeper', { env: REPAIR }),
      context.start('keeper', { env: REPAIR }),
    ]);
    const { saleId } = sold;
    const met = async (): Promise<boolean> => {
      const repairs = (result: string) => sumMetric(keepers, `seckill_sale_repairs_total{result="${result}"}`);
      return (await repairs('busy')) + (await repairs('superseded')) > 0;
    };
    let epoch = 1;
    await context.observedInTries('they met', RESTARTS_MAX, async () => {
      await restartRedis(stack);
      context.faultEnded();
      expectEqual(await untilRebuilt(stack, saleId, epoch), epoch + 1, 'its epoch');
      epoch++;
      return met();
    });
    await expectUnchanged(context, sold, sold.figures);
    expectEqual((await bucketStatusOf(stack, saleId)).epoch, epoch, 'its epoch: repaired once');
  },
};

const LATE_DEDUCT: Scenario = {
  name: 'R10/late_deduct',
  title: 'a deduct is delayed until its sale is repaired: it gets stale_epoch, the purchase is sent again, one order',
  alone: true,
  async run(context) {
    const redis = await context.proxy('redis');
    const [{ saleId, buyers, figures }] = await Promise.all([
      startAndSell(context, { ...PATIENT, ...redis.env }),
      context.start('keeper'),
    ]);
    let epoch: unknown;
    atScriptCall(redis.proxy, 'deduct', async () => {
      const { lines } = await runCommand(repairCommand(saleId), { ...context.env, ...REPAIR });
      epoch = lines.at(-1)?.epoch;
    });
    const answer = await buyers.buy('ann');
    await context.observed('the sale was repaired before deduct arrived', () => epoch === 2);
    context.faultEnded();
    expectOneOf(answer?.status ?? 503, [202, 503], 'the answer to ann');
    await buyers.rush(['ann'], 1, { tries: 30 });
    const rows = figures.rows + 1;
    await context.expectFigures(saleId, { rows, liveRows: rows, failedRows: 0 }, 'one order for ann');
  },
};

/**
 * Delays a script of a worker or keeper until the sale is locked, or until its repair is over.
 * @returns a function that asserts that it happened and that the repair succeeded
 */
function delayUntilRepair(
  context: ScenarioContext,
  saleId: string,
  proxy: TcpProxy,
  script: 'mark-recorded' | 'release',
): () => Promise<void> {
  const { stack, env } = context;
  const moment = context.random.pick(['locked', 'repaired'] as const);
  let repair: RunningCommand | undefined;
  let stateThen = '';
  const stateOf = async (): Promise<string> => (await bucketStatusOf(stack, saleId)).state ?? '';
  const delay = async (): Promise<void> => {
    repair = new RunningCommand(repairCommand(saleId), { ...env, ...REPAIR, REPAIR_QUIET_MS: '1500' });
    if (moment === 'repaired') await repair.end;
    else await context.until('it is locked', async () => (await stateOf()) === 'repair');
    stateThen = await stateOf();
  };
  atScriptCall(proxy, script, delay, 1, keyOf(saleId));
  return async () => {
    const wanted = moment === 'locked' ? 'repair' : 'open';
    await context.observed(`${script} met a sale in the state ${wanted}`, () => stateThen === wanted);
    const { lines } = (await repair?.end) ?? {};
    expectEqual(lines?.at(-1)?.outcome, 'repaired', 'the repair');
    context.faultEnded();
  };
}

const LATE_RECORD: Scenario = {
  name: 'R10/late_mark_recorded',
  title: 'mark-recorded arrives while its sale is locked, or after its repair: the order stands, once',
  alone: true,
  async run(context) {
    const redis = await context.proxy('redis');
    const [api] = await Promise.all([
      context.start('api'),
      context.start('worker', { env: { ...PATIENT, ...redis.env } }),
      context.start('keeper', { env: { REDRIVE_AFTER_MS: '5000' } }),
    ]);
    const { saleId } = await context.openSale();
    const expectDelayed = delayUntilRepair(context, saleId, redis.proxy, 'mark-recorded');
    const buyers = context.buyers(saleId, [api]);
    await buyers.buy('ann', { tries: 20 });
    await expectDelayed();
    await context.expectFigures(saleId, { rows: 1, liveRows: 1, unitsLeft: 9 }, 'one order');
    expectEqual((await buyers.status('ann')).json.status, 'ordered', 'the status of ann');
  },
};

const LATE_RELEASE: Scenario = {
  name: 'R10/late_release',
  title: 'a release arrives while its sale is locked, or after its repair: the unit goes back once',
  alone: true,
  async run(context) {
    const redis = await context.proxy('redis');
    const { saleId, buyers } = await startSystem(context, {}, { keeper: { ...PATIENT, ...redis.env } });
    await buyers.rush(['ann', 'bob'], 2, { tries: 20 });
    await context.expectInvariants(saleId);
    const expectDelayed = delayUntilRepair(context, saleId, redis.proxy, 'release');
    const { json } = await buyers.status('ann');
    expectEqual((await buyers.move('cancel', 'ann', String(json.orderId)))?.status, 200, 'the cancellation');
    await expectDelayed();
    await context.expectFigures(saleId, { rows: 2, liveRows: 1, unitsLeft: 9 }, 'the unit is back');
  },
};

/**
 * Parks a purchase as the keeper parks a dead letter: it has a row, it is not in `pending`, and its units stay held.
 */
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
  title: 'a repair keeps the units of a pending batch and of parked ones, even of one whose marker is lost',
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
  title: 'three buckets, one of them sold out, lose the tail: limits and keys hold, units are shared out anew',
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
    // all from one bucket, so that the last purchases need units of the others
    await buyers.rush(home.slice(PER_BUCKET + 1, PER_BUCKET + 2 + leftBefore), 2, { tries: 20 });
    const last = await buyers.buy(home[PER_BUCKET + 2 + leftBefore] as string);
    expectEqual(last?.json.code, 'sold_out', 'the answer when all buckets are empty');
    const figures = { sold: BUCKETS * PER_BUCKET, unitsLeft: 0, failedRows: 0 };
    await context.expectFigures(saleId, figures, 'sold out, each unit once');
  },
};

export const REPAIR_SCENARIOS: readonly Scenario[] = [
  KEEPS_HELD,
  ...DEATHS,
  LATE_COMMAND,
  TWO_KEEPERS,
  LATE_DEDUCT,
  LATE_RECORD,
  LATE_RELEASE,
  SEVERAL_BUCKETS,
];
