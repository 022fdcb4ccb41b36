import type { ScenarioContext } from '../context.js';
import { userIds, type Buyers, isAccepted } from '../harness/buyers.js';
import { expectAtLeast, expectBelow, expectEqual, expectFields, expectOneOf, expectTrue } from '../harness/expect.js';
import { expectOneOrderEach } from '../harness/load.js';
import {
  abortedBatchesOf,
  isRecorded,
  markersOf,
  pendingBatchesOf,
  unitsLeftOf,
  type Markers,
} from '../harness/sale-state.js';
import { atScriptCall } from '../harness/traffic.js';
import type { Scenario } from '../scenario.js';

// T1 to T8: an api dies between precheck and commit, or a reply is lost.

const STOCK = 20;
/**
 * If parallel scenarios starve the broker, it may refuse a half message (503) before the api gets to its fail point.
 */
const TRIES_MAX = 4;

async function untilAborted(context: ScenarioContext, saleId: string): Promise<void> {
  const isAborted = async (): Promise<boolean> => (await abortedBatchesOf(context.stack, saleId)).length > 0;
  await context.until('the check-back has aborted the batch', isAborted);
}

/** The traces that an api killed at a fail point must leave. */
interface Death {
  readonly saleId: string;
  readonly buyers: Buyers;
  readonly users: readonly string[];
  readonly unitsLeft: number;
  readonly pending: number;
  readonly markers: Markers;
}

/** Lets buyers use an api that dies at the point, and then another api. */
async function killAt(context: ScenarioContext, point: string): Promise<Death> {
  const users = userIds(context.random.whole(3, 8));
  const [{ api: healthy }, { saleId }, victim] = await Promise.all([
    context.healthyPrograms(),
    context.openSale({ stock: STOCK }),
    context.start('api', { failPoint: point }),
  ]);
  let api = victim;
  const buyers = context.buyers(saleId, () => [api]);
  await buyers.rush(users, users.length, { tries: TRIES_MAX });
  await context.diedAt(victim, point);
  context.faultEnded();
  api = healthy;
  const { stack } = context;
  return {
    saleId,
    buyers,
    users,
    unitsLeft: await unitsLeftOf(stack, saleId),
    pending: (await pendingBatchesOf(stack, saleId)).length,
    markers: await markersOf(stack, saleId),
  };
}

const expectNothingTaken = (death: Death): void =>
  expectFields(death, { unitsLeft: STOCK, pending: 0, markers: new Map() }, 'what the dead api left behind');

export const TRANSACTION_SCENARIOS: readonly Scenario[] = [
  {
    name: 'T1',
    title: 'the api dies after precheck: nothing is taken, and a retry counts as a first try',
    fast: true,
    async run(context) {
      const death = await killAt(context, 'after_precheck');
      expectNothingTaken(death);
      expectEqual(death.buyers.opLog.count('unknown'), death.users.length, 'purchases without an answer');
      await expectOneOrderEach(context, death.buyers, death.users);
    },
  },
  {
    name: 'T2',
    title: 'the api dies after the half message: the check-back aborts the batch, and the key can be used again',
    fast: true,
    async run(context) {
      const death = await killAt(context, 'after_half');
      expectNothingTaken(death);
      await untilAborted(context, death.saleId);
      const untouched = await context.expectInvariants(death.saleId);
      expectFields(untouched, { rows: 0, unitsLeft: STOCK }, 'before any retry');
      await expectOneOrderEach(context, death.buyers, death.users);
    },
  },
  {
    name: 'T3/after_deduct',
    title: 'the api dies after deduct: the check-back commits the batch, and nothing is deducted twice',
    fast: true,
    alone: true, // dying apis of parallel scenarios would get its check-backs
    async run(context) {
      const death = await killAt(context, 'after_deduct');
      const { saleId, buyers, users, unitsLeft, markers } = death;
      expectAtLeast(death.pending, 1, 'batches deducted and not committed');
      expectOneOf('deducted', [...markers.values()], 'markers');
      expectEqual(buyers.opLog.count('ok'), 0, 'purchases that were answered');
      const haveRows = (): Promise<boolean> => isRecorded(context.stack, saleId);
      await context.until('the orders come without any retry', haveRows);
      const healed = await context.expectInvariants(saleId);
      expectFields(healed, { unitsLeft, rows: STOCK - unitsLeft }, 'no second deduct');
      await expectOneOrderEach(context, buyers, users);
    },
  },
  {
    name: 'T3/after_commit',
    title: 'the api dies after commit: the worker records the batch, with or without an answer to its buyers',
    fast: true,
    async run(context) {
      const { buyers, users, unitsLeft, markers } = await killAt(context, 'after_commit');
      expectBelow(unitsLeft, STOCK, 'units were taken');
      expectOneOf('deducted', [...markers.values()], 'markers');
      await expectOneOrderEach(context, buyers, users);
    },
  },
  {
    name: 'T6',
    title: 'the reply to a half message is lost: no deduct follows, and the check-back aborts the batch',
    async run(context) {
      const users = userIds(context.random.whole(1, 6));
      const [{ api: other }, { saleId }, lossy] = await Promise.all([
        context.healthyPrograms(),
        context.openSale({ stock: STOCK }),
        context.start('api', { failPoint: 'drop_half_reply' }),
      ]);
      const buyers = context.buyers(saleId, [lossy]);
      const answers = await buyers.rush(users, users.length);
      await context.reached(lossy, 'drop_half_reply');
      context.faultEnded();
      const unsure = answers.filter((answer) => answer?.json.code === 'outcome_unknown').length;
      expectAtLeast(unsure, 1, 'answers outcome_unknown');
      expectEqual(buyers.opLog.count('ok'), users.length - unsure, 'the others were accepted');
      const unitsLeft = await unitsLeftOf(context.stack, saleId);
      expectEqual(unitsLeft, STOCK - users.length + unsure, 'units left: no deduct followed');
      await untilAborted(context, saleId);
      await expectOneOrderEach(context, buyers, users, other);
    },
  },
  {
    name: 'T8',
    title: 'the reply to the deduct of the last unit is lost: resolve finds the batch deducted, and its buyer gets 202',
    fast: true,
    async run(context) {
      const [{ api: other }, { saleId }, { proxy, env }] = await Promise.all([
        context.healthyPrograms(),
        context.openSale({ stock: 1 }),
        context.proxy('redis'),
      ]);
      // so that the loss is noticed before the time-out, even on a busy machine
      const lossy = await context.start('api', { env: { ...env, REDIS_REPLY_TIMEOUT_MS: '15000' } });
      const buyers = context.buyers(saleId, [lossy]);
      atScriptCall(proxy, 'deduct', () => void (proxy.dropReplies = true));
      const bought = buyers.buy('ann', { tries: 5 });
      const isLost = async (): Promise<boolean> =>
        proxy.droppedBytes > 0 && (await unitsLeftOf(context.stack, saleId)) === 0;
      await context.observed('the reply of a deduct was dropped', isLost);
      proxy.dropReplies = false;
      proxy.reset(); // the api learns that its connection is gone
      context.faultEnded();
      expectTrue(isAccepted(await bought), 'the purchase of the last unit');
      const late = await buyers.buy('bob', { tries: 5 });
      expectFields({ ...late?.json }, { code: 'sold_out' }, 'the next buyer');
      await expectOneOrderEach(context, buyers, ['ann'], other);
    },
  },
];
