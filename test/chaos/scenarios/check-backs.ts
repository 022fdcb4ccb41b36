import type { ScenarioContext } from '../context.js';
import { isGivenUp, withBrokerSetting } from '../harness/broker.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { expectAtLeast, expectBelow, expectEqual, expectFields, expectOneOf } from '../harness/expect.js';
import { expectOneOrderEach, expectRowPerAccepted } from '../harness/load.js';
import { NO_REDRIVE, readMetric, type Program } from '../harness/programs.js';
import {
  abortedBatchesOf,
  batchesWithRows,
  isRecorded,
  markersOf,
  pendingBatchesOf,
  unitsLeftOf,
} from '../harness/sale-state.js';
import type { TcpProxy } from '../harness/tcp-proxy.js';
import { atScriptCall, batchIdsOn, countDeductReplies } from '../harness/traffic.js';
import type { Scenario } from '../scenario.js';

// T10, T11, T13: a check-back is late, goes wrong or gets no answer; an api is stopped or stalls.

const STOCK = 20;
const DRAIN_MS = 10_000;
/** The maximum that can be set, so that a slow deduct does not time out. */
const PATIENT = { REDIS_REPLY_TIMEOUT_MS: '30000' };

/** Kills the only api between deduct and commit of a batch. @returns the buyers of the batch */
async function leaveOneOpen(context: ScenarioContext): Promise<Buyers> {
  const [{ saleId }] = await Promise.all([context.openSale({ stock: STOCK }), context.start('worker')]);
  await context.start('keeper', { env: NO_REDRIVE });
  const victim = await context.start('api', { failPoint: 'after_deduct' });
  const buyers = context.buyers(saleId, () => context.programs.running.filter(({ name }) => name === 'api'));
  const users = userIds(context.random.whole(1, 6));
  await buyers.rush(users, users.length);
  await context.diedAt(victim, 'after_deduct');
  expectEqual(await isRecorded(context.stack, saleId), false, 'no open batch');
  return buyers;
}

/** Waits until the api could not answer a check-back. */
function untilUnanswered(context: ScenarioContext, api: Program): Promise<void> {
  const unanswered = (): Promise<number> => readMetric(api, 'seckill_check_backs_total{answer="no_answer"}');
  return context.until('the broker got no answer', async () => (await unanswered()) > 0);
}

/** After a check-back without an answer, the broker asks the same api again, and gets a commit. */
async function expectAskedAgain(context: ScenarioContext, buyers: Buyers, api: Program): Promise<void> {
  const isCommitted = (): Promise<boolean> => isRecorded(context.stack, buyers.saleId);
  await context.until('it is asked again and commits', isCommitted);
  expectEqual(api.running, true, 'the same api');
  await expectOrders(context, buyers);
}

async function expectOrders(context: ScenarioContext, buyers: Buyers): Promise<void> {
  await context.expectInvariants(buyers.saleId);
  await expectRowPerAccepted(context, buyers);
}

/**
 * Delays the deducts of these buyers until a check-back at another api has aborted a batch. Then the deduct of that
 * batch must take nothing.
 * @param proxy between the api of the buyers and Redis
 */
export async function abortBeforeDeduct(
  context: ScenarioContext,
  proxy: TcpProxy,
  buyers: Buyers,
  users: readonly string[],
): Promise<void> {
  const { stack } = context;
  const { saleId } = buyers;
  const before = await abortedBatchesOf(stack, saleId);
  const isAborted = async (): Promise<boolean> => (await abortedBatchesOf(stack, saleId)).length > before.length;
  const refusals = countDeductReplies(proxy, 'aborted');
  let passed = false;
  atScriptCall(proxy, 'deduct', async () => {
    await context.until('the check-back comes first', isAborted);
    passed = true;
  });
  const answers = buyers.rush(users, users.length);
  await context.observed('a check-back aborted the batch of a deduct under way', () => passed);
  await context.observed('that deduct was answered aborted', () => refusals() > 0);
  await answers;
  const aborted = (await abortedBatchesOf(stack, saleId)).filter((batchId) => !before.includes(batchId));
  expectAtLeast(aborted.length, 1, 'batches that stayed aborted');
  const recorded = await batchesWithRows(stack, saleId);
  const both = recorded.filter((batchId) => aborted.includes(batchId));
  expectEqual(both, [], 'aborted batches with rows');
}

const DEATHS: Scenario = {
  name: 'T10/deaths',
  title: 'the api that answers a check-back dies before and after resolve: another api is asked and commits',
  alone: true,
  drainFirst: true,
  async run(context) {
    const buyers = await leaveOneOpen(context);
    const haveRows = (): Promise<boolean> => isRecorded(context.stack, buyers.saleId);
    for (const point of context.random.shuffled(['check_before_resolve', 'check_after_resolve'])) {
      const asked = await context.start('api', { failPoint: point });
      await context.diedAt(asked, point);
      expectEqual(await haveRows(), false, `an answer after ${point}`);
    }
    await context.start('api');
    context.faultEnded();
    await context.until('another api is asked and commits', haveRows);
    await expectOrders(context, buyers);
  },
};

const THROWS: Scenario = {
  name: 'T10/throws',
  title: 'a check-back throws: the broker asks the same api again, and the batch becomes orders',
  alone: true,
  drainFirst: true,
  async run(context) {
    const buyers = await leaveOneOpen(context);
    const point = context.random.pick(['check_before_resolve', 'check_after_resolve']);
    const asked = await context.start('api', { failPoint: `${point}=throw` });
    await context.reached(asked, point);
    context.faultEnded();
    await untilUnanswered(context, asked);
    expectEqual(await isRecorded(context.stack, buyers.saleId), false, `an answer after ${point}`);
    await expectAskedAgain(context, buyers, asked);
  },
};

/** The broker gives up half a minute after the half message, instead of an hour (720). */
const CHECKS_MAX = 3;

const NO_API: Scenario = {
  name: 'T11',
  title: 'no api runs until the broker gives up its half messages: only batches that hold units are re-driven',
  alone: true,
  async run(context) {
    const { stack } = context;
    const [{ saleId }, { proxy, env }] = await Promise.all([
      context.openSale({ stock: STOCK }),
      context.proxy('broker'),
    ]);
    const buyers = context.buyers(saleId, () => context.programs.running.filter(({ name }) => name === 'api'));
    const sent = batchIdsOn(proxy);
    const held = userIds(context.random.whole(1, 6), 'held-');
    await context.start('worker');
    const killAt = async (point: string, users: readonly string[]): Promise<void> => {
      const api = await context.start('api', { env, failPoint: point });
      await buyers.rush(users, users.length, { url: api.url });
      await context.diedAt(api, point);
    };
    let unheldIds: string[] = [];
    let heldIds: readonly string[] = [];
    await withBrokerSetting(stack, 'transactionCheckMax', CHECKS_MAX, async () => {
      await killAt('after_half', ['unheld']);
      unheldIds = [...sent];
      await killAt('after_deduct', held);
      heldIds = await pendingBatchesOf(stack, saleId);
      for (const batchId of [...unheldIds, ...heldIds]) {
        await context.observed('the broker gave up a half message', () => isGivenUp(stack, batchId));
      }
    });
    expectEqual(unheldIds.length, 1, 'half messages without a deduct');
    expectAtLeast(heldIds.length, 1, 'batches that hold units');
    expectEqual(await batchesWithRows(stack, saleId), [], 'batches with rows while no api runs');

    const keeper = await context.start('keeper', { env: { REDRIVE_AFTER_MS: '1000', KEEPER_EVERY_MS: '200' } });
    context.faultEnded();
    await context.until('batches that hold units become orders', () => isRecorded(stack, saleId));
    expectAtLeast(await readMetric(keeper, 'seckill_redriven_batches_total'), heldIds.length, 'batches re-driven');
    expectEqual((await batchesWithRows(stack, saleId)).sort(), [...heldIds].sort(), 'batches with rows');
    await context.expectFigures(saleId, { failedRows: 0 }, 'nothing failed');
    expectEqual([...(await markersOf(stack, saleId)).keys()].sort(), [...heldIds].sort(), 'batches with a marker');

    await context.start('api');
    await expectOneOrderEach(context, buyers, ['unheld', ...held]);
  },
};

const TERM: Scenario = {
  name: 'T13/term',
  title: 'SIGTERM comes with batches in flight: every batch is answered, and the api exits within 10 s',
  async run(context) {
    const [{ api: other }, { saleId }, leaving] = await Promise.all([
      context.healthyPrograms(),
      context.openSale({ stock: 10_000 }),
      context.start('api'),
    ]);
    let api = leaving;
    const buyers = context.buyers(saleId, () => [api]);
    const options = { parallel: 24, pauseMs: 5, tries: 1 };
    const load = await buyers.startLoadUntil(options, context.random.whole(100, 400));
    const startedMs = Date.now();
    leaving.signal('SIGTERM');
    api = other; // like a load balancer
    await context.observed('the api has gone', () => !leaving.running);
    const tookMs = Date.now() - startedMs;
    context.faultEnded();
    await load.stop();
    expectFields(await leaving.exit, { code: 0, signal: null }, 'its exit');
    expectBelow(tookMs, DRAIN_MS, 'ms until it had gone');
    const { rows } = await context.expectInvariants(saleId);
    expectEqual(rows, buyers.opLog.count('ok'), 'rows and accepted purchases: every batch was answered');
    await expectRowPerAccepted(context, buyers);
  },
};

const STALL: Scenario = {
  name: 'T13/stall',
  title: 'an api stalls after a half message until its batch is aborted: the late deduct takes nothing',
  alone: true,
  drainFirst: true,
  async run(context) {
    const { stack } = context;
    const [other, { saleId }, redis] = await Promise.all([
      context.start('api'),
      context.openSale({ stock: STOCK }),
      context.proxy('redis'),
      context.start('worker'),
      context.start('keeper'),
    ]);
    const stalled = await context.start('api', { env: { ...redis.env, ...PATIENT } });
    const buyers = context.buyers(saleId, [stalled]);
    const users = userIds(context.random.whole(1, 6));
    let awake = false;
    atScriptCall(redis.proxy, 'deduct', async () => {
      stalled.signal('SIGSTOP');
      await context.until('it goes on', () => awake);
    });
    const answers = buyers.rush(users, users.length);
    const isAborted = async (): Promise<boolean> => (await abortedBatchesOf(stack, saleId)).length > 0;
    await context.observed('the check-back aborted the batch of a stalled api', isAborted);
    const before = await abortedBatchesOf(stack, saleId);
    expectEqual(await unitsLeftOf(stack, saleId), STOCK, 'units left');
    stalled.signal('SIGCONT');
    awake = true;
    context.faultEnded();
    await answers;
    const inFlight = (): Promise<number> => readMetric(stalled, 'seckill_batches_in_flight');
    await context.until('every late deduct has its answer', async () => (await inFlight()) === 0);
    const after = await markersOf(stack, saleId);
    for (const id of before) expectEqual(after.get(id), 'aborted', `the marker of ${id}, which never changes`);
    for (const again of await buyers.rush(users, users.length, { tries: 20, url: other.url })) {
      expectOneOf(again?.status, [200, 202], 'the answer to the same key');
    }
    const { rows, unitsLeft } = await context.expectInvariants(saleId);
    expectEqual([rows, unitsLeft], [users.length, STOCK - users.length], 'rows and units left');
    expectAtLeast(buyers.opLog.count('ok'), users.length, 'accepted purchases');
  },
};

export const CHECK_BACKS_SCENARIOS: readonly Scenario[] = [DEATHS, THROWS, NO_API, TERM, STALL];
