import type { Arena } from '../arena.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { expectAtLeast, expectBelow, expectEqual, expectFields, expectOneOf } from '../harness/expect.js';
import { readMetric } from '../harness/metrics.js';
import type { Program } from '../harness/programs.js';
import { atScriptCall } from '../harness/script-calls.js';
import { markersOf } from '../harness/stack-hands.js';
import type { Row } from '../row.js';

// T10 and T13: a check-back goes wrong, an api is asked to stop, an api sleeps.

const STOCK = 20;
/** The broker asks 11 to 16 s after the half message, more on a busy machine. */
const CHECK_BACK_MS = 80_000;
const DRAIN_MS = 10_000;
/** Orders must come by check-back: a keeper that publishes the batch again would hide a rollback. */
const NO_REDRIVE = { REDRIVE_AFTER_MS: '3600000' };

const settledIn = async ({ stack }: Arena, saleId: string): Promise<boolean> =>
  (await stack.audit.store.pendingCount({ saleId, bucket: 0 })) === 0;

/** An api dies with a batch that is deducted and not committed; then none runs. @returns its buyers */
async function leaveOneOpen(arena: Arena, saleId: string): Promise<Buyers> {
  const victim = await arena.start('api', { failPoint: 'after_deduct' });
  const buyers = arena.buyers(saleId, () => arena.programs.running.filter(({ name }) => name === 'api'));
  const users = userIds(arena.random.whole(1, 6));
  await buyers.rush(users, users.length);
  await arena.diedAt(victim, 'after_deduct');
  expectEqual(await settledIn(arena, saleId), false, 'no open batch');
  return buyers;
}

/** An api that could not find out has told the broker so. */
function noAnswerGiven(arena: Arena, api: Program): Promise<void> {
  const none = (): Promise<number> => readMetric(api, 'seckill_check_backs_total{answer="no_answer"}');
  return arena.until('the broker got no answer', async () => (await none()) > 0);
}

/** Who asks again has his order, whatever became of the first try. */
async function expectOrders(arena: Arena, buyers: Buyers): Promise<void> {
  await arena.rest(buyers.saleId);
  await buyers.askAgain();
  expectEqual(buyers.opLog.count('unknown'), 0, 'buyers who do not know');
  const { rows, sold } = await arena.rest(buyers.saleId);
  expectEqual([rows, sold], [buyers.opLog.count('ok'), rows], 'rows and units sold');
}

const DEATHS: Row = {
  ...{ id: 'T10', variant: 'deaths' },
  title: 'the api that is asked dies before and after it decides: never a rollback, another is asked, orders come',
  ...{ fast: false, alone: true, drained: true },
  async run(arena) {
    const [{ saleId }] = await Promise.all([arena.openSale({ stock: STOCK }), arena.start('worker')]);
    await arena.start('keeper', { env: NO_REDRIVE });
    const buyers = await leaveOneOpen(arena, saleId);
    for (const point of arena.random.shuffled(['check_before_resolve', 'check_after_resolve'])) {
      const asked = await arena.start('api', { failPoint: point });
      await arena.diedAt(asked, point, CHECK_BACK_MS);
      expectEqual(await settledIn(arena, saleId), false, `an answer after ${point}`);
    }
    await arena.start('api');
    arena.faultEnded();
    await arena.until('another api is asked and commits', () => settledIn(arena, saleId), CHECK_BACK_MS);
    await expectOrders(arena, buyers);
  },
};

const THROWS: Row = {
  ...{ id: 'T10', variant: 'throws' },
  title: 'a check-back throws: that is no answer, the broker asks the same api again, orders come',
  ...{ fast: false, alone: true, drained: true },
  async run(arena) {
    const [{ saleId }] = await Promise.all([arena.openSale({ stock: STOCK }), arena.start('worker')]);
    await arena.start('keeper', { env: NO_REDRIVE });
    const buyers = await leaveOneOpen(arena, saleId);
    const point = arena.random.pick(['check_before_resolve', 'check_after_resolve']);
    const asked = await arena.start('api', { failPoint: point, failPointDo: 'throw' });
    await arena.reached(asked, point, CHECK_BACK_MS);
    arena.faultEnded();
    await noAnswerGiven(arena, asked);
    expectEqual(await settledIn(arena, saleId), false, `an answer after ${point}`);
    await arena.until('it is asked again and commits', () => settledIn(arena, saleId), CHECK_BACK_MS);
    expectEqual(asked.running, true, 'the same api');
    await expectOrders(arena, buyers);
  },
};

const REDIS_AWAY: Row = {
  ...{ id: 'T10', variant: 'redis' },
  title: 'Redis is silent when an api is asked: that is no answer, the broker asks again, orders come',
  ...{ fast: false, alone: true, drained: true },
  async run(arena) {
    const [{ saleId }] = await Promise.all([arena.openSale({ stock: STOCK }), arena.start('worker')]);
    await arena.start('keeper', { env: NO_REDRIVE });
    const buyers = await leaveOneOpen(arena, saleId);
    const redis = await arena.proxy('redis');
    const env = { ...redis.env, REDIS_REPLY_TIMEOUT_MS: '500' };
    let asked = false;
    const api = await arena.start('api', { env });
    atScriptCall(redis.proxy, 'resolve', () => {
      asked = true;
      redis.proxy.dropReplies = true;
    });
    await arena.bite('a check-back got no reply of Redis', () => asked && redis.proxy.droppedBytes > 0, CHECK_BACK_MS);
    expectEqual(await settledIn(arena, saleId), false, 'an answer without Redis');
    redis.proxy.dropReplies = false;
    redis.proxy.reset();
    arena.faultEnded();
    await noAnswerGiven(arena, api);
    await arena.until('it is asked again and commits', () => settledIn(arena, saleId), CHECK_BACK_MS);
    expectEqual(api.running, true, 'the same api');
    await expectOrders(arena, buyers);
  },
};

const TERM: Row = {
  ...{ id: 'T13', variant: 'term' },
  title: 'SIGTERM with batches in flight: every batch is answered, the api exits within 10 s',
  ...{ fast: false, alone: false },
  async run(arena) {
    const [{ api: other }, { saleId }, leaving] = await Promise.all([
      arena.survivors(),
      arena.openSale({ stock: 10_000 }),
      arena.start('api'),
    ]);
    let asked = leaving;
    const buyers = arena.buyers(saleId, () => [asked]);
    const { opLog } = buyers;
    const load = buyers.startLoad({ parallel: 24, pauseMs: 5, tries: 1 });
    const before = arena.random.whole(100, 400);
    await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);
    const startedMs = Date.now();
    leaving.signal('SIGTERM');
    asked = other; // as a load balancer does
    await arena.bite('the api has gone', () => !leaving.running);
    const tookMs = Date.now() - startedMs;
    arena.faultEnded();
    await load.stop();
    expectFields(await leaving.exit, { code: 0, signal: null }, 'its exit');
    expectBelow(tookMs, DRAIN_MS, 'ms until it had gone');
    const { rows } = await arena.rest(saleId);
    expectEqual(rows, opLog.count('ok'), 'rows and buyers who heard yes: every batch was answered');
    await buyers.askAgain();
    const settled = await arena.rest(saleId);
    expectEqual(settled.rows, opLog.count('ok'), 'rows and buyers who heard yes in the end');
  },
};

const STALL: Row = {
  ...{ id: 'T13', variant: 'stall' },
  title: 'an api sleeps between half message and deduct until its batch is aborted: the late deduct takes nothing',
  ...{ fast: false, alone: true, drained: true },
  async run(arena) {
    const [other, { saleId }, redis] = await Promise.all([
      arena.start('api'),
      arena.openSale({ stock: STOCK }),
      arena.proxy('redis'),
      ...[arena.start('worker'), arena.start('keeper')],
    ]);
    const sleeper = await arena.start('api', { env: { ...redis.env, REDIS_REPLY_TIMEOUT_MS: '30000' } });
    const buyers = arena.buyers(saleId, [sleeper]);
    const users = userIds(arena.random.whole(1, 6));
    const aborted = async (): Promise<string[]> =>
      [...(await markersOf(arena.stack, saleId))].filter(([, marker]) => marker === 'aborted').map(([id]) => id);
    let awake = false;
    atScriptCall(redis.proxy, 'deduct', async () => {
      sleeper.signal('SIGSTOP');
      await arena.until('it wakes up', () => awake, CHECK_BACK_MS * 2);
    });
    const answers = buyers.rush(users, users.length);
    const isAborted = async (): Promise<boolean> => (await aborted()).length > 0;
    await arena.bite('the check-back aborted the batch of an api that sleeps', isAborted, CHECK_BACK_MS);
    const before = await aborted();
    expectEqual((await arena.stack.audit.store.snapshot({ saleId, bucket: 0 }))?.unitsLeft, STOCK, 'units left');
    sleeper.signal('SIGCONT');
    awake = true;
    arena.faultEnded();
    await answers;
    const inFlight = (): Promise<number> => readMetric(sleeper, 'seckill_batches_in_flight');
    await arena.until('every late deduct has its answer', async () => (await inFlight()) === 0, 40_000);
    const after = await markersOf(arena.stack, saleId);
    for (const id of before) expectEqual(after.get(id), 'aborted', `the marker of ${id}, which never changes`);
    for (const again of await buyers.rush(users, users.length, { tries: 20, url: other.url })) {
      expectOneOf(again?.status, [200, 202], 'the answer to the same key');
    }
    const { rows, unitsLeft } = await arena.rest(saleId);
    expectEqual([rows, unitsLeft], [users.length, STOCK - users.length], 'rows and units left');
    expectAtLeast(buyers.opLog.count('ok'), users.length, 'buyers who heard yes');
  },
};

export const CHECK_BACK_ROWS: readonly Row[] = [DEATHS, THROWS, REDIS_AWAY, TERM, STALL];
