import type { Arena } from '../arena.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectFields, expectOneOf } from '../harness/expect.js';
import type { Program } from '../harness/programs.js';
import { atScriptCall } from '../harness/script-calls.js';
import { markersOf } from '../harness/stack-hands.js';
import type { Row } from '../row.js';

// T4 to T9: a commit, a rollback or a reply is lost on its way, and everybody lives.

const STOCK = 20;
/** The broker asks 11 to 16 s after the half message, more on a busy machine. */
const CHECK_BACK_MS = 80_000;
/** What a check-back must end is not ended by another way. */
const NO_REDRIVE = { REDRIVE_AFTER_MS: '3600000' };

const pendingIn = ({ stack }: Arena, saleId: string): Promise<number> =>
  stack.audit.store.pendingCount({ saleId, bucket: 0 });
const unitsLeftIn = async ({ stack }: Arena, saleId: string): Promise<number> =>
  (await stack.audit.store.snapshot({ saleId, bucket: 0 }))?.unitsLeft ?? Number.NaN;

async function expectAborted(arena: Arena, saleId: string): Promise<void> {
  const aborted = async (): Promise<boolean> =>
    [...(await markersOf(arena.stack, saleId)).values()].includes('aborted');
  await arena.until('the batch is aborted for good', aborted, CHECK_BACK_MS);
}

/** Everybody asks the other api again with the same key, and each has one order. */
async function expectOneOrderEach(
  arena: Arena,
  buyers: Buyers,
  users: readonly string[],
  other: Program,
): Promise<void> {
  for (const again of await buyers.rush(users, users.length, { tries: 20, url: other.url })) {
    expectOneOf(again?.status, [200, 202], 'the answer to the same key');
  }
  const { rows, sold, failedRows } = await arena.rest(buyers.saleId);
  const count = users.length;
  expectEqual([rows, sold, failedRows], [count, count, 0], 'rows, units sold, failed rows');
}

const LOST_COMMIT: Row = {
  id: 'T4',
  title: 'a commit is lost: the 202 stands, the check-back commits, one order each',
  ...{ fast: false, alone: true }, // apis that die beside it would be asked in vain
  async run(arena) {
    const users = userIds(arena.random.whole(1, 6));
    const [{ api: other }, { saleId }, lossy] = await Promise.all([
      arena.survivors(),
      arena.openSale({ stock: STOCK }),
      arena.start('api', { failPoint: 'drop_commit' }),
    ]);
    const buyers = arena.buyers(saleId, [lossy]);
    const watched = buyers.watch(users.slice(0, 1));
    for (const answer of await buyers.rush(users, users.length)) expectEqual(answer?.status, 202, 'the purchase');
    await arena.reached(lossy, 'drop_commit');
    arena.faultEnded();
    expectAtLeast(await pendingIn(arena, saleId), 1, 'batches deducted and not committed');
    const settled = async (): Promise<boolean> => (await pendingIn(arena, saleId)) === 0;
    await arena.until('the check-back commits', settled, CHECK_BACK_MS);
    await watched.stop();
    await arena.rest(saleId);
    await expectOneOrderEach(arena, buyers, users, other);
  },
};

const LOST_ROLLBACK: Row = {
  id: 'T5',
  title: 'the rollback of a refused batch is lost: its buyer hears outcome_unknown, then with the same key the truth',
  ...{ fast: false, alone: false },
  async run(arena) {
    const stock = arena.random.whole(1, 5);
    const [{ api: other }, { saleId }, redis] = await Promise.all([
      arena.survivors(),
      arena.openSale({ stock }),
      arena.proxy('redis'),
    ]);
    const env = { ...redis.env, REDIS_REPLY_TIMEOUT_MS: '10000' };
    const lossy = await arena.start('api', { env, failPoint: 'drop_rollback' });
    const [late, rivals] = [arena.buyers(saleId, [lossy]), arena.buyers(saleId, [other])];
    // between precheck and deduct others buy every unit
    atScriptCall(redis.proxy, 'deduct', async () => {
      await rivals.rush(userIds(stock, 'rival-'), stock, { tries: 5 });
    });
    const answer = await late.buy('ann');
    await arena.reached(lossy, 'drop_rollback');
    arena.faultEnded();
    expectEqual(rivals.opLog.count('ok'), stock, 'rivals who won');
    expectFields({ ...answer?.json }, { code: 'outcome_unknown' }, 'not the refusal');
    await expectAborted(arena, saleId);
    const truth = await late.buy('ann', { url: other.url });
    expectFields({ ...truth?.json }, { code: 'sold_out' }, 'the same key then');
    expectFields(await arena.rest(saleId), { rows: stock, sold: stock, unitsLeft: 0 }, 'orders of the rivals');
  },
};

const LOST_HALF_REPLY: Row = {
  id: 'T6',
  title: 'the reply to a half message is lost: outcome_unknown, no deduct follows, the check-back aborts it',
  ...{ fast: false, alone: false },
  async run(arena) {
    const users = userIds(arena.random.whole(1, 6));
    const [{ api: other }, { saleId }, lossy] = await Promise.all([
      arena.survivors(),
      arena.openSale({ stock: STOCK }),
      arena.start('api', { failPoint: 'drop_half_reply' }),
    ]);
    const buyers = arena.buyers(saleId, [lossy]);
    const answers = await buyers.rush(users, users.length);
    await arena.reached(lossy, 'drop_half_reply');
    arena.faultEnded();
    const unsure = answers.filter((answer) => answer?.json.code === 'outcome_unknown').length;
    expectAtLeast(unsure, 1, 'buyers who heard outcome_unknown');
    expectEqual(buyers.opLog.count('ok'), users.length - unsure, 'the others were served');
    expectEqual(await unitsLeftIn(arena, saleId), STOCK - users.length + unsure, 'units left: no deduct followed');
    await expectAborted(arena, saleId);
    await expectOneOrderEach(arena, buyers, users, other);
  },
};

const LOST_DEDUCT_REPLY: Row = {
  id: 'T8',
  title: 'the reply of the deduct of the last unit is lost: decide says deducted, 202, one deduct, no sold_out',
  ...{ fast: true, alone: false },
  async run(arena) {
    const [{ api: other }, { saleId }, redis] = await Promise.all([
      arena.survivors(),
      arena.openSale({ stock: 1 }),
      arena.proxy('redis'),
    ]);
    const lossy = await arena.start('api', { env: redis.env });
    const buyers = arena.buyers(saleId, [lossy]);
    atScriptCall(redis.proxy, 'deduct', () => void (redis.proxy.dropReplies = true));
    const bought = buyers.buy('ann');
    await arena.bite(
      'the reply of a deduct was dropped',
      async () => redis.proxy.droppedBytes > 0 && (await unitsLeftIn(arena, saleId)) === 0,
    );
    redis.proxy.dropReplies = false;
    redis.proxy.reset(); // who waited for it hears that the connection is gone
    arena.faultEnded();
    expectEqual((await bought)?.status, 202, 'the purchase of the last unit');
    const late = await buyers.buy('bob', { tries: 5 });
    expectFields({ ...late?.json }, { code: 'sold_out' }, 'the next buyer');
    await expectOneOrderEach(arena, buyers, ['ann'], other);
  },
};

const SILENT_AFTER_DEDUCT: Row = {
  id: 'T9',
  title: 'the reply of a deduct is lost, then Redis is silent: outcome_unknown, the check-back ends it, one order',
  ...{ fast: false, alone: true, drained: true }, // its api would swallow check-backs of rows beside it
  async run(arena) {
    const [other, { saleId }, redis] = await Promise.all([
      arena.start('api'),
      arena.openSale({ stock: STOCK }),
      arena.proxy('redis'),
      ...[arena.start('worker'), arena.start('keeper', { env: NO_REDRIVE })],
    ]);
    const cutOff = await arena.start('api', { env: { ...redis.env, REDIS_REPLY_TIMEOUT_MS: '500' } });
    const buyers = arena.buyers(saleId, [cutOff]);
    const { proxy } = redis;
    atScriptCall(proxy, 'deduct', () => void (proxy.dropReplies = true));
    const bought = buyers.buy('ann');
    await arena.bite(
      'the reply of a deduct was dropped, and Redis fell silent',
      async () => proxy.droppedBytes > 0 && (await unitsLeftIn(arena, saleId)) === STOCK - 1,
    );
    proxy.fallSilent();
    const answer = await bought;
    expectFields({ ...answer?.json }, { code: 'outcome_unknown' }, 'the purchase');
    expectEqual(await pendingIn(arena, saleId), 1, 'batches deducted and neither committed nor rolled back');
    const settled = async (): Promise<boolean> => (await pendingIn(arena, saleId)) === 0;
    await arena.until('the check-back ends it', settled, CHECK_BACK_MS);
    proxy.dropReplies = false;
    proxy.speak();
    arena.faultEnded();
    await expectOneOrderEach(arena, buyers, ['ann'], other);
    const served = async (): Promise<boolean> => (await buyers.buy('bob'))?.status === 202;
    await arena.until('the api that was cut off serves again', served);
  },
};

export const LOST_WORD_ROWS: readonly Row[] = [
  ...[LOST_COMMIT, LOST_ROLLBACK, LOST_HALF_REPLY, LOST_DEDUCT_REPLY, SILENT_AFTER_DEDUCT],
];
