import { readFileSync } from 'node:fs';
import { sealBatch } from '../../domain/batch.js';
import { silentLog } from '../../ports/log.js';
import { createStockLedger } from '../../redis/stock-ledger.js';
import type { Arena } from '../arena.js';
import { expectOneRequest, wordOf } from '../harness/answers.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { expectAtLeast, expectBelow, expectEqual, expectFields, expectOneOf } from '../harness/expect.js';
import { goneBuyers } from '../harness/gone-buyers.js';
import { readMeter, sumMeter } from '../harness/meters.js';
import type { Program } from '../harness/programs.js';
import { atScriptCall } from '../harness/script-calls.js';
import { markersOf } from '../harness/stack-hands.js';
import type { ProxiedServer } from '../proxied-server.js';
import type { Row } from '../row.js';

// G: purchases that share a batch, and batches that compete.

/** How long half messages take where something has to happen between precheck and deduct. */
const HALF_MS = 1000;
/** A slow machine may let a try run out; the same key is asked again then. */
const TRIES = { tries: 5 };
/** One batch at a time, and time for those behind it. */
const ONE_SLOT = { BATCH_IN_FLIGHT_MAX: '1', BATCH_WAIT_MAX_MS: '20000', ROCKETMQ_REQUEST_TIMEOUT_MS: '10000' };

const onTheWay = (apis: readonly Program[]): Promise<number> => sumMeter(apis, 'seckill_batches_in_flight');
const inQueue = (apis: readonly Program[]): Promise<number> => sumMeter(apis, 'seckill_queue_purchases');

/** Apis that send one batch at a time; the way to the broker can be held, so that a crowd meets in one batch. */
class HeldApis {
  readonly apis: readonly Program[];
  readonly #arena: Arena;
  readonly #broker: ProxiedServer;

  private constructor(arena: Arena, apis: readonly Program[], broker: ProxiedServer) {
    this.#arena = arena;
    this.apis = apis;
    this.#broker = broker;
  }

  static async start(arena: Arena, count: number, env: Readonly<Record<string, string>> = {}): Promise<HeldApis> {
    const broker = await arena.proxy('broker');
    const start = () => arena.start('api', { env: { ...broker.env, ...ONE_SLOT, ...env } });
    return new HeldApis(arena, await Promise.all(Array.from({ length: count }, start)), broker);
  }

  /** Sends one buyer ahead to each api: until `letGo` everybody who comes waits for the next batch. */
  async hold(buyers: Buyers): Promise<void> {
    this.#broker.proxy.fallSilent();
    this.apis.forEach(({ url }, index) => void buyers.buy(`ahead${index}`, { url, ...TRIES }));
    await this.#arena.until('a slot is taken at each', async () => (await onTheWay(this.apis)) === this.apis.length);
  }

  async untilWaiting(purchases: number): Promise<void> {
    await this.#arena.until(`${purchases} wait`, async () => (await inQueue(this.apis)) === purchases);
  }

  /** Lets those ahead pass. @returns when the next batches are at precheck; their deduct comes `halfMs` later */
  async letGo(halfMs = 0): Promise<void> {
    this.#broker.proxy.requestDelayMs = halfMs;
    this.#broker.proxy.speak();
    await this.#arena.until('the batches are on their way', async () => (await inQueue(this.apis)) === 0, 20_000, 10);
    this.#broker.proxy.requestDelayMs = 0; // of what comes behind the half messages
  }
}

const COMPETING: Row = {
  id: 'G1',
  title:
    'two apis with a full batch each and units for one: a batch that does not fit takes nothing, survivors go again',
  ...{ fast: false, alone: false },
  async run(arena) {
    const UNITS = 40;
    const [{ saleId }, held] = await Promise.all([
      arena.openSale({ stock: UNITS + 2 }),
      HeldApis.start(arena, 2, { BATCH_SIZE_MAX: '64' }),
      arena.survivors(),
    ]);
    const { apis } = held;
    const buyers = arena.buyers(saleId, apis);
    await held.hold(buyers);
    const sizes = apis.map(() => arena.random.whole(24, 38)); // some of the batch that loses still fit
    const crowds = apis.map(({ url }, index) => {
      const users = userIds(sizes[index] as number, `crowd${index}-`);
      return buyers.rush(users, users.length, { url, ...TRIES });
    });
    await held.untilWaiting(sizes.reduce((sum, size) => sum + size));
    await held.letGo(HALF_MS);
    const answers = (await Promise.all(crowds)).flat();
    await arena.bite(
      'a batch that had passed precheck did not fit',
      async () => (await sumMeter(apis, 'seckill_batches_total{verdict="refused"}')) >= 1,
    );
    arena.faultEnded();
    expectEqual(answers.filter((answer) => wordOf(answer) === 'yes').length, UNITS, 'buyers who have a unit');
    for (const answer of answers) expectOneOf(wordOf(answer), ['yes', 'sold_out'], 'the answer');
    const refused = await sumMeter(apis, 'seckill_batches_total{verdict="refused"}');
    expectBelow(refused, 5, 'refused batches: each round ends somebody for good');
    expectFields(await arena.rest(saleId), { sold: UNITS + 2, unitsLeft: 0, failedRows: 0 }, 'every unit sold');
  },
};

const REFUSED_LATE: Row = {
  id: 'G2',
  title: 'a key or a limit is used up at another api after precheck: that buyer hears why, the others go again',
  ...{ fast: false, alone: false },
  async run(arena) {
    const [{ saleId }, held] = await Promise.all([
      arena.openSale({ stock: 200, limitPerBuyer: 2 }),
      HeldApis.start(arena, 2),
      arena.survivors(),
    ]);
    const { apis } = held;
    const buyers = arena.buyers(saleId, apis);
    await held.hold(buyers);
    const [here = '', there = ''] = arena.random.shuffled(apis.map(({ url }) => url));
    const at = (userId: string, url: string, requestId: string, quantity: number) =>
      buyers.buy(userId, { url, requestId, quantity, ...TRIES });
    const sizes = apis.map(() => arena.random.whole(5, 30));
    const neighbours = apis.map(({ url }, index) => {
      const users = userIds(sizes[index] as number, `crowd${index}-`);
      return buyers.rush(users, users.length, { url, ...TRIES });
    });
    const odd = Promise.all([
      Promise.all([at('lim', here, 'k1', 2), at('lim', there, 'k2', 2)]),
      Promise.all([at('twice', here, 'k1', 1), at('twice', there, 'k1', 1)]),
      Promise.all([at('other', here, 'k1', 1), at('other', there, 'k1', 2)]),
    ]);
    await held.untilWaiting(sizes.reduce((sum, size) => sum + size, 6));
    await held.letGo(HALF_MS);
    const [limit, twice, other] = await odd;
    const around = (await Promise.all(neighbours)).flat();
    await arena.bite(
      'deduct refused a batch that precheck had let through',
      async () => (await sumMeter(apis, 'seckill_batches_total{verdict="refused"}')) >= 1,
    );
    arena.faultEnded();
    expectEqual(limit.map(wordOf).sort(), ['limit_reached', 'yes'], 'two keys beyond the limit');
    expectEqual(twice.map(wordOf), ['yes', 'yes'], 'one key twice');
    expectEqual(other.map(wordOf).sort(), ['request_conflict', 'yes'], 'one key with two quantities');
    for (const answer of around) expectEqual(wordOf(answer), 'yes', 'the answer to a neighbour');
    expectFields(await arena.rest(saleId), { rows: around.length + 5, failedRows: 0 }, 'one order each');
  },
};

const REPLY_TIMEOUT_MS = 2000;
/** Behind its time-out, and in time for the reply of decide, which comes behind it. */
const LATE_REPLY_MS = 2500;

const LOST_REFUSAL: Row = {
  id: 'G4',
  title:
    'the reply of a refused deduct is lost: decide says aborted, survivors go again once, a late deduct is refused',
  ...{ fast: false, alone: false },
  async run(arena) {
    const { stack, random } = arena;
    const redis = await arena.proxy('redis');
    const [{ saleId }, held, { api: other }] = await Promise.all([
      arena.openSale({ stock: 100 }),
      HeldApis.start(arena, 1, { ...redis.env, REDIS_REPLY_TIMEOUT_MS: String(REPLY_TIMEOUT_MS) }),
      arena.survivors(),
    ]);
    const [api] = held.apis as [Program];
    const buyers = arena.buyers(saleId, [api]);
    await held.hold(buyers);
    const users = userIds(random.whole(3, 20));
    const crowd = buyers.rush(users, users.length, TRIES);
    const late = buyers.buy('late', { requestId: 'k2', ...TRIES });
    await held.untilWaiting(users.length + 1);
    const usedUp: string[] = [];
    const useUp = async (): Promise<void> => {
      usedUp.push(wordOf(await buyers.buy('late', { requestId: 'k1', url: other.url, ...TRIES })));
      redis.proxy.replyDelayMs = LATE_REPLY_MS; // the deduct itself passes now
    };
    atScriptCall(redis.proxy, 'deduct', useUp, 2); // the first is of the buyer ahead
    await held.letGo();
    await arena.bite('the reply of deduct comes too late', () => redis.proxy.delayedBytes > 0, 30_000);
    redis.proxy.replyDelayMs = 0; // what comes behind it is not overtaken
    await arena.bite('it was given up, and decide asked', () => api.log.includes('no reply to deduct'));
    arena.faultEnded();
    for (const answer of await crowd) expectEqual(wordOf(answer), 'yes', 'the answer to a neighbour');
    expectEqual([...usedUp, wordOf(await late)], ['yes', 'limit_reached'], 'two keys of the late buyer');
    expectEqual(await readMeter(api, 'seckill_batches_total{verdict="aborted"}'), 1, 'batches decided aborted');

    const aborted = [...(await markersOf(stack, saleId))].filter(([, marker]) => marker === 'aborted');
    expectEqual(aborted.length, 1, 'aborted markers');
    const again = sealBatch({
      ...{ batchId: aborted[0]?.[0] ?? '', saleId, bucket: 0, epoch: 1, createdAtMs: Date.now(), trace: '' },
      purchases: users.map((userId) => ({ userId, requestId: 'k1', quantity: 1 })),
    });
    const verdict = await createStockLedger(stack.redis, silentLog).deduct(again);
    expectEqual(verdict.outcome, 'aborted', 'a late copy of the refused deduct');
    expectFields(await arena.rest(saleId), { rows: users.length + 2, failedRows: 0 }, 'one order each');
  },
};

const TWICE_IN_ONE: Row = {
  id: 'G5',
  title:
    'in one batch a buyer with two keys at limit 1, and one key twice: one of the two is held, equal keys hear the same',
  ...{ fast: false, alone: false },
  async run(arena) {
    const [{ saleId }, held] = await Promise.all([
      arena.openSale({ stock: 100 }),
      HeldApis.start(arena, 1),
      arena.survivors(),
    ]);
    const [api] = held.apis as [Program];
    const buyers = arena.buyers(saleId, [api]);
    await held.hold(buyers);
    const users = userIds(arena.random.whole(3, 20));
    const pressed = Promise.all([
      buyers.rush(users, users.length, TRIES),
      Promise.all(['k1', 'k2'].map((requestId) => buyers.buy('two', { requestId, ...TRIES }))),
      Promise.all(['k1', 'k1', 'k1'].map((requestId) => buyers.buy('twice', { requestId, ...TRIES }))),
    ]);
    await held.untilWaiting(users.length + 3);
    await held.letGo();
    const [crowd, two, twice] = await pressed;
    const batches = async (): Promise<unknown> =>
      arena.stack.mysql.query(
        'SELECT COUNT(*) AS purchases FROM orders WHERE sale_id = ? GROUP BY batch_id ORDER BY purchases',
        [saleId],
      );
    const shared = JSON.stringify([{ purchases: '1' }, { purchases: String(users.length + 2) }]);
    await arena.bite('they shared one batch', async () => JSON.stringify(await batches()) === shared);
    arena.faultEnded();
    expectEqual(two.map(wordOf).sort(), ['limit_reached', 'yes'], 'two keys of one buyer');
    expectOneRequest(twice, 'k1');
    for (const answer of crowd) expectEqual(wordOf(answer), 'yes', 'the answer');
    expectFields(await arena.rest(saleId), { rows: users.length + 3, failedRows: 0 }, 'one order each');
  },
};

const GONE: Row = {
  id: 'G7',
  title:
    'buyers reset their connection in the queue and in a batch: the batch is carried to its end, neighbours unharmed',
  ...{ fast: false, alone: false },
  async run(arena) {
    const { random } = arena;
    const [{ saleId }, held, { api: other }] = await Promise.all([
      arena.openSale({ stock: 200 }),
      HeldApis.start(arena, 1),
      arena.survivors(),
    ]);
    const [api] = held.apis as [Program];
    let asked = api;
    const buyers = arena.buyers(saleId, () => [asked]);
    await held.hold(buyers);
    const stay = userIds(random.whole(3, 15), 'stay');
    const queued = goneBuyers(buyers, api, userIds(random.whole(3, 15), 'queued'));
    const carried = goneBuyers(buyers, api, userIds(random.whole(3, 15), 'carried'));
    const crowd = buyers.rush(stay, stay.length, TRIES);
    const all = stay.length + queued.size + carried.size;
    await held.untilWaiting(all);
    await queued.reset();
    await arena.bite('buyers left the queue', async () => (await inQueue([api])) > 0);
    await held.letGo(HALF_MS);
    await carried.reset();
    await arena.bite('buyers left a batch', async () => (await onTheWay([api])) === 1);
    arena.faultEnded();
    for (const answer of await crowd) expectEqual(wordOf(answer), 'yes', 'the answer to a neighbour');
    const atLeast = 1 + stay.length + carried.size;
    await arena.until('the batch became orders', async () => (await arena.rest(saleId)).rows >= atLeast, 30_000);
    asked = other;
    await buyers.askAgain();
    expectEqual(buyers.opLog.count('unknown'), 0, 'buyers who do not know');
    expectFields(await arena.rest(saleId), { rows: 1 + all, failedRows: 0 }, 'one order each');
  },
};

const rssMib = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

const QUEUE_FULL: Row = {
  id: 'G8',
  title: 'the broker stalls for 5 s at ten times the load: 503 overloaded before any half message, memory bounded',
  ...{ fast: false, alone: true },
  async run(arena) {
    const QUEUE_MAX = 64;
    const { stack, random } = arena;
    const [api] = await Promise.all([
      arena.start('api', {
        env: { BATCH_SIZE_MAX: '32', BATCH_QUEUE_MAX: String(QUEUE_MAX), BATCH_WAIT_MAX_MS: '1000' },
      }),
      arena.start('worker'),
      arena.start('keeper'),
    ]);
    const { saleId } = await arena.openSale({ stock: 100_000 });
    const buyers = arena.buyers(saleId, [api]);
    const { opLog } = buyers;
    const load = buyers.startLoad({ parallel: 16, pauseMs: 20, tries: 1 });
    const before = random.whole(100, 400);
    await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);
    const rush = buyers.startLoad({ parallel: 160, pauseMs: 20, tries: 1, prefix: 'rush' });
    await arena.until('ten times as many', () => opLog.requests > 1000, 30_000);
    const sent = () => readMeter(api, 'seckill_half_send_seconds_count');
    const overloaded = () => readMeter(api, 'seckill_http_answers_total{route="purchase",code="overloaded"}');

    const broker = stack.servers.server('proxy');
    broker.kill('SIGSTOP');
    const stoppedMs = performance.now();
    const [sentBefore, refusedBefore, rssBeforeMib] = [await sent(), await overloaded(), rssMib(api.pid)];
    let rssMaxMib = rssBeforeMib;
    let queueMax = 0;
    const watch = async (): Promise<boolean> => {
      rssMaxMib = Math.max(rssMaxMib, rssMib(api.pid));
      queueMax = Math.max(queueMax, await inQueue([api]));
      return performance.now() - stoppedMs >= 5000;
    };
    await arena.until('five seconds are over', watch, 20_000);
    const refused = (await overloaded()) - refusedBefore;
    const sentMeanwhile = (await sent()) - sentBefore;
    broker.kill('SIGCONT');
    arena.faultEnded();
    await arena.bite('buyers heard overloaded', () => refused > QUEUE_MAX);
    expectBelow(queueMax, QUEUE_MAX + 1, 'purchases in the queue');
    expectBelow(sentMeanwhile, 3 * 3 + 1, 'half messages that ended in 5 s: three slots, a time-out of 3 s');
    expectBelow(rssMaxMib - rssBeforeMib, 100, 'MiB that the api grew by');
    await rush.stop();
    const okBefore = opLog.count('ok');
    await arena.until('it sells again', () => opLog.count('ok') > okBefore + 100, 30_000);
    await load.stop();
    await buyers.askAgain();
    expectFields(await arena.rest(saleId), { failedRows: 0 }, 'nothing failed');
    expectEqual(opLog.count('unknown'), 0, 'buyers who do not know');
  },
};

const EVERY_SLOT: Row = {
  id: 'G9',
  title:
    'the way to the broker falls silent with a batch in every slot: time-outs free the slots, a lone buyer is served',
  ...{ fast: false, alone: false },
  async run(arena) {
    const { random } = arena;
    const SLOTS = 3;
    const broker = await arena.proxy('broker');
    const env = { ...broker.env, BATCH_IN_FLIGHT_MAX: String(SLOTS), ROCKETMQ_REQUEST_TIMEOUT_MS: '1500' };
    const [{ saleId }, api] = await Promise.all([
      arena.openSale({ stock: 100_000 }),
      arena.start('api', { env }),
      arena.survivors(),
    ]);
    const buyers = arena.buyers(saleId, [api]);
    const { opLog } = buyers;
    broker.proxy.requestDelayMs = 50; // half messages and commits are both on their way at any moment
    const load = buyers.startLoad({ parallel: 48, pauseMs: 5, tries: 1 });
    const before = random.whole(100, 300);
    await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);
    const hung = async (): Promise<number> =>
      (await readMeter(api, 'seckill_half_send_seconds_count{outcome="outcome_unknown"}')) +
      (await readMeter(api, 'seckill_half_end_failures_total'));
    const hungBefore = await hung();
    broker.proxy.fallSilent();
    await arena.bite('every slot hangs', async () => (await onTheWay([api])) === SLOTS);
    await arena.bite('each of them ran into its time-out', async () => (await hung()) >= hungBefore + SLOTS);
    await load.stop();
    await arena.until('the slots are free', async () => (await onTheWay([api])) === 0);
    broker.proxy.requestDelayMs = 0;
    broker.proxy.speak();
    arena.faultEnded();
    const startedMs = performance.now();
    const lone = await buyers.buy('lone');
    expectEqual(lone?.status, 202, 'the answer to a lone buyer');
    expectBelow(performance.now() - startedMs, 1500, 'ms that he waited');
    await buyers.askAgain();
    expectEqual(opLog.count('unknown'), 0, 'buyers who do not know');
    const { rows } = await arena.rest(saleId);
    expectEqual(rows, opLog.count('ok'), 'rows and buyers who heard yes');
  },
};

interface Recorded {
  readonly orders: readonly string[];
  readonly failed: readonly string[];
}

const POISON: Row = {
  id: 'G10',
  title:
    'MySQL refuses one purchase of a batch: it fails and is released, its 63 neighbours are orders in the same COMMIT',
  ...{ fast: true, alone: false },
  mayFail: ['refused_by_database'],
  async run(arena) {
    const { mysql } = arena.stack;
    const [{ saleId }, held] = await Promise.all([
      arena.openSale({ stock: 100 }),
      HeldApis.start(arena, 1, { BATCH_SIZE_MAX: '64' }),
      arena.survivors(),
    ]);
    const poison = `poison-${saleId}`;
    const trigger = `refuse_${saleId}`;
    await mysql.execute(
      `CREATE TRIGGER ${trigger} BEFORE INSERT ON orders FOR EACH ROW IF NEW.user_id = '${poison}'
         AND NEW.state <> 'failed' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'poison'; END IF`,
    );
    try {
      const buyers = arena.buyers(saleId, held.apis);
      await held.hold(buyers);
      const users = arena.random.shuffled([...userIds(63), poison]);
      const pressed = buyers.rush(users, users.length, TRIES);
      await held.untilWaiting(users.length);
      await held.letGo();
      for (const answer of await pressed) expectEqual(wordOf(answer), 'yes', 'the answer');
      const rowOf = () =>
        mysql.query<{ batch_id: string; state: string; reason: string }>(
          'SELECT batch_id, state, reason FROM orders WHERE sale_id = ? AND user_id = ?',
          [saleId, poison],
        );
      await arena.bite('MySQL refused the purchase', async () => (await rowOf())[0]?.reason === 'refused_by_database');
      arena.faultEnded();
      const [row] = await rowOf();
      const promised = await mysql.query<{ payload: string }>(
        "SELECT payload FROM outbox WHERE kind = 'batch_recorded' AND `key` = ?",
        [row?.batch_id ?? ''],
      );
      const recorded = promised.map(({ payload }) => JSON.parse(payload) as Recorded);
      const counts = recorded.map(({ orders, failed }) => [orders.length, failed.length]);
      expectEqual(counts, [[63, 1]], 'orders and failed rows of the one transaction of the batch');
      const told = async (): Promise<unknown> => (await buyers.status(poison)).json.reason;
      await arena.until('its buyer hears why', async () => (await told()) === 'refused_by_database', 30_000);
      const figures = await arena.rest(saleId);
      expectFields(figures, { rows: 65, failedRows: 1, sold: 64, unitsLeft: 36 }, 'its unit went back');
      expectAtLeast(await sumMeter(held.apis, 'seckill_batch_size_sum'), 65, 'purchases in batches');
    } finally {
      await mysql.execute(`DROP TRIGGER IF EXISTS ${trigger}`);
    }
  },
};

export const FULL_BATCH_ROWS: readonly Row[] = [
  COMPETING,
  REFUSED_LATE,
  LOST_REFUSAL,
  TWICE_IN_ONE,
  GONE,
  QUEUE_FULL,
  EVERY_SLOT,
  POISON,
];
