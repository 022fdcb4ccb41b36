import type { Arena } from '../context.js';
import { isGivenUp, openForMs } from '../harness/broker.js';
import { type Buyers, userIds } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectFields } from '../harness/expect.js';
import { ask } from '../harness/http.js';
import { biteInTries } from '../harness/load.js';
import { clockStep, type Program, readMetric } from '../harness/programs.js';
import { markersOf } from '../harness/stack-controls.js';
import { found } from '../harness/wait.js';
import type { Row } from '../scenario.js';
import { abortBeforeDeduct, expectOneOrderEach } from './check-backs.js';

// T12: the clock of an api is wrong. The client of the broker dates half messages with it.

const STOCK = 20;
/** `transactionTimeOut` of the broker: it asks about no half message that is younger. */
const ASKED_AFTER_MS = 10_000;
const AHEAD_MS = 60_000;
const BEHIND_MS = -10_000;
/** More than the 72 h that the broker keeps messages for. */
const LONG_AGO_MS = -80 * 3_600_000;
/** The broker may ask an api first that has just ended; then it asks the next one five seconds later. */
const TRIES_MAX = 3;
const NO_REDRIVE = { REDRIVE_AFTER_MS: '3600000' };
const GIVEN_UP_MS = 60_000;

const pendingIn = async ({ stack }: Arena, saleId: string): Promise<readonly string[]> =>
  (await stack.audit.store.snapshot({ saleId, bucket: 0 }))?.pending ?? [];

/** Sets the clock of a running api wrong, and waits until its `/readyz` says by how much. */
async function setWrong(arena: Arena, api: Program, stepMs: number): Promise<void> {
  api.signal('SIGUSR2');
  const isTold = async (): Promise<boolean> => {
    const { status, text } = await ask(`${api.url}/readyz`);
    const [, skewMs] = /clock skew (-?\d+) ms/.exec(text) ?? [];
    return status === 503 && Math.abs(Number(skewMs) - stepMs) < 1_000;
  };
  await arena.bite(`/readyz refuses a skew of ${stepMs} ms`, isTold);
}

/** A commit is lost. @returns how long its half message was open until a check-back committed it, ms */
async function openAfterLostCommit(arena: Arena, buyers: Buyers, wrong: Program, userId: string): Promise<number> {
  const { stack } = arena;
  const before = await markersOf(stack, buyers.saleId);
  expectEqual((await buyers.buy(userId, { url: wrong.url }))?.status, 202, 'a purchase');
  await arena.reached(wrong, 'drop_commit');
  const [batchId = ''] = [...(await markersOf(stack, buyers.saleId)).keys()].filter((id) => !before.has(id));
  return found('a check-back commits', () => openForMs(stack, batchId), 2 * ASKED_AFTER_MS);
}

interface Wrong {
  readonly variant: string;
  readonly stepMs: number;
  readonly what: string;
}

/** Half messages that seem older than they are, or to come, are asked about at once. */
const EARLY: readonly Row[] = [
  { variant: 'ahead', stepMs: AHEAD_MS, what: '60 s ahead' },
  { variant: 'behind', stepMs: BEHIND_MS, what: '10 s behind' },
].map(({ variant, stepMs, what }: Wrong) => ({
  ...{ id: 'T12', variant },
  title: `the clock of an api is ${what}: /readyz says so, the broker asks too early, what it aborts takes nothing`,
  ...{ fast: false, alone: true, drained: true },
  async run(arena) {
    const [{ saleId }, { proxy, env }] = await Promise.all([arena.openSale({ stock: STOCK }), arena.proxy('redis')]);
    const patient = { ...env, REDIS_REPLY_TIMEOUT_MS: '30000' };
    const startWrong = (): Promise<Program> =>
      arena.start('api', { preload: [clockStep(stepMs)], failPoint: 'drop_commit', env: patient });
    const [other] = await Promise.all([
      arena.start('api'),
      arena.start('worker'),
      arena.start('keeper', { env: NO_REDRIVE }),
    ]);
    let wrong = await startWrong();
    const buyers = arena.buyers(saleId, () => [wrong]);
    const early: string[] = [];
    await biteInTries(arena, `the broker asked within ${ASKED_AFTER_MS} ms`, TRIES_MAX, async (tries) => {
      if (tries > 1) wrong = await wrong.stop().then(startWrong); // each loses one commit
      const userId = `early-${tries}`;
      early.push(userId);
      await setWrong(arena, wrong, stepMs);
      // sooner than any half message with a true date
      return (await openAfterLostCommit(arena, buyers, wrong, userId)) < ASKED_AFTER_MS;
    });
    const users = userIds(arena.random.whole(1, 6));
    await abortBeforeDeduct(arena, { proxy, buyers }, users);
    arena.faultEnded();
    await expectOneOrderEach(arena, buyers, [...early, ...users], other.url);
  },
}));

const LONG_AGO: Row = {
  ...{ id: 'T12', variant: 'long_ago' },
  title: 'the clock of an api is 80 h behind: the broker drops a half message for its age, its batch is re-driven',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { saleId } = await arena.openSale({ stock: STOCK });
    const [wrong] = await Promise.all([
      arena.start('api', { preload: [clockStep(LONG_AGO_MS)], failPoint: 'drop_commit' }),
      arena.start('worker'),
    ]);
    await setWrong(arena, wrong, LONG_AGO_MS);
    const buyers = arena.buyers(saleId, [wrong]);
    const users = userIds(arena.random.whole(2, 8));
    for (const answer of await buyers.rush(users, users.length)) expectEqual(answer?.status, 202, 'a purchase');
    await arena.reached(wrong, 'drop_commit');
    const isAlone = async (): Promise<boolean> => (await pendingIn(arena, saleId)).length === 1;
    await arena.until('all but one batch are recorded', isAlone, 30_000);
    const [batchId = ''] = await pendingIn(arena, saleId);
    await arena.bite('the broker gave its half message up', () => isGivenUp(arena.stack, batchId), GIVEN_UP_MS);
    expectEqual(await pendingIn(arena, saleId), [batchId], 'batches without orders');

    const keeper = await arena.start('keeper', { env: { REDRIVE_AFTER_MS: '1000', KEEPER_EVERY_MS: '200' } });
    arena.faultEnded();
    await arena.until('it becomes orders', async () => (await pendingIn(arena, saleId)).length === 0, 40_000);
    expectAtLeast(await readMetric(keeper, 'seckill_redriven_batches_total'), 1, 'batches re-driven');
    const figures = { rows: users.length, sold: users.length, failedRows: 0 };
    expectFields(await arena.rest(saleId), figures, 'an order for each yes');
  },
};

const SOLD_OUT: Row = {
  ...{ id: 'T12', variant: 'sold_out' },
  title: 'the clock of an api steps back 80 h while it refuses by its sold-out flag: a unit that comes back is sold',
  ...{ fast: false, alone: false },
  async run(arena) {
    const [{ saleId }, wrong] = await Promise.all([
      arena.openSale({ stock: 1 }),
      arena.start('api', { preload: [clockStep(LONG_AGO_MS)] }),
      arena.survivors(),
    ]);
    const buyers = arena.buyers(saleId, [wrong]);
    await buyers.buy('ann', { tries: 20 });
    const { json } = await buyers.status('ann', 'k1', 20);
    const crowd = buyers.startLoad({ parallel: 2, pauseMs: 10, tries: 1 });
    await untilFlagged(arena, wrong, buyers);
    await setWrong(arena, wrong, LONG_AGO_MS);
    const soldOut = buyers.opLog.soldOut.size;
    await arena.bite('it refuses buyers afterwards', () => buyers.opLog.soldOut.size > soldOut + 10);
    expectEqual((await buyers.move('cancel', 'ann', String(json.orderId)))?.status, 200, 'the cancellation');
    arena.faultEnded();
    await arena.until('somebody buys the unit that came back', () => buyers.opLog.count('ok') > 1, 30_000);
    await crowd.stop();
    expectFields(await arena.rest(saleId), { rows: 2, sold: 1, unitsLeft: 0 }, 'the unit, sold again');
  },
};

/** Waits until buyers are refused and no batch has its end meanwhile: nobody is asked any more. */
async function untilFlagged(arena: Arena, api: Program, { opLog }: Buyers): Promise<void> {
  let [batches, refused] = [Number.NaN, 0];
  const isFlagged = async (): Promise<boolean> => {
    const batchesBefore = batches;
    batches = await readMetric(api, 'seckill_batches_total');
    if (batches !== batchesBefore) refused = opLog.soldOut.size;
    return opLog.soldOut.size > refused + 10;
  };
  await arena.until('buyers are refused from memory', isFlagged);
}

const START_UP: Row = {
  ...{ id: 'T12', variant: 'start_up' },
  title: 'a program is started with a clock 60 s ahead, 10 s or 80 h behind: it refuses, and says why',
  ...{ fast: false, alone: false, books: 'none' },
  async run(arena) {
    const steps = arena.random.shuffled([AHEAD_MS, BEHIND_MS, LONG_AGO_MS]);
    const names = ['api', 'worker', 'keeper'] as const;
    const refusals = await Promise.all(
      names.map((name, nth) =>
        arena.start(name, { preload: [clockStep(steps[nth] ?? AHEAD_MS, { atStart: true })] }).then(
          () => false,
          () => true,
        ),
      ),
    );
    const isNamed = ({ log }: Program): boolean => /clock skew -?\d{4,} ms.*set the clock/.test(log);
    const named = arena.programs.all.every(isNamed);
    await arena.bite('each refused to start, and said why', () => refusals.every((one) => one) && named);
    arena.faultEnded();
    const { running } = await arena.start('api', { preload: [clockStep(AHEAD_MS)] });
    expectEqual(running, true, 'with a true clock it starts');
  },
};

export const API_CLOCKS_SCENARIOS: readonly Row[] = [...EARLY, LONG_AGO, SOLD_OUT, START_UP];
