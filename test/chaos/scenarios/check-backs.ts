import type { ScenarioContext } from '../context.js';
import { isGivenUp, withBrokerSetting } from '../harness/broker.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectOneOf } from '../harness/expect.js';
import { expectOneOrderEach, expectRowPerAccepted } from '../harness/load.js';
import { clockStep, NO_REDRIVE, readMetric, type Program } from '../harness/programs.js';
import {
  abortedBatchesOf,
  batchesWithRows,
  isRecorded,
  markersOf,
  pendingBatchesOf,
  unitsLeftOf,
} from '../harness/sale-state.js';
import { atScriptCall, batchIdsOn } from '../harness/traffic.js';
import { ask } from '../harness/http.js';
import type { Scenario } from '../scenario.js';

// T10 to T13: a check-back goes wrong or gets no answer, the clock of an api is wrong, or an api stalls.

const STOCK = 20;
/** The longest that can be set: a slow deduct does not time out. */
const PATIENT = { REDIS_REPLY_TIMEOUT_MS: '30000' };

/** An api dies with a batch that is deducted and not committed; then none runs. @returns its buyers */
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

/** The api could not answer a check-back. */
function untilUnanswered(context: ScenarioContext, api: Program): Promise<void> {
  const unanswered = (): Promise<number> => readMetric(api, 'seckill_check_backs_total{answer="no_answer"}');
  return context.until('the broker got no answer', async () => (await unanswered()) > 0);
}

/** After a check-back without an answer the broker asks the same api again, and gets a commit. */
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

const THROWS: Scenario = {
  name: 'T10/throws',
  title: 'a check-back throws: the broker gets no answer and asks the same api again, orders follow',
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

/** Instead of 720, an hour: the broker gives up half a minute after the half message. */
const CHECKS_MAX = 3;

const NO_API: Scenario = {
  name: 'T11',
  title:
    'no api runs until the broker gives up its half messages: what holds units is re-driven, the rest leaves nothing',
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
    await context.until('what holds units becomes orders', () => isRecorded(stack, saleId));
    expectAtLeast(await readMetric(keeper, 'seckill_redriven_batches_total'), heldIds.length, 'batches re-driven');
    expectEqual((await batchesWithRows(stack, saleId)).sort(), [...heldIds].sort(), 'batches with rows');
    await context.expectFigures(saleId, { failedRows: 0 }, 'nothing failed');
    expectEqual([...(await markersOf(stack, saleId)).keys()].sort(), [...heldIds].sort(), 'batches with a marker');

    await context.start('api');
    await expectOneOrderEach(context, buyers, ['unheld', ...held]);
  },
};

const STALL: Scenario = {
  name: 'T13/stall',
  title: 'an api stalls between half message and deduct until its batch is aborted: the late deduct takes nothing',
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

const AHEAD_MS = 60_000;
const BEHIND_MS = -10_000;
/** More than the 72 h that the broker keeps messages for. */
const LONG_AGO_MS = -80 * 3_600_000;
/** Tokens were issued before the time that the wrong clock shows, so all that is wrong is the dates of messages. */
const ISSUED_AGO_MS = 81 * 3_600_000;
const LONG_LIFE = { JWT_LIFE_MAX_MS: String(ISSUED_AGO_MS + 2 * 3_600_000) };

/** Sets the clock of a running api wrong, and waits until its `/readyz` says by how much. */
async function setWrong(context: ScenarioContext, api: Program, stepMs: number): Promise<void> {
  api.signal('SIGUSR2');
  const isReported = async (): Promise<boolean> => {
    const { status, text } = await ask(`${api.operatorsUrl}/readyz`);
    const [, skewMs] = /clock skew (-?\d+) ms/.exec(text) ?? [];
    return status === 503 && Math.abs(Number(skewMs) - stepMs) < 1_000;
  };
  await context.observed(`/readyz reports a skew of ${stepMs} ms`, isReported);
}

const LONG_AGO: Scenario = {
  name: 'T12/long_ago',
  title: 'the clock of an api is 80 h behind: the broker drops a half message for its age, the batch is re-driven',
  alone: true,
  async run(context) {
    const { stack } = context;
    const { saleId } = await context.openSale({ stock: STOCK });
    const [wrong] = await Promise.all([
      context.start('api', { preload: [clockStep(LONG_AGO_MS)], failPoint: 'drop_commit', env: LONG_LIFE }),
      context.start('worker'),
    ]);
    await setWrong(context, wrong, LONG_AGO_MS);
    const buyers = context.buyers(saleId, [wrong]);
    buyers.issuedAgoMs = ISSUED_AGO_MS;
    const users = userIds(context.random.whole(2, 8));
    for (const answer of await buyers.rush(users, users.length)) expectEqual(answer?.status, 202, 'a purchase');
    await context.reached(wrong, 'drop_commit');
    const isLast = async (): Promise<boolean> => (await pendingBatchesOf(stack, saleId)).length === 1;
    await context.until('all but one batch are recorded', isLast);
    const [batchId = ''] = await pendingBatchesOf(stack, saleId);
    await context.observed('the broker gave up its half message', () => isGivenUp(stack, batchId));
    expectEqual(await pendingBatchesOf(stack, saleId), [batchId], 'batches without orders');

    const keeper = await context.start('keeper', { env: { REDRIVE_AFTER_MS: '1000', KEEPER_EVERY_MS: '200' } });
    context.faultEnded();
    await context.until('it becomes orders', () => isRecorded(stack, saleId));
    expectAtLeast(await readMetric(keeper, 'seckill_redriven_batches_total'), 1, 'batches re-driven');
    const figures = { rows: users.length, sold: users.length, failedRows: 0 };
    await context.expectFigures(saleId, figures, 'an order for each accepted purchase');
  },
};

const START_UP: Scenario = {
  name: 'T12/start_up',
  title: 'programs start with a clock 60 s ahead, 10 s or 80 h behind: each refuses to start and says why',
  noSale: true,
  async run(context) {
    const steps = context.random.shuffled([AHEAD_MS, BEHIND_MS, LONG_AGO_MS]);
    const refusals = await Promise.all(
      (['api', 'worker', 'keeper'] as const).map((name, nth) =>
        context.startRefused(name, { preload: [clockStep(steps[nth] ?? AHEAD_MS, { atStart: true })] }),
      ),
    );
    const isExplained = ({ log }: Program): boolean => /clock skew -?\d{4,} ms.*set the clock/.test(log);
    const explained = context.programs.all.every(isExplained);
    await context.observed('each refused to start, and said why', () => refusals.every((one) => one) && explained);
    context.faultEnded();
    const { running } = await context.start('api', { preload: [clockStep(AHEAD_MS)] });
    expectEqual(running, true, 'with the right time it starts');
  },
};

export const CHECK_BACKS_SCENARIOS: readonly Scenario[] = [THROWS, NO_API, LONG_AGO, START_UP, STALL];
