import { expectOneRequest, wordOf } from '../harness/answers.js';
import { userIds } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectFields } from '../harness/expect.js';
import { goneBuyers } from '../harness/gone-buyers.js';
import { HALF_MS, HeldApis, TRIES, inQueue, onTheWay } from '../harness/held-apis.js';
import { sumMetric } from '../harness/metrics.js';
import type { Program } from '../harness/programs.js';
import type { Row } from '../row.js';

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

export const SHARED_BATCH_ROWS: readonly Row[] = [TWICE_IN_ONE, GONE, POISON];
