import { setTimeout as sleep } from 'node:timers/promises';
import { silentLog } from '../../helpers/silent-log.js';
import { createStockStore } from '../../../src/redis/stock-store.js';
import type { ScenarioContext } from '../context.js';
import { batchOf } from '../harness/batches.js';
import { disconnectingBuyers, outcomeOf, userIds } from '../harness/buyers.js';
import { expectAtLeast, expectBelow, expectEqual, expectFields, expectOneOf } from '../harness/expect.js';
import {
  batchesInFlight,
  expectRowPerAccepted,
  HALF_MS,
  HeldApis,
  KILLS_MAX,
  queuedPurchases,
  TRIES,
  underLoad,
} from '../harness/load.js';
import { readMetric, sumMetric, type Program } from '../harness/programs.js';
import { abortedBatchesOf, pendingCountOf, unitsLeftOf } from '../harness/sale-state.js';
import { atScriptCall } from '../harness/traffic.js';
import { until } from '../harness/wait.js';
import type { Scenario } from '../scenario.js';
import { changeByHand } from '../harness/change-by-hand.js';

// G1 to G7, G10: many purchases in one batch, many concurrent batches, and refusals after precheck.

const sum = (sizes: readonly number[]): number => sizes.reduce((total, size) => total + size, 0);

const COMPETING: Scenario = {
  name: 'G1',
  title:
    'two apis compete for too few units: a batch that does not fit takes nothing, and its survivors are sent again',
  async run(context) {
    const UNITS = 40;
    const [{ saleId }, held] = await Promise.all([
      context.openSale({ stock: UNITS + 2 }),
      HeldApis.start(context, 2, { BATCH_SIZE_MAX: '64' }),
      context.healthyPrograms(),
    ]);
    const { apis } = held;
    const buyers = context.buyers(saleId, apis);
    await held.hold(buyers);
    const sizes = apis.map(() => context.random.whole(24, 38)); // some purchases of the losing batch still fit
    const rushes = apis.map(({ url }, index) => {
      const users = userIds(sizes[index] as number, `crowd${index}-`);
      return buyers.rush(users, users.length, { url, ...TRIES });
    });
    await held.untilQueued(sum(sizes));
    await held.proceed(HALF_MS);
    const answers = (await Promise.all(rushes)).flat();
    const refused = (): Promise<number> => sumMetric(apis, 'seckill_batches_total{verdict="refused"}');
    await context.observed('a batch that had passed precheck did not fit', async () => (await refused()) >= 1);
    context.faultEnded();
    const accepted = answers.filter((answer) => outcomeOf(answer) === 'accepted');
    expectEqual(accepted.length, UNITS, 'buyers who have a unit');
    for (const answer of answers) expectOneOf(outcomeOf(answer), ['accepted', 'sold_out'], 'the answer');
    expectBelow(await refused(), 5, 'refused batches: each round ends some purchases for good');
    await context.expectFigures(saleId, { sold: UNITS + 2, unitsLeft: 0, failedRows: 0 }, 'every unit sold');
  },
};

const REFUSED_LATE: Scenario = {
  name: 'G2',
  title: 'a key or a limit is used up at another api after precheck: only that buyer is refused',
  async run(context) {
    const [{ saleId }, held] = await Promise.all([
      context.openSale({ stock: 200, limitPerBuyer: 2 }),
      HeldApis.start(context, 2),
      context.healthyPrograms(),
    ]);
    const { apis } = held;
    const buyers = context.buyers(saleId, apis);
    await held.hold(buyers);
    const [here = '', there = ''] = context.random.shuffled(apis.map(({ url }) => url));
    const buyAt = (userId: string, url: string, requestId: string, quantity: number) =>
      buyers.buy(userId, { url, requestId, quantity, ...TRIES });
    const sizes = apis.map(() => context.random.whole(5, 30));
    const rushes = apis.map(({ url }, index) => {
      const users = userIds(sizes[index] as number, `crowd${index}-`);
      return buyers.rush(users, users.length, { url, ...TRIES });
    });
    const competing = Promise.all([
      Promise.all([buyAt('lim', here, 'k1', 2), buyAt('lim', there, 'k2', 2)]),
      Promise.all([buyAt('twice', here, 'k1', 1), buyAt('twice', there, 'k1', 1)]),
      Promise.all([buyAt('other', here, 'k1', 1), buyAt('other', there, 'k1', 2)]),
    ]);
    await held.untilQueued(sum(sizes) + 6);
    await held.proceed(HALF_MS);
    const [limit, twice, other] = await competing;
    const others = (await Promise.all(rushes)).flat();
    const refused = (): Promise<number> => sumMetric(apis, 'seckill_batches_total{verdict="refused"}');
    await context.observed('deduct refused a batch that had passed precheck', async () => (await refused()) >= 1);
    context.faultEnded();
    expectEqual(limit.map(outcomeOf).sort(), ['accepted', 'limit_reached'], 'two keys beyond the limit');
    expectEqual(twice.map(outcomeOf), ['accepted', 'accepted'], 'one key twice');
    expectEqual(other.map(outcomeOf).sort(), ['accepted', 'request_conflict'], 'one key with two quantities');
    for (const answer of others) expectEqual(outcomeOf(answer), 'accepted', 'another purchase of the batch');
    await context.expectFigures(saleId, { rows: others.length + 5, failedRows: 0 }, 'one order each');
  },
};

/** Time from the socket of a buyer to the queue of the api. If too short, the second batch is smaller. */
const QUEUED_MS = 300;

const BEFORE_RESUBMIT: Scenario = {
  name: 'G3',
  title: 'the api dies before it sends the survivors of a refused batch again: a retry counts as a first try',
  async run(context) {
    const STOCK = 20;
    const [{ api: other }, { saleId }, redis] = await Promise.all([
      context.healthyPrograms(),
      context.openSale({ stock: STOCK }),
      context.proxy('redis'),
    ]);
    // one slot, so that later purchases form the second batch
    const env = { ...redis.env, REDIS_REPLY_TIMEOUT_MS: '10000', BATCH_IN_FLIGHT_MAX: '1' };
    const victim = await context.start('api', { env, failPoint: 'before_resubmit' });
    let api = victim;
    const buyers = context.buyers(saleId, () => [api]);
    const users = userIds(context.random.whole(3, 6));
    const rivals = context.buyers(saleId, [other]);
    const others: Promise<unknown>[] = [];
    atScriptCall(redis.proxy, 'deduct', async () => {
      others.push(buyers.rush(users, users.length));
      // after precheck of the second batch, one of its buyers uses up the limit elsewhere
      atScriptCall(redis.proxy, 'deduct', async () => {
        await rivals.buy(users[0] as string, { requestId: 'k2', tries: 5 });
      });
      await until('all purchases are sent', () => buyers.opLog.requests >= users.length + 1);
      await sleep(QUEUED_MS);
    });
    const first = await buyers.buy('first');
    await context.diedAt(victim, 'before_resubmit');
    context.faultEnded();
    await Promise.all(others);
    api = other;
    expectEqual(rivals.opLog.count('ok'), 1, 'the purchase that used up a limit');
    const unknown = users.length + (first?.status === 202 ? 0 : 1);
    expectEqual(buyers.opLog.count('unknown'), unknown, 'purchases without an answer');
    expectEqual(await unitsLeftOf(context.stack, saleId), STOCK - 2, 'units left: the survivors never held any');
    await buyers.retryUnknown();
    const { rows, sold } = await context.expectInvariants(saleId);
    expectEqual([rows, sold], [users.length + 1, users.length + 1], 'rows and units sold'); // first, k2, survivors
  },
};

const REPLY_TIMEOUT_MS = 2000;
/** After the time-out of deduct, but in time for the later reply of resolve. */
const LATE_REPLY_MS = 2500;

const LOST_REFUSAL: Scenario = {
  name: 'G4',
  title: 'the reply to a refused deduct is lost: survivors are sent again once, and a late deduct is refused',
  async run(context) {
    const { stack, random } = context;
    const { proxy, env } = await context.proxy('redis');
    const [{ saleId }, held, { api: other }] = await Promise.all([
      context.openSale({ stock: 100 }),
      HeldApis.start(context, 1, { ...env, REDIS_REPLY_TIMEOUT_MS: String(REPLY_TIMEOUT_MS) }),
      context.healthyPrograms(),
    ]);
    const [api] = held.apis as [Program];
    const buyers = context.buyers(saleId, [api]);
    await held.hold(buyers);
    const users = userIds(random.whole(3, 20));
    const rush = buyers.rush(users, users.length, TRIES);
    const late = buyers.buy('late', { requestId: 'k2', ...TRIES });
    await held.untilQueued(users.length + 1);
    const usedUp: string[] = [];
    const useUp = async (): Promise<void> => {
      usedUp.push(outcomeOf(await buyers.buy('late', { requestId: 'k1', url: other.url, ...TRIES })));
      proxy.replyDelayMs = LATE_REPLY_MS; // the deduct itself passes now
    };
    atScriptCall(proxy, 'deduct', useUp, 2); // the first deduct belongs to the buyer ahead
    await held.proceed();
    await context.observed('the reply of deduct comes too late', () => proxy.delayedBytes > 0);
    proxy.replyDelayMs = 0; // later replies keep their order
    await context.observed('it timed out, and resolve was called', () =>
      api.log.includes('deduct gave no valid answer'),
    );
    context.faultEnded();
    for (const answer of await rush) expectEqual(outcomeOf(answer), 'accepted', 'another purchase of the batch');
    expectEqual([...usedUp, outcomeOf(await late)], ['accepted', 'limit_reached'], 'two keys of the late buyer');
    expectEqual(await readMetric(api, 'seckill_batches_total{verdict="aborted"}'), 1, 'batches resolved as aborted');

    const aborted = await abortedBatchesOf(stack, saleId);
    expectEqual(aborted.length, 1, 'aborted markers');
    const verdict = await createStockStore(stack.redis, silentLog).deduct(batchOf(saleId, users, aborted[0]));
    expectEqual(verdict.outcome, 'aborted', 'a late copy of the refused deduct');
    await context.expectFigures(saleId, { rows: users.length + 2, failedRows: 0 }, 'one order each');
  },
};

/** @returns two apis whose batches leave in turn, so that a batch is always under way */
async function startAll(context: ScenarioContext): Promise<Program[]> {
  const env = { BATCH_GATHER_MS: '0' };
  const [first, second] = await Promise.all([
    context.start('api', { env }),
    context.start('api', { env }),
    context.start('worker'),
    context.start('keeper'),
  ]);
  return [first, second];
}

const ALL_PROGRAMS_KILLED: Scenario = {
  name: 'G6',
  title: 'every program is killed at once under load and restarts: every batch ends by its own marker',
  fast: true,
  alone: true,
  async run(context) {
    const { stack, programs, random } = context;
    const [{ saleId }, firstApis] = await Promise.all([context.openSale({ stock: 100_000 }), startAll(context)]);
    let apis = firstApis;
    const buyers = context.buyers(saleId, () => apis);
    const killAll = async (): Promise<void> => {
      const exits = await Promise.all(random.shuffled(programs.running).map((program) => program.crash()));
      const allKilled = exits.length === 4 && exits.every(({ signal }) => signal === 'SIGKILL');
      await context.observed('all four programs were killed', () => allKilled);
    };
    await context.observedInTries('purchases were under way and batches open', KILLS_MAX, async (tries) => {
      const load = { parallel: 64, accepted: random.whole(400, 1200), prefix: `load-${tries}` };
      const { unanswered } = await underLoad(context, buyers, load, killAll);
      const open = await pendingCountOf(stack, saleId);
      apis = await startAll(context);
      return unanswered > 0 && open > 0;
    });
    context.faultEnded();
    const { sold, rows } = await context.expectInvariants(saleId);
    expectEqual(sold, rows, 'units deducted in Redis, and orders');
    await expectRowPerAccepted(context, buyers);
  },
};

const DISCONNECTED: Scenario = {
  name: 'G7',
  title: 'clients disconnect in the queue and in a batch: every purchase of the batch ends as usual',
  async run(context) {
    const { random } = context;
    const [{ saleId }, held, { api: other }] = await Promise.all([
      context.openSale({ stock: 200 }),
      HeldApis.start(context, 1),
      context.healthyPrograms(),
    ]);
    const [firstApi] = held.apis as [Program];
    let api = firstApi;
    const buyers = context.buyers(saleId, () => [api]);
    await held.hold(buyers);
    const stay = userIds(random.whole(3, 15), 'stay');
    const queued = disconnectingBuyers(buyers, firstApi, userIds(random.whole(3, 15), 'queued'));
    const carried = disconnectingBuyers(buyers, firstApi, userIds(random.whole(3, 15), 'carried'));
    const rush = buyers.rush(stay, stay.length, TRIES);
    const all = stay.length + queued.size + carried.size;
    await held.untilQueued(all);
    await queued.reset();
    await context.observed('clients left the queue', async () => (await queuedPurchases([firstApi])) > 0);
    await held.proceed(HALF_MS);
    await carried.reset();
    await context.observed('clients left a batch', async () => (await batchesInFlight([firstApi])) === 1);
    context.faultEnded();
    for (const answer of await rush) expectEqual(outcomeOf(answer), 'accepted', 'another purchase of the batch');
    const atLeast = 1 + stay.length + carried.size;
    const haveRows = async (): Promise<boolean> => (await context.expectInvariants(saleId)).rows >= atLeast;
    await context.until('the batch became orders', haveRows);
    api = other;
    await buyers.retryUnknown();
    expectEqual(buyers.opLog.count('unknown'), 0, 'purchases without an answer');
    await context.expectFigures(saleId, { rows: 1 + all, failedRows: 0 }, 'one order each');
  },
};

const REFUSED_BY_MYSQL: Scenario = {
  name: 'G10',
  title: 'MySQL refuses one purchase of a batch: it fails alone, and the other 63 become orders in one COMMIT',
  fast: true,
  mayFail: ['refused_by_database'],
  async run(context) {
    const { mysql } = context.stack;
    const [{ saleId }, held] = await Promise.all([
      context.openSale({ stock: 100 }),
      HeldApis.start(context, 1, { BATCH_SIZE_MAX: '64' }),
      context.healthyPrograms(),
    ]);
    const refused = `poison-${saleId}`;
    const trigger = `refuse_${saleId}`;
    const sql = `CREATE TRIGGER ${trigger} BEFORE INSERT ON orders FOR EACH ROW IF NEW.user_id = '${refused}'
      AND NEW.state <> 'failed' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'poison'; END IF`;
    await changeByHand(context.stack, [[sql]]);
    try {
      const buyers = context.buyers(saleId, held.apis);
      await held.hold(buyers);
      const users = context.random.shuffled([...userIds(63), refused]);
      const rush = buyers.rush(users, users.length, TRIES);
      await held.untilQueued(users.length);
      await held.proceed();
      for (const answer of await rush) expectEqual(outcomeOf(answer), 'accepted', 'the answer');
      const rowOf = () =>
        mysql.query<{ batch_id: string; state: string; reason: string }>(
          'SELECT batch_id, state, reason FROM orders WHERE sale_id = ? AND user_id = ?',
          [saleId, refused],
        );
      const isRefused = async (): Promise<boolean> => (await rowOf())[0]?.reason === 'refused_by_database';
      await context.observed('MySQL refused the purchase', isRefused);
      context.faultEnded();
      const [row] = await rowOf();
      const outbox = await mysql.query<{ payload: string }>(
        "SELECT payload FROM outbox WHERE kind = 'batch_recorded' AND `key` = ?",
        [row?.batch_id ?? ''],
      );
      const counts = outbox.map(({ payload }) => {
        const { orders, failed } = JSON.parse(payload) as { orders: readonly string[]; failed: readonly string[] };
        return [orders.length, failed.length];
      });
      expectEqual(counts, [[63, 1]], 'orders and failed rows of the one transaction of the batch');
      const reason = async (): Promise<unknown> => (await buyers.status(refused)).json.reason;
      await context.until('its buyer sees why', async () => (await reason()) === 'refused_by_database');
      const figures = await context.expectInvariants(saleId);
      expectFields(figures, { rows: 65, failedRows: 1, sold: 64, unitsLeft: 36 }, 'its unit went back');
      expectAtLeast(await sumMetric(held.apis, 'seckill_batch_size_sum'), 65, 'purchases in batches');
    } finally {
      await changeByHand(context.stack, [[`DROP TRIGGER IF EXISTS ${trigger}`]]);
    }
  },
};

const REFUSED_BY_REDIS: Scenario = {
  name: 'G14',
  title: 'the script always fails with some purchases of a batch: only these purchases are refused',
  fast: true,
  async run(context) {
    const { random } = context;
    const SIZE = 64;
    const [{ saleId }, held] = await Promise.all([
      context.openSale({ stock: 300, limitPerBuyer: 9 }),
      HeldApis.start(context, 1, { BATCH_SIZE_MAX: String(SIZE), FAILPOINT: 'poison_deduct' }),
      context.healthyPrograms(),
    ]);
    const [api] = held.apis as [Program];
    const buyers = context.buyers(saleId, held.apis);
    await held.hold(buyers);
    const bad = random.whole(1, 4);
    const users = random.shuffled([...userIds(SIZE - bad), ...userIds(bad, 'bad')]);
    const sent = users.map(async (user) => {
      const isBad = user.startsWith('bad');
      const answer = await buyers.buy(user, { requestId: isBad ? 'poison' : 'k1', ...TRIES });
      expectEqual(outcomeOf(answer), isBad ? 'refused_by_store' : 'accepted', `the answer to ${user}`);
    });
    await held.untilQueued(SIZE);
    await held.proceed();
    await Promise.all(sent);
    const refusedBatches = (): Promise<number> => readMetric(api, 'seckill_batches_total{verdict="refused_by_store"}');
    await context.observed('the script failed with the whole batch', async () => (await refusedBatches()) === 1);
    const halves = await readMetric(api, 'seckill_batch_step_seconds_count{step="half"}');
    expectBelow(
      halves,
      3 + 2 * bad * Math.log2(SIZE),
      'half messages: of the batch ahead, of the whole one, of its parts',
    );

    // One account sends many requests beside honest buyers.
    const BESIDE = 100;
    const attack = Array.from({ length: 4 }, async (_, lane) => {
      for (let nth = 0; nth < BESIDE / 4; nth++) await buyers.buy('mallory', { requestId: `poison-${lane}-${nth}` });
    });
    const beside = await buyers.rush(userIds(BESIDE, 'beside'), 8);
    await Promise.all(attack);
    context.faultEnded();
    for (const answer of beside) expectEqual(outcomeOf(answer), 'accepted', 'an honest buyer beside the attack');
    const lines = api.log.split('Redis refuses a purchase').length - 1;
    expectBelow(lines, bad + BESIDE + 1, 'lines of log: at most one for each purchase that was refused');
    await context.expectFigures(saleId, { rows: 1 + SIZE - bad + BESIDE, failedRows: 0 }, 'one order each');
  },
};

export const BATCHES_SCENARIOS: readonly Scenario[] = [
  COMPETING,
  REFUSED_LATE,
  BEFORE_RESUBMIT,
  LOST_REFUSAL,
  ALL_PROGRAMS_KILLED,
  DISCONNECTED,
  REFUSED_BY_MYSQL,
  REFUSED_BY_REDIS,
];
