import { bucketKeys } from '../../../src/redis/keys.js';
import type { Arena } from '../context.js';
import { isGivenUp, withBrokerSetting } from '../harness/broker.js';
import { type Buyers, userIds } from '../harness/buyers.js';
import { expectAtLeast, expectBelow, expectEqual, expectFields, expectOneOf } from '../harness/expect.js';
import { biteInTries } from '../harness/load.js';
import { type Program, readMetric } from '../harness/programs.js';
import { markersOf } from '../harness/stack-controls.js';
import type { TcpProxy } from '../harness/tcp-proxy.js';
import { atScriptCall, batchIdsOn, countDeductReplies } from '../harness/traffic.js';
import { until } from '../harness/wait.js';
import type { Row } from '../scenario.js';

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

/** The most that can be set: a deduct that takes long is not given up. */
const PATIENT = { REDIS_REPLY_TIMEOUT_MS: '30000' };
/** Less than that: afterwards the api would ask what became of it by itself. */
const PATIENCE_MS = 28_000;
/** The broker may ask an api first that has just ended, and is not heard in time. */
const TRIES_MAX = 3;

async function abortedIn({ stack }: Arena, saleId: string): Promise<string[]> {
  return [...(await markersOf(stack, saleId))].flatMap(([batchId, word]) => (word === 'aborted' ? [batchId] : []));
}

async function batchesWithRows({ stack }: Arena, saleId: string): Promise<string[]> {
  const sql = 'SELECT DISTINCT batch_id FROM orders WHERE sale_id = ?';
  return (await stack.mysql.query<{ batch_id: string }>(sql, [saleId])).map(({ batch_id: batchId }) => batchId);
}

/** Api of the buyers, through a proxy before Redis that can hold a deduct back. */
export interface Delayed {
  readonly proxy: TcpProxy;
  readonly buyers: Buyers;
}

/**
 * Buyers press, and no deduct of theirs reaches Redis before a check-back has aborted a batch, which another api must
 * do. Then the deducts arrive, and that of the aborted batch takes nothing.
 */
export async function abortBeforeDeduct(arena: Arena, delayed: Delayed, users: readonly string[]): Promise<void> {
  const { proxy, buyers } = delayed;
  const { saleId } = buyers;
  const before = await abortedIn(arena, saleId);
  const isAborted = async (): Promise<boolean> => (await abortedIn(arena, saleId)).length > before.length;
  const refusals = countDeductReplies(proxy, 'aborted');
  let passed = false;
  atScriptCall(proxy, 'deduct', async () => {
    await arena.until('the check-back comes first', isAborted, CHECK_BACK_MS);
    passed = true;
  });
  const answers = buyers.rush(users, users.length);
  await arena.bite('a check-back aborted the batch of a deduct under way', () => passed, CHECK_BACK_MS);
  await arena.bite('that deduct heard aborted', () => refusals() > 0);
  await answers;
  const aborted = (await abortedIn(arena, saleId)).filter((batchId) => !before.includes(batchId));
  expectAtLeast(aborted.length, 1, 'batches that stayed aborted');
  const recorded = await batchesWithRows(arena, saleId);
  expectEqual(
    recorded.filter((batchId) => aborted.includes(batchId)),
    [],
    'aborted batches with rows',
  );
}

/** Everybody asks again with the same key, and each has one order. */
export async function expectOneOrderEach(
  arena: Arena,
  buyers: Buyers,
  users: readonly string[],
  url?: string,
): Promise<void> {
  const parts = url === undefined ? { tries: 20 } : { tries: 20, url };
  for (const again of await buyers.rush(users, users.length, parts)) {
    expectOneOf(again?.status, [200, 202], 'the answer to the same key');
  }
  const count = buyers.opLog.count('ok');
  const { stock, ...figures } = await arena.rest(buyers.saleId);
  const expected = { rows: count, sold: count, unitsLeft: stock - count, failedRows: 0 };
  expectFields(figures, expected, 'one order each');
}

/** After an outage: everybody asks until he knows, and nothing is on its way any more. */
async function allAccepted(arena: Arena, buyers: Buyers, users: readonly string[]): Promise<void> {
  await buyers.rush(users, users.length, { tries: 20 });
  await arena.until('their batches become orders', () => settledIn(arena, buyers.saleId), CHECK_BACK_MS);
}

const ABORTED_FIRST: Row = {
  ...{ id: 'T7', variant: 'aborted_first' },
  title: 'a deduct is under way until a check-back has aborted its batch: it takes nothing, the same key is accepted',
  ...{ fast: false, alone: true, drained: true },
  async run(arena) {
    const users = userIds(arena.random.whole(1, 6));
    const [other, { saleId }, { proxy, env }] = await Promise.all([
      arena.start('api'),
      arena.openSale({ stock: STOCK }),
      arena.proxy('redis'),
      ...[arena.start('worker'), arena.start('keeper', { env: NO_REDRIVE })],
    ]);
    const buyers = arena.buyers(saleId, [await arena.start('api', { env: { ...env, ...PATIENT } })]);
    await abortBeforeDeduct(arena, { proxy, buyers }, users);
    arena.faultEnded();
    await expectOneOrderEach(arena, buyers, users, other.url);
  },
};

const DEDUCTED_FIRST: Row = {
  ...{ id: 'T7', variant: 'deducted_first' },
  title: 'Redis stands still with a deduct before it until the broker asks: deducted, committed, one order each',
  ...{ fast: false, alone: true, drained: true },
  async run(arena) {
    const [{ saleId }, { proxy, env }] = await Promise.all([arena.openSale({ stock: STOCK }), arena.proxy('redis')]);
    const [api] = await Promise.all([
      arena.start('api', { env: { ...env, ...PATIENT } }),
      arena.start('worker'),
      arena.start('keeper', { env: NO_REDRIVE }),
    ]);
    const buyers = arena.buyers(saleId, [api]);
    const server = arena.stack.servers.server('redis');
    let deducts = (): number => 0;
    const users: string[] = [];
    await biteInTries(arena, 'the broker asked while the deduct waited in Redis', TRIES_MAX, async (tries) => {
      const some = userIds(arena.random.whole(1, 6), `${tries}-`);
      users.push(...some);
      let asked = false;
      deducts = countDeductReplies(proxy, 'deducted');
      atScriptCall(proxy, 'deduct', () => {
        server.kill('SIGSTOP');
        // behind the deduct, on its connection
        atScriptCall(proxy, 'resolve', () => void (asked = true), 1, bucketKeys({ saleId, bucket: 0 }).tx);
      });
      const answers = buyers.rush(some, some.length);
      await until('the broker asks', () => asked, PATIENCE_MS).catch(() => undefined);
      expectEqual(deducts(), 0, 'deducts that were answered');
      const inTime = asked;
      server.kill('SIGCONT');
      arena.faultEnded();
      await answers;
      if (!inTime) await allAccepted(arena, buyers, some);
      return inTime;
    });
    await arena.until('its batch becomes orders', () => settledIn(arena, saleId), CHECK_BACK_MS);
    const answered = async () => (await readMetric(api, 'seckill_check_backs_total{answer="commit"}')) > 0;
    await arena.until('the check-back committed, too', answered);
    expectEqual(await abortedIn(arena, saleId), [], 'batches that were aborted');
    expectAtLeast(deducts(), 1, 'deducts that took units');
    await expectOneOrderEach(arena, buyers, users);
  },
};

/** Instead of 720, an hour: the broker gives up half a minute after the half message. */
const CHECKS_MAX = 3;
const GIVEN_UP_MS = 90_000;

/** Buyers meet an api that dies. @returns once none runs */
async function killAt(arena: Arena, buyers: Buyers, dying: Program, point: string, users: string[]): Promise<void> {
  await buyers.rush(users, users.length, { url: dying.url });
  await arena.diedAt(dying, point);
}

const NOBODY_THERE: Row = {
  id: 'T11',
  title:
    'no api runs until the broker gives its half messages up: what holds units is re-driven, the rest leaves nothing',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack } = arena;
    const [{ saleId }, { proxy, env }] = await Promise.all([arena.openSale({ stock: STOCK }), arena.proxy('broker')]);
    const buyers = arena.buyers(saleId, () => arena.programs.running.filter(({ name }) => name === 'api'));
    const sent = batchIdsOn(proxy);
    const held = userIds(arena.random.whole(1, 6), 'held-');
    await arena.start('worker');
    let unheldIds: string[] = [];
    let heldIds: readonly string[] = [];
    await withBrokerSetting(stack, 'transactionCheckMax', CHECKS_MAX, async () => {
      const first = await arena.start('api', { env, failPoint: 'after_half' });
      await killAt(arena, buyers, first, 'after_half', ['unheld']);
      unheldIds = [...sent];
      const second = await arena.start('api', { env, failPoint: 'after_deduct' });
      await killAt(arena, buyers, second, 'after_deduct', held);
      heldIds = (await stack.audit.store.snapshot({ saleId, bucket: 0 }))?.pending ?? [];
      for (const batchId of [...unheldIds, ...heldIds]) {
        await arena.bite('the broker gave a half message up', () => isGivenUp(stack, batchId), GIVEN_UP_MS);
      }
    });
    expectEqual(unheldIds.length, 1, 'half messages without a deduct');
    expectAtLeast(heldIds.length, 1, 'batches that hold units');
    expectEqual(await batchesWithRows(arena, saleId), [], 'batches with rows while no api runs');

    const keeper = await arena.start('keeper', { env: { REDRIVE_AFTER_MS: '1000', KEEPER_EVERY_MS: '200' } });
    arena.faultEnded();
    await arena.until('what holds units becomes orders', () => settledIn(arena, saleId), 40_000);
    expectAtLeast(await readMetric(keeper, 'seckill_redriven_batches_total'), heldIds.length, 'batches re-driven');
    expectEqual((await batchesWithRows(arena, saleId)).sort(), [...heldIds].sort(), 'batches with rows');
    expectFields(await arena.rest(saleId), { failedRows: 0 }, 'nothing failed');
    expectEqual([...(await markersOf(stack, saleId)).keys()].sort(), [...heldIds].sort(), 'batches with a marker');

    await arena.start('api');
    await expectOneOrderEach(arena, buyers, ['unheld', ...held]);
  },
};

export const CHECK_BACKS_SCENARIOS: readonly Row[] = [
  DEATHS,
  THROWS,
  REDIS_AWAY,
  TERM,
  STALL,
  ABORTED_FIRST,
  DEDUCTED_FIRST,
  NOBODY_THERE,
];
