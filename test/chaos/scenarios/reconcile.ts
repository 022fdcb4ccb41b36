import { silentLog } from '../../../src/core/ports/log.js';
import type { SqlValue } from '../../../src/mysql/pool.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import { createRedriveChannel } from '../../../src/rocketmq/redrive-channel.js';
import type { Arena } from '../context.js';
import { leakBatch, statesOf } from '../harness/batches.js';
import { userIds } from '../harness/buyers.js';
import { runCommand } from '../harness/commands.js';
import { expectAtLeast, expectEqual, expectFields, expectOneOf } from '../harness/expect.js';
import { cancelPlanted, plantOrder } from '../harness/orders.js';
import type { Program } from '../harness/programs.js';
import { repaired } from '../harness/redis.js';
import { RECONCILE_ENV, reconcileSale } from '../harness/sales.js';
import { markersOf, type StackHands } from '../harness/stack-controls.js';
import type { Row } from '../scenario.js';

// D5 to D7: the books are set apart by hand, and reconcile tells what a person did to them.

const OPERATOR = 'a-chaos-row';
const keysOf = (saleId: string) => bucketKeys({ saleId, bucket: 0 });

type OrderRow = Readonly<Record<string, SqlValue>>;
const RESTORED = 'id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, state, one_per_buyer, expires_at';

/** Takes the orders of some buyers out of MySQL, as an older copy would not have them. */
async function forget({ mysql }: StackHands, saleId: string, users: readonly string[]): Promise<OrderRow[]> {
  const rows = await mysql.query<OrderRow>(`SELECT ${RESTORED} FROM orders WHERE sale_id = ? AND user_id IN (?)`, [
    ...[saleId, users],
  ]);
  await mysql.transaction(async (tx) => {
    await tx.execute('DELETE FROM orders WHERE sale_id = ? AND user_id IN (?)', [saleId, users]);
    await tx.execute('UPDATE sales SET sold = sold - ? WHERE id = ?', [users.length, saleId]);
  });
  return rows;
}

/** What a person does who has found out what they were. */
async function remember({ mysql }: StackHands, saleId: string, rows: readonly OrderRow[]): Promise<void> {
  await mysql.transaction(async (tx) => {
    for (const row of rows) {
      const marks = RESTORED.replace(/\w+/g, '?');
      await tx.execute(
        `INSERT INTO orders (${RESTORED}) VALUES (${marks})`,
        RESTORED.split(', ').map((name) => row[name] ?? null),
      );
    }
    await tx.execute('UPDATE sales SET sold = sold + ? WHERE id = ?', [rows.length, saleId]);
  });
}

const ORDERS_LOST: Row = {
  id: 'D5',
  title:
    'MySQL comes back as an older copy without some orders: told, never 404, not written again; a person decides, ' +
    'also after a repair in between',
  ...{ fast: false, alone: false },
  async run(arena) {
    const { stack, random } = arena;
    const [{ api }, { saleId }] = await Promise.all([arena.survivors(), arena.openSale({ stock: 20 })]);
    const users = userIds(random.whole(5, 10));
    await arena.buyers(saleId, [api]).rush(users, 5, { tries: 20 });
    await arena.rest(saleId);
    const lost = random.shuffled(users).slice(0, random.whole(1, 4)).sort();
    const rows = await forget(stack, saleId, lost);
    const count = users.length - lost.length;
    const rowsNow = async (): Promise<number> => (await stack.audit.repository.findSale(saleId))?.sold ?? Number.NaN;
    await arena.bite(`${lost.length} settled orders are gone`, async () => (await rowsNow()) === count);

    const later = arena.buyers(saleId, [api]); // who saw his order before sees it pending now: decision 10
    const expectTold = async (when: string): Promise<void> => {
      for (const userId of lost) expectEqual((await later.status(userId)).json.status, 'pending', `he hears ${when}`);
      const { outcome, found, jobs } = await reconcileSale(stack, api, saleId, { apply: true });
      const told = lost.map((userId) => `order_lost ${userId}`);
      expectEqual(found, told, `found ${when} (${String(outcome)})`);
      expectEqual(jobs, [], 'jobs: nothing is written again by itself');
      expectEqual(await rowsNow(), count, 'units sold as before');
    };
    await expectTold('at first');
    await expectTold('after a run that may mend');
    const repair = await runCommand(['sale', 'repair', saleId, '--force', '--json'], arena.env);
    const kept = { outcome: 'repaired', rows: count, ordersLost: lost.length, unitsLeft: 20 - users.length };
    expectFields(repair.lines.at(-1) ?? {}, kept, 'the repair keeps their units');
    await expectTold('after a repair');

    await remember(stack, saleId, rows);
    arena.faultEnded();
    const { found } = await reconcileSale(stack, api, saleId);
    expectEqual(found, [], 'found afterwards');
    for (const userId of lost) expectEqual((await later.status(userId)).json.status, 'ordered', 'what its buyer hears');
    expectFields(await arena.rest(saleId), { rows: users.length, failedRows: 0 }, 'as before');
  },
};

const UNITS_ADDED: Row = {
  id: 'D6',
  title:
    'units added to Redis by hand: exactly the surplus fails at the last guard, is told, the stock is set afterwards',
  ...{ fast: true, alone: false },
  mayFail: ['oversold_guard'],
  async run(arena) {
    const { stack, random } = arena;
    const stock = random.whole(5, 10);
    const surplus = random.whole(1, 4);
    const unsold = random.whole(1, 3);
    const [{ api }, { saleId }] = await Promise.all([arena.survivors(), arena.openSale({ stock })]);
    const added = surplus + unsold;
    await stack.redis.redis.incrby(keysOf(saleId).stock, added);
    expectEqual((await reconcileSale(stack, api, saleId)).found, [`drift -${added}`], 'found before anybody buys');

    const buyers = arena.buyers(saleId, [api]);
    await buyers.rush(userIds(stock + surplus), 8, { tries: 20 });
    expectEqual(buyers.opLog.count('ok'), stock + surplus, 'buyers who heard yes');
    const failed = async (): Promise<number> => {
      const sql = "SELECT id FROM orders WHERE sale_id = ? AND reason = 'oversold_guard'";
      return (await stack.mysql.query(sql, [saleId])).length;
    };
    await arena.bite(`the guard refused ${surplus} of ${stock + surplus}`, async () => (await failed()) === surplus);
    const found = [`drift -${unsold}`, `oversell ${surplus}`];
    await arena.until(
      'both are told',
      async () => {
        return (await reconcileSale(stack, api, saleId)).found.join() === found.join(); // young batches hide the drift
      },
      20_000,
      500,
    );
    const open = await reconcileSale(stack, api, saleId, { apply: true });
    expectEqual(open.jobs, [], 'no script sets the stock of an open sale');

    await stack.admin.close(saleId, OPERATOR);
    const closed = await reconcileSale(stack, api, saleId, { apply: true });
    expectEqual(
      closed.jobs.filter((job) => job.startsWith('drift')),
      ['drift compensated'],
      'jobs of the closed sale',
    );
    arena.faultEnded();
    const figures = { sold: stock, liveRows: stock, failedRows: surplus, unitsLeft: 0 };
    expectFields(await arena.rest(saleId), figures, 'exactly the surplus failed');
  },
};

const ACTIVE_KEY: Row = {
  ...{ id: 'D7', variant: 'active_key' },
  title:
    'a buyer has a live order that Redis does not know: his second one fails for the limit, his neighbours have theirs',
  ...{ fast: true, alone: false },
  mayFail: ['limit_reached'],
  async run(arena) {
    const { stack, random } = arena;
    const [{ api }, { saleId }] = await Promise.all([arena.survivors(), arena.openSale({ stock: 20 })]);
    const users = userIds(random.whole(4, 10));
    const twice = random.pick(users);
    await plantOrder(stack, saleId, twice);
    const buyers = arena.buyers(saleId, [api]);
    await buyers.rush(users, users.length, { tries: 20 });
    await arena.bite('the unique key of live orders stopped him', async () => {
      const { status, reason } = (await buyers.status(twice, 'k1', 2)).json;
      return status === 'failed' && reason === 'limit_reached';
    });
    await cancelPlanted(stack, saleId);
    arena.faultEnded();
    const others = users.length - 1;
    const figures = { rows: users.length + 1, liveRows: others, failedRows: 1, unitsLeft: 20 - others };
    expectFields(await arena.rest(saleId), figures, 'only his failed, and its unit is back');
  },
};

const OPEN_SALE: Row = {
  id: 'C5',
  title: 'a leak and units too many in a sale under load: found, nothing else is; the stock is set once it is paused',
  ...{ fast: false, alone: false },
  timeoutMs: 300_000,
  async run(arena) {
    const { stack, random } = arena;
    const [{ api }, { saleId }] = await Promise.all([arena.survivors(), arena.openSale({ stock: 100_000 })]);
    const added = random.whole(1, 50);
    const leaked = userIds(random.whole(1, 5), 'leaked-');
    const leaks = leaked.map((userId) => `leak ${userId}`);
    const drift = `drift -${added}`;
    await stack.redis.redis.incrby(keysOf(saleId).stock, added);
    await leakBatch(stack, saleId, leaked);
    const buyers = arena.buyers(saleId, [api]);
    const load = buyers.startLoad({ parallel: 8, pauseMs: random.whole(5, 20) });
    await arena.until('the load is on', () => buyers.opLog.count('ok') > 100, 30_000);
    for (let run = 1; run <= 3; run++) {
      const { found } = await reconcileSale(stack, api, saleId);
      expectEqual(
        found.filter((one) => one !== drift),
        leaks,
        `found by run ${run}, but for the drift`,
      );
    }
    await arena.bite('found under load', () => buyers.opLog.count('ok') > 100);
    const applied = await reconcileSale(stack, api, saleId, { apply: true });
    expectEqual(
      applied.jobs,
      leaked.map(() => 'leak compensated'),
      'jobs while the sale is open',
    );
    await load.stop();
    await arena.until(
      'the units stand still',
      async () => {
        return (await reconcileSale(stack, api, saleId, { apply: true })).found.join() === drift;
      },
      20_000,
      500,
    );

    await stack.admin.pause(saleId, OPERATOR);
    expectEqual(
      (await reconcileSale(stack, api, saleId, { apply: true })).jobs,
      ['drift compensated'],
      'jobs of the paused sale',
    );
    arena.faultEnded();
    expectEqual((await reconcileSale(stack, api, saleId)).found, [], 'found afterwards');
    const figures = await arena.rest(saleId);
    expectFields(figures, { rows: buyers.opLog.count('ok') + leaked.length, failedRows: 0 }, 'an order for each');
  },
};

async function closeAndTidy(arena: Arena, api: Program, saleId: string): Promise<void> {
  await arena.stack.admin.close(saleId, OPERATOR);
  const tidied = async (): Promise<boolean> => {
    await reconcileSale(arena.stack, api, saleId, { apply: true });
    return (await markersOf(arena.stack, saleId)).size === 0; // those of rows that are old enough go
  };
  await arena.until('no marker is left', tidied, 30_000, 500);
}

const MARKERS_GONE: Row = {
  id: 'C7',
  title:
    'the markers of a closed sale are removed, then Redis restarts: that is no loss; it stays closed, the books match',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack, random } = arena;
    const [api] = await Promise.all([
      arena.start('api', { env: RECONCILE_ENV }),
      arena.start('worker'),
      arena.start('keeper'),
    ]);
    const [over, other] = [await arena.openSale({ stock: 50 }), await arena.openSale({ stock: 1000 })];
    const buyers = arena.buyers(over.saleId, [api]);
    await buyers.rush(userIds(random.whole(10, 40)), 8, { tries: 20 });
    const before = await arena.rest(over.saleId);
    expectAtLeast((await markersOf(stack, over.saleId)).size, 1, 'markers before');
    await closeAndTidy(arena, api, over.saleId);

    const server = stack.servers.server('redis');
    await server.stop({ signal: 'SIGKILL' });
    await arena.bite('Redis was killed, without the markers', () => server.pid() === null);
    await server.start();
    await server.waitReady();
    arena.faultEnded();
    await arena.until('we are connected again', async () => (await markersOf(stack, over.saleId)).size === 0, 30_000);
    const openBuyers = arena.buyers(other.saleId, [api]);
    await openBuyers.rush(userIds(20), 8, { tries: 50 });
    expectEqual(openBuyers.opLog.count('ok'), 20, 'buyers of the open sale');
    await repaired(stack, over.saleId); // nobody can tell that nothing is lost, so closed sales have their turn too
    expectEqual(await arena.rest(over.saleId), before, 'the closed sale');
    expectEqual((await buyers.buy('late'))?.json.code, 'closed', 'what a late buyer hears');
    const { outcome, found } = await reconcileSale(stack, api, over.saleId);
    expectEqual([outcome, found], ['match', []], 'reconcile of the closed sale');
    const state = await stack.redis.redis.hget(keysOf(over.saleId).sale, 'state');
    expectEqual(state, 'closed', 'its state in Redis');
  },
};

const NO_REDRIVE = { REDRIVE_AFTER_MS: '3600000' };
const RECONCILING = { ...RECONCILE_ENV, RECONCILE_EVERY_MS: '100', RECONCILE_APPLY: 'true', KEEPER_EVERY_MS: '50' };

/** Ends orders of a sale without the promise that their units go back. */
async function endByHand({ mysql }: StackHands, saleId: string, users: readonly string[]): Promise<void> {
  const mine = [saleId, users] as const;
  await mysql.execute("UPDATE orders SET state = 'cancelled' WHERE sale_id = ? AND user_id IN (?)", mine);
  await mysql.execute('UPDATE sales SET sold = sold - ? WHERE id = ?', [users.length, saleId]);
}

/** Runs of one sale, or of all, that another one overlapped. */
async function overlappingRuns({ mysql }: StackHands): Promise<number> {
  const rows = await mysql.query(
    'SELECT a.id FROM reconcile_runs a JOIN reconcile_runs b ON a.id < b.id AND b.started_at < a.finished_at' +
      ' WHERE a.applied = 1 AND b.applied = 1 LIMIT 100',
  );
  return rows.length;
}

const APPLIERS: Row = {
  id: 'C1',
  title: 'two keepers and two commands reconcile at once: every finding is mended once, with the result of one',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack, random } = arena;
    const [api] = await Promise.all([
      arena.start('api', { env: RECONCILE_ENV }),
      arena.start('worker'),
      arena.start('keeper', { env: NO_REDRIVE }),
    ]);
    const { saleId } = await arena.openSale({ stock: 100 });
    const paused = await arena.openSale({ stock: 100 });
    const buyers = arena.buyers(saleId, [api]);
    const users = userIds(random.whole(6, 12));
    await buyers.rush(users, 6, { tries: 20 });
    await arena.rest(saleId);
    const ended = users.slice(0, random.whole(2, 4));
    const leaked = userIds(random.whole(3, 8), 'leaked-');
    const drift = random.whole(1, 20);
    await endByHand(stack, saleId, ended);
    for (const userId of leaked) await leakBatch(stack, saleId, [userId]);
    await stack.admin.pause(paused.saleId, OPERATOR);
    await stack.redis.redis.decrby(bucketKeys({ saleId: paused.saleId, bucket: 0 }).stock, drift);
    arena.faultEnded(); // the damage is done, the rest is healing

    const command = (sale: string) =>
      runCommand(['reconcile', '--sale', sale, '--apply', '--json'], { ...arena.env, ...RECONCILE_ENV });
    const both = [saleId, paused.saleId];
    const [ends] = await Promise.all([
      Promise.all(both.map(command)),
      ...[1, 2].map(() => arena.start('keeper', { env: { ...NO_REDRIVE, ...RECONCILING } })),
    ]);
    for (const { code } of ends) expectOneOf(code, [0, 1], 'the end of a command');
    await arena.bite('runs overlapped', async () => (await overlappingRuns(stack)) > 0);
    const jobs = async (): Promise<string[]> => {
      const sql = 'SELECT kind, state FROM compensation_jobs WHERE sale_id IN (?)';
      return (await stack.mysql.query<{ kind: string; state: string }>(sql, [both])).map(
        (job) => `${job.kind} ${job.state}`,
      );
    };
    const wanted = [...leaked.map(() => 'leak'), ...ended.map(() => 'unreleased'), 'drift'].map(
      (kind) => `${kind} compensated`,
    );
    await arena.until(
      'every job has its end',
      async () => (await jobs()).sort().join() === wanted.sort().join(),
      30_000,
    );
    const live = users.length - ended.length + leaked.length;
    expectFields(await arena.rest(saleId), { liveRows: live, unitsLeft: 100 - live, failedRows: 0 }, 'as by one');
    expectFields(await arena.rest(paused.saleId), { unitsLeft: 100, rows: 0 }, 'the stock, set once');
    for (const sale of both) {
      await arena.until('nothing is found any more', async () => {
        return (await reconcileSale(stack, api, sale)).outcome === 'match';
      });
    }
  },
};

/** Jobs whose last attempt is due: the keeper gives each of these purchases up. */
async function orderLastAttempts(
  { mysql }: StackHands,
  saleId: string,
  users: readonly (readonly [string, string])[],
): Promise<void> {
  const rows = users.map(
    ([userId, batchId]) =>
      `('leak', '${saleId}/${userId}/k1', ${saleId}, '${batchId}', '${userId}', 'k1', 'planted', 5)`,
  );
  await mysql.execute(
    'INSERT INTO compensation_jobs (kind, subject, sale_id, batch_id, user_id, request_id, detail, attempts)' +
      ` VALUES ${rows.join()}`,
  );
}

async function promisedBack({ mysql }: StackHands, saleId: string): Promise<string[]> {
  const sql = "SELECT payload FROM outbox WHERE kind = 'release' AND payload LIKE ?";
  const rows = await mysql.query<{ payload: string }>(sql, [`%"saleId":"${saleId}"%`]);
  return rows
    .flatMap(({ payload }) => (JSON.parse(payload) as { orderId: string }[]).map(({ orderId }) => orderId))
    .sort();
}

const BATCHES = 12;
const BATCH_SIZE = 5;

const GIVEN_UP: Row = {
  id: 'C2',
  title: 'the keeper gives purchases up while a worker records them: the first row wins, and no winner is released',
  ...{ fast: false, alone: false },
  async run(arena) {
    const { stack, random } = arena;
    const [{ api }, { saleId }] = await Promise.all([arena.survivors(), arena.openSale({ stock: 100 })]);
    const channel = await createRedriveChannel({ endpoint: stack.env.ROCKETMQ_ENDPOINT, log: silentLog });
    try {
      const all = userIds(BATCHES * BATCH_SIZE);
      const isOver = async (): Promise<boolean> => {
        const counts = Object.values(await statesOf(stack, saleId));
        return counts.reduce((sum, count) => sum + count, 0) === all.length;
      };
      const batches = [];
      for (let nth = 0; nth < BATCHES; nth++) {
        batches.push(await leakBatch(stack, saleId, all.slice(nth * BATCH_SIZE, (nth + 1) * BATCH_SIZE)));
      }
      const watched = arena.buyers(saleId, [api]).watch(random.shuffled(all).slice(0, 10));
      const purchases = batches.flatMap(({ batchId, purchases: some }) =>
        some.map(({ userId }) => [userId, batchId] as const),
      );
      await orderLastAttempts(stack, saleId, random.shuffled(purchases));
      const failedNow = async (): Promise<number> => (await statesOf(stack, saleId)).failed ?? 0;
      for (const batch of random.shuffled(batches)) {
        const before = await failedNow();
        // the keeper goes on by one or more purchases, unless the worker has taken the last of them
        const goesOn = async (): Promise<boolean> => (await failedNow()) > before || (await isOver());
        await arena.until('the keeper is at it', goesOn, 20_000, 5);
        await channel.publish(batch);
      }
      await arena.until('each has a row', isOver, 20_000);
      arena.faultEnded();
      const { failed = 0, pending_payment: live = 0 } = await statesOf(stack, saleId);
      await arena.bite(`the keeper won ${failed}, the worker ${live}`, () => failed > 0 && live > 0);
      const figures = { rows: all.length, failedRows: failed, liveRows: live, unitsLeft: 100 - live };
      expectFields(await arena.rest(saleId), figures, 'units of those who lost are back');
      await watched.stop();
      const lost = await stack.mysql.query<{ id: string }>(
        "SELECT id FROM orders WHERE sale_id = ? AND state = 'failed'",
        [saleId],
      );
      expectEqual(await promisedBack(stack, saleId), lost.map(({ id }) => id).sort(), 'promised back, each once');
    } finally {
      await channel.close();
    }
  },
};

export const RECONCILE_SCENARIOS: readonly Row[] = [
  ORDERS_LOST,
  UNITS_ADDED,
  ACTIVE_KEY,
  OPEN_SALE,
  MARKERS_GONE,
  APPLIERS,
  GIVEN_UP,
];
