import { setTimeout as sleep } from 'node:timers/promises';
import { sealBatch } from '../../../src/core/batch.js';
import { silentLog } from '../../../src/core/ports/log.js';
import { createStockStore } from '../../../src/redis/stock-store.js';
import type { Arena } from '../context.js';
import { type Buyers, expectOneRequest, goneBuyers, userIds, wordOf } from '../harness/buyers.js';
import { expectAtLeast, expectBelow, expectEqual, expectFields, expectOneOf } from '../harness/expect.js';
import { biteInTries, HALF_MS, HeldApis, inQueue, KILLS_MAX, onTheWay, TRIES, underLoad } from '../harness/load.js';
import { type Program, readMetric, sumMetric } from '../harness/programs.js';
import { markersOf } from '../harness/stack-controls.js';
import { atScriptCall } from '../harness/traffic.js';
import { until } from '../harness/wait.js';
import type { Row } from '../scenario.js';

// G: many purchases in one batch, many batches at a time.

const STOCK = 20;
/** From the socket of a buyer to the queue of the api; too short only makes the second batch smaller. */
const QUEUED_MS = 300;

/** @returns the apis; their batches leave one after the other, so that some are under way at any moment */
async function startAll(arena: Arena): Promise<Program[]> {
  const env = { BATCH_GATHER_MS: '0' };
  const [first, second] = await Promise.all([
    arena.start('api', { env }),
    arena.start('api', { env }),
    arena.start('worker'),
    arena.start('keeper'),
  ]);
  return [first, second];
}

const BEFORE_RESUBMIT: Row = {
  id: 'G3',
  title: 'the api dies before survivors of a refused batch go again: they were never held, the same key is a first try',
  ...{ fast: false, alone: false },
  async run(arena) {
    const [{ api: other }, { saleId }, redis] = await Promise.all([
      arena.survivors(),
      arena.openSale({ stock: STOCK }),
      arena.proxy('redis'),
    ]);
    // one slot: while the first batch is under way, the others form the second
    const env = { ...redis.env, REDIS_REPLY_TIMEOUT_MS: '10000', BATCH_IN_FLIGHT_MAX: '1' };
    const victim = await arena.start('api', { env, failPoint: 'before_resubmit' });
    let asked = victim;
    const buyers = arena.buyers(saleId, () => [asked]);
    const users = userIds(arena.random.whole(3, 6));
    const rivals = arena.buyers(saleId, [other]);
    const rest: Promise<unknown>[] = [];
    atScriptCall(redis.proxy, 'deduct', async () => {
      rest.push(buyers.rush(users, users.length));
      // between precheck and deduct of the second batch, one of its buyers uses up his limit elsewhere
      atScriptCall(redis.proxy, 'deduct', async () => {
        await rivals.buy(users[0] as string, { requestId: 'k2', tries: 5 });
      });
      await sent(buyers, users.length + 1);
    });
    const first = await buyers.buy('first');
    await arena.diedAt(victim, 'before_resubmit');
    arena.faultEnded();
    await Promise.all(rest);
    asked = other;
    expectEqual(rivals.opLog.count('ok'), 1, 'the purchase that used up a limit');
    expectEqual(buyers.opLog.count('unknown'), users.length + (first?.status === 202 ? 0 : 1), 'who does not know');
    const { unitsLeft = Number.NaN } = (await arena.stack.audit.store.snapshot({ saleId, bucket: 0 })) ?? {};
    expectEqual(unitsLeft, STOCK - 2, 'units left: those of the survivors were never held');
    await buyers.askAgain();
    const { rows, sold } = await arena.rest(saleId);
    expectEqual([rows, sold], [users.length + 1, users.length + 1], 'rows and units sold'); // first, k2, survivors
  },
};

/** Waits until so many purchases have left their buyers, and a moment more until they are queued. */
async function sent({ opLog }: Buyers, purchases: number): Promise<void> {
  await until(`${purchases} purchases are sent`, () => opLog.requests >= purchases);
  await sleep(QUEUED_MS);
}

const GROUP_COMMIT_ROWS: readonly Row[] = [
  BEFORE_RESUBMIT,
  {
    id: 'G6',
    title: 'kill -9 of every program at once under load, then a new start: every batch ends by its own marker',
    ...{ fast: true, alone: true },
    async run(arena) {
      const { stack, programs, random } = arena;
      const [{ saleId }, firstApis] = await Promise.all([arena.openSale({ stock: 100_000 }), startAll(arena)]);
      let apis = firstApis;
      const buyers = arena.buyers(saleId, () => apis);
      const { opLog } = buyers;
      const killAll = async (): Promise<void> => {
        const exits = await Promise.all(random.shuffled(programs.running).map((program) => program.crash()));
        const allKilled = exits.length === 4 && exits.every(({ signal }) => signal === 'SIGKILL');
        await arena.bite('all four programs were killed', () => allKilled);
      };
      await biteInTries(arena, 'purchases were under way and batches open', KILLS_MAX, async (tries) => {
        const rush = { parallel: 64, accepted: random.whole(400, 1200), prefix: `load-${tries}` };
        const { unheard } = await underLoad(arena, buyers, rush, killAll);
        const open = await stack.audit.store.pendingCount({ saleId, bucket: 0 });
        apis = await startAll(arena);
        return unheard > 0 && open > 0;
      });
      arena.faultEnded();
      const { sold, rows } = await arena.rest(saleId);
      expectEqual(sold, rows, 'units that Redis gave, and orders');
      await buyers.askAgain();
      expectEqual(opLog.count('unknown'), 0, 'buyers who do not know');
      const settled = await arena.rest(saleId);
      expectEqual(settled.rows, opLog.count('ok'), 'rows and buyers who heard yes');
    },
  },
];

// G: batches that compete, and what is refused after precheck.

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
      async () => (await sumMetric(apis, 'seckill_batches_total{verdict="refused"}')) >= 1,
    );
    arena.faultEnded();
    expectEqual(answers.filter((answer) => wordOf(answer) === 'yes').length, UNITS, 'buyers who have a unit');
    for (const answer of answers) expectOneOf(wordOf(answer), ['yes', 'sold_out'], 'the answer');
    const refused = await sumMetric(apis, 'seckill_batches_total{verdict="refused"}');
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
      async () => (await sumMetric(apis, 'seckill_batches_total{verdict="refused"}')) >= 1,
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
    expectEqual(await readMetric(api, 'seckill_batches_total{verdict="aborted"}'), 1, 'batches decided aborted');

    const aborted = [...(await markersOf(stack, saleId))].filter(([, marker]) => marker === 'aborted');
    expectEqual(aborted.length, 1, 'aborted markers');
    const again = sealBatch({
      ...{ batchId: aborted[0]?.[0] ?? '', saleId, bucket: 0, epoch: 1, createdAtMs: Date.now(), trace: '' },
      purchases: users.map((userId) => ({ userId, requestId: 'k1', quantity: 1 })),
    });
    const verdict = await createStockStore(stack.redis, silentLog).deduct(again);
    expectEqual(verdict.outcome, 'aborted', 'a late copy of the refused deduct');
    expectFields(await arena.rest(saleId), { rows: users.length + 2, failedRows: 0 }, 'one order each');
  },
};

// G: purchases that share a batch.

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
      expectAtLeast(await sumMetric(held.apis, 'seckill_batch_size_sum'), 65, 'purchases in batches');
    } finally {
      await mysql.execute(`DROP TRIGGER IF EXISTS ${trigger}`);
    }
  },
};

export const BATCHES_SCENARIOS: readonly Row[] = [
  COMPETING,
  REFUSED_LATE,
  LOST_REFUSAL,
  TWICE_IN_ONE,
  GONE,
  POISON,
  ...GROUP_COMMIT_ROWS,
];
