import type { ScenarioContext } from '../context.js';
import { isGivenUp, openForMs } from '../harness/broker.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { expectAtLeast, expectEqual } from '../harness/expect.js';
import { ask } from '../harness/http.js';
import { expectOneOrderEach } from '../harness/load.js';
import { clockStep, NO_REDRIVE, readMetric, type Program } from '../harness/programs.js';
import { isRecorded, markersOf, pendingBatchesOf } from '../harness/sale-state.js';
import { found } from '../harness/wait.js';
import type { Scenario } from '../scenario.js';
import { abortBeforeDeduct } from './check-backs.js';

// T12: the clock of an api is wrong, and the client of the broker dates half messages with it.

const STOCK = 20;
/** `transactionTimeOut` of the broker. A younger half message gets no check-back. */
const CHECKED_AFTER_MS = 10_000;
const AHEAD_MS = 60_000;
const BEHIND_MS = -10_000;
/** Beyond the 72 h for which the broker keeps messages. */
const LONG_AGO_MS = -80 * 3_600_000;
/** The broker may ask an api that has just ended, and five seconds later the next api. */
const TRIES_MAX = 3;
/** Tokens were issued before the time that the wrong clock shows, so that only the dates of messages are wrong. */
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

/** Loses a commit. @returns how long its half message was open until a check-back committed it, ms */
async function openAfterLostCommit(
  context: ScenarioContext,
  buyers: Buyers,
  wrong: Program,
  userId: string,
): Promise<number> {
  const { stack } = context;
  const before = await markersOf(stack, buyers.saleId);
  expectEqual((await buyers.buy(userId, { url: wrong.url }))?.status, 202, 'a purchase');
  await context.reached(wrong, 'drop_commit');
  const [batchId = ''] = [...(await markersOf(stack, buyers.saleId)).keys()].filter((id) => !before.has(id));
  return found('a check-back commits', () => openForMs(stack, batchId));
}

/** Half messages that seem older than they are, or from the future, are checked at once. */
const CHECKED_EARLY = (
  [
    ['ahead', AHEAD_MS, '60 s ahead'],
    ['behind', BEHIND_MS, '10 s behind'],
  ] as const
).map(([variant, stepMs, what]): Scenario => ({
  name: `T12/${variant}`,
  title: `the clock of an api is ${what}: /readyz reports it, and batches that early check-backs abort take nothing`,
  alone: true,
  drainFirst: true,
  async run(context) {
    const [{ saleId }, { proxy, env }] = await Promise.all([
      context.openSale({ stock: STOCK }),
      context.proxy('redis'),
    ]);
    const patient = { ...env, ...LONG_LIFE, REDIS_REPLY_TIMEOUT_MS: '30000' };
    const startWrong = (): Promise<Program> =>
      context.start('api', { preload: [clockStep(stepMs)], failPoint: 'drop_commit', env: patient });
    const [other] = await Promise.all([
      context.start('api', { env: LONG_LIFE }),
      context.start('worker'),
      context.start('keeper', { env: NO_REDRIVE }),
    ]);
    let wrong = await startWrong();
    const buyers = context.buyers(saleId, () => [wrong]);
    buyers.issuedAgoMs = ISSUED_AGO_MS;
    const early: string[] = [];
    await context.observedInTries(`a check-back came within ${CHECKED_AFTER_MS} ms`, TRIES_MAX, async (tries) => {
      if (tries > 1) wrong = await wrong.stop().then(startWrong); // each attempt loses a commit
      const userId = `early-${tries}`;
      early.push(userId);
      await setWrong(context, wrong, stepMs);
      // sooner than any half message with the right date
      return (await openAfterLostCommit(context, buyers, wrong, userId)) < CHECKED_AFTER_MS;
    });
    const users = userIds(context.random.whole(1, 6));
    await abortBeforeDeduct(context, proxy, buyers, users);
    context.faultEnded();
    await expectOneOrderEach(context, buyers, [...early, ...users], other);
  },
}));

const LONG_AGO: Scenario = {
  name: 'T12/long_ago',
  title: 'the clock of an api is 80 h behind: a batch whose half message the broker drops is re-driven',
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
    const isExplained = ({ log }: Program): boolean => /differ by \d{4,} ms\. Set the clocks/.test(log);
    const explained = context.programs.all.every(isExplained);
    await context.observed('each refused to start, and said why', () => refusals.every((one) => one) && explained);
    context.faultEnded();
    const { running } = await context.start('api', { preload: [clockStep(AHEAD_MS)] });
    expectEqual(running, true, 'with the right time it starts');
  },
};

export const API_CLOCKS_SCENARIOS: readonly Scenario[] = [...CHECKED_EARLY, LONG_AGO, START_UP];
