import { bucketKeys } from '../../../src/redis/keys.js';
import type { Arena } from '../arena.js';
import { withBrokerSetting } from '../harness/broker-settings.js';
import { batchIdsOn } from '../harness/broker-wire.js';
import { biteInTries } from '../harness/bite-in-tries.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectFields, expectOneOf } from '../harness/expect.js';
import { isGivenUp } from '../harness/half-messages.js';
import { readMetric } from '../harness/metrics.js';
import type { Program } from '../harness/programs.js';
import { atScriptCall } from '../harness/script-calls.js';
import { countDeductReplies } from '../harness/script-replies.js';
import { markersOf } from '../harness/stack-hands.js';
import type { TcpProxy } from '../harness/tcp-proxy.js';
import { until } from '../harness/until.js';
import type { Row } from '../row.js';

// T7 and T11: a check-back that meets a late deduct, and one that nobody hears.

const STOCK = 20;
/** The broker asks 11 to 16 s after the half message, more on a busy machine. */
const CHECK_BACK_MS = 80_000;
/** The most that can be set: a deduct that takes long is not given up. */
const PATIENT = { REDIS_REPLY_TIMEOUT_MS: '30000' };
/** Less than that: afterwards the api would ask what became of it by itself. */
const PATIENCE_MS = 28_000;
/** The broker may ask an api first that has just ended, and is not heard in time. */
const TRIES_MAX = 3;
const NO_REDRIVE = { REDRIVE_AFTER_MS: '3600000' };

async function abortedIn({ stack }: Arena, saleId: string): Promise<string[]> {
  return [...(await markersOf(stack, saleId))].flatMap(([batchId, word]) => (word === 'aborted' ? [batchId] : []));
}

const settledIn = async ({ stack }: Arena, saleId: string): Promise<boolean> =>
  (await stack.audit.store.pendingCount({ saleId, bucket: 0 })) === 0;

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

export const LATE_CHECK_BACK_ROWS: readonly Row[] = [ABORTED_FIRST, DEDUCTED_FIRST, NOBODY_THERE];
