import type { Arena } from '../context.js';
import { type Buyers, userIds } from '../harness/buyers.js';
import { expectAtLeast, expectBelow, expectEqual, expectFields, expectOneOf } from '../harness/expect.js';
import type { Program } from '../harness/programs.js';
import { type Markers, markersOf } from '../harness/stack-controls.js';
import { atScriptCall } from '../harness/traffic.js';
import type { Row } from '../scenario.js';

// T: the api and the transaction between half message and commit.

const STOCK = 20;
/** The broker asks 11 to 16 s after the half message, more on a busy machine. */
const CHECK_BACK_MS = 80_000;

/** What an api left behind that was killed at a fail point. */
interface Death {
  readonly saleId: string;
  readonly buyers: Buyers;
  readonly users: readonly string[];
  readonly unitsLeft: number;
  readonly pending: number;
  readonly markers: Markers;
}

/** Some buyers meet an api that dies at the point; from then on they ask one that lives. */
async function killAt(arena: Arena, point: string): Promise<Death> {
  const users = userIds(arena.random.whole(3, 8));
  const [{ api: survivor }, { saleId }, victim] = await Promise.all([
    arena.survivors(),
    arena.openSale({ stock: STOCK }),
    arena.start('api', { failPoint: point }),
  ]);
  let asked: Program = victim;
  const buyers = arena.buyers(saleId, () => [asked]);
  await buyers.rush(users, users.length);
  await arena.diedAt(victim, point);
  arena.faultEnded();
  asked = survivor;
  const snapshot = await arena.stack.audit.store.snapshot({ saleId, bucket: 0 });
  const { unitsLeft = Number.NaN, pending = [] } = snapshot ?? {};
  const markers = await markersOf(arena.stack, saleId);
  return { saleId, buyers, users, unitsLeft, pending: pending.length, markers };
}

/** Every buyer asks again with his key and has exactly one order at the end. */
async function expectOrdersAfter(arena: Arena, { saleId, buyers, users }: Death): Promise<void> {
  for (const again of await buyers.rush(users, users.length, { tries: 20 })) {
    expectOneOf(again?.status, [200, 202], 'the answer to the same key');
  }
  const figures = await arena.rest(saleId);
  const count = users.length;
  expectFields(figures, { rows: count, sold: count, unitsLeft: STOCK - count, failedRows: 0 }, 'one order each');
}

const nothingTaken = (death: Death): void =>
  expectFields(death, { unitsLeft: STOCK, pending: 0, markers: new Map() }, 'what the dead api left');

const DEATHS: readonly Row[] = [
  {
    id: 'T1',
    title: 'the api dies after precheck: nothing was sent and nothing taken; the retry is a first try',
    ...{ fast: true, alone: false },
    async run(arena) {
      const death = await killAt(arena, 'after_precheck');
      nothingTaken(death);
      expectEqual(death.buyers.opLog.count('unknown'), death.users.length, 'buyers who do not know');
      await expectOrdersAfter(arena, death);
    },
  },
  {
    id: 'T2',
    title: 'the api dies after the half message: the broker asks, the batch is aborted; the same key is accepted',
    ...{ fast: true, alone: false },
    async run(arena) {
      const death = await killAt(arena, 'after_half');
      nothingTaken(death);
      const aborted = async (): Promise<boolean> =>
        [...(await markersOf(arena.stack, death.saleId)).values()].includes('aborted');
      await arena.until('the check-back has aborted the batch', aborted, CHECK_BACK_MS);
      const untouched = await arena.rest(death.saleId);
      expectFields(untouched, { rows: 0, unitsLeft: STOCK }, 'nobody asked again yet');
      await expectOrdersAfter(arena, death);
    },
  },
  {
    ...{ id: 'T3', variant: 'after_deduct' },
    title: 'the api dies after deduct: the broker asks, the batch is committed; no second deduct',
    ...{ fast: true, alone: true }, // apis that die beside it would be asked in vain
    async run(arena) {
      const death = await killAt(arena, 'after_deduct');
      const { saleId, buyers, unitsLeft, markers } = death;
      expectAtLeast(death.pending, 1, 'batches deducted and not committed');
      expectOneOf('deducted', [...markers.values()], 'markers');
      expectEqual(buyers.opLog.count('ok'), 0, 'buyers who heard of it');
      const settled = async (): Promise<boolean> =>
        (await arena.stack.audit.store.pendingCount({ saleId, bucket: 0 })) === 0;
      await arena.until('the orders come without anybody asking again', settled, CHECK_BACK_MS);
      const healed = await arena.rest(saleId);
      expectFields(healed, { unitsLeft, rows: STOCK - unitsLeft }, 'no second deduct');
      await expectOrdersAfter(arena, death);
    },
  },
  {
    ...{ id: 'T3', variant: 'before_answer' },
    title: 'the api dies before the answer: what the buyers never heard is theirs all the same',
    ...{ fast: false, alone: true }, // the same
    async run(arena) {
      const death = await killAt(arena, 'before_answer');
      expectBelow(death.unitsLeft, STOCK, 'units were taken');
      expectEqual(death.buyers.opLog.count('ok'), 0, 'buyers who heard of it');
      await expectOrdersAfter(arena, death);
    },
  },
  {
    ...{ id: 'T3', variant: 'after_commit' },
    title: 'the api dies after commit: the worker records it, whether its buyers heard the answer or not',
    ...{ fast: true, alone: false },
    async run(arena) {
      const death = await killAt(arena, 'after_commit');
      expectBelow(death.unitsLeft, STOCK, 'units were taken');
      expectOneOf('deducted', [...death.markers.values()], 'markers');
      await expectOrdersAfter(arena, death);
    },
  },
];

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

export const TRANSACTION_SCENARIOS: readonly Row[] = [
  ...DEATHS,
  LOST_COMMIT,
  LOST_ROLLBACK,
  LOST_HALF_REPLY,
  LOST_DEDUCT_REPLY,
  SILENT_AFTER_DEDUCT,
];
