import { silentLog } from '../../../src/core/ports/log.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import { createStockStore } from '../../../src/redis/stock-store.js';
import type { Arena } from '../context.js';
import { type Buyers, userIds } from '../harness/buyers.js';
import { type CommandEnd, RunningCommand } from '../harness/commands.js';
import { expectAtLeast, expectEqual, expectFields } from '../harness/expect.js';
import type { Program } from '../harness/programs.js';
import {
  biteOfLostWrites,
  endOfLog,
  loseWritesAfter,
  promote,
  repaired,
  replicate,
  standingOf,
  startSpareRedis,
} from '../harness/redis.js';
import { draftSale } from '../harness/sales.js';
import { markersOf } from '../harness/stack-controls.js';
import { TcpProxy } from '../harness/tcp-proxy.js';
import { atScriptCall } from '../harness/traffic.js';
import type { Row } from '../scenario.js';

// R2, R3, R4, R11: Redis comes back without its last writes.

const REPLY_TIMEOUT = { REDIS_REPLY_TIMEOUT_MS: '500' };
/** Long enough to look at what is left of the books before they are rebuilt. */
const SLOW_REPAIR = { REPAIR_QUIET_MS: '4000' };
/** The workers that a repair waits for do not run, or have nothing. */
const FAST_REPAIR = { REPAIR_QUIET_MS: '300' };
/** The broker asks 11 to 16 s after the half message, more on a busy machine. */
const CHECK_BACK_MS = 80_000;

/** Batches that have rows. */
async function recordedBatches({ stack }: Arena, saleId: string): Promise<string[]> {
  const sql = 'SELECT DISTINCT batch_id FROM orders WHERE sale_id = ?';
  return (await stack.mysql.query<{ batch_id: string }>(sql, [saleId])).map(({ batch_id: batchId }) => batchId);
}

async function failedFor({ stack }: Arena, saleId: string): Promise<Record<string, string | null>> {
  const sql = "SELECT user_id, reason FROM orders WHERE sale_id = ? AND state = 'failed'";
  const rows = await stack.mysql.query<{ user_id: string; reason: string | null }>(sql, [saleId]);
  return Object.fromEntries(rows.map((row) => [row.user_id, row.reason]));
}

async function expectAllAccepted(buyers: Buyers, users: readonly string[]): Promise<void> {
  const answers = await buyers.rush(users, 4, { tries: 30 });
  expectEqual(new Set(answers.map((answer) => answer?.status)), new Set([202]), `answers of ${users[0]} and others`);
}

const entryOf = async ({ stack }: Arena, saleId: string, userId: string): Promise<string | undefined> =>
  (await stack.audit.store.snapshot({ saleId, bucket: 0 }))?.requests.get(`${userId}/k1`)?.state;

const TAIL: Row = {
  id: 'R2',
  title: 'Redis loses the tail of its log under load: shut, rebuilt under a new epoch; the sale sells out to the unit',
  ...{ fast: false, alone: true },
  mayFail: ['units_lost'],
  async run(arena) {
    const { stack, random } = arena;
    const [api] = await Promise.all([
      arena.start('api', { env: REPLY_TIMEOUT }),
      arena.start('worker', { env: REPLY_TIMEOUT }),
      arena.start('keeper', { env: REPLY_TIMEOUT }),
    ]);
    const stock = 1500;
    const { saleId } = await arena.openSale({ stock });
    const buyers = arena.buyers(saleId, [api]);
    const { opLog } = buyers;
    const load = buyers.startLoad({ parallel: 24, pauseMs: random.whole(10, 30), tries: 3 });
    const watched = buyers.watch(['load-0', 'load-1', 'load-2']);
    const before = random.whole(200, 500);
    await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);
    const end = await endOfLog(stack);
    await arena.until('more is sold', () => opLog.count('ok') > before + 200, 30_000);
    const recorded = await recordedBatches(arena, saleId);

    const lostBytes = await loseWritesAfter(stack, end + random.whole(0, 400)); // somewhere inside a script
    const markers = async (): Promise<string[]> => [...(await markersOf(stack, saleId)).keys()];
    await arena.bite(`${lostBytes} bytes of the log are gone, and markers of recorded batches with them`, async () => {
      const left = new Set(await markers());
      return recorded.some((batchId) => !left.has(batchId));
    });
    const refusedBefore = opLog.count('fail') + opLog.count('unknown');
    await arena.bite('buyers were refused', () => opLog.count('fail') + opLog.count('unknown') > refusedBefore + 20);
    arena.faultEnded();
    await repaired(stack, saleId);

    await arena.until('it sells out', async () => (await entriesLeft(arena, saleId)) === 0, 40_000);
    await Promise.all([load.stop(), watched.stop()]);
    await buyers.askAgain();
    expectFields(await arena.rest(saleId), { liveRows: stock, unitsLeft: 0, oversold: 0 }, 'sold to the unit');
  },
};

const entriesLeft = async ({ stack }: Arena, saleId: string): Promise<number | undefined> =>
  (await stack.audit.store.snapshot({ saleId, bucket: 0 }))?.unitsLeft;

const LATE_BATCHES: Row = {
  id: 'R3',
  title: 'purchases that no worker had seen are lost in Redis: late, they claim what is left, or fail with a reason',
  ...{ fast: false, alone: true },
  mayFail: ['units_lost'],
  async run(arena) {
    const { stack, random } = arena;
    const [api] = await Promise.all([arena.start('api'), arena.start('keeper', { env: FAST_REPAIR })]);
    const { saleId } = await arena.openSale({ stock: 20 });
    const buyers = arena.buyers(saleId, [api]);
    const early = userIds(random.whole(8, 14), 'early-');
    const end = await endOfLog(stack);
    await expectAllAccepted(buyers, early);
    expectEqual(await entriesLeft(arena, saleId), 20 - early.length, 'units left before');

    const areFree = async (): Promise<boolean> => (await entriesLeft(arena, saleId)) === 20;
    await biteOfLostWrites(arena, end, 'the units of accepted purchases are free again', areFree);
    arena.faultEnded();
    await repaired(stack, saleId);
    await expectAllAccepted(buyers, early.slice(0, 2)); // who asks again with his key gets no second order
    await expectAllAccepted(buyers, userIds(14, 'late-'));
    await arena.start('worker');
    await arena.until('each has a row', async () => (await rowsOf(arena, saleId)) === early.length + 14, 60_000);
    const figures = await arena.rest(saleId);
    const lost = early.length - 6; // 16 units are held in the new epoch, by 14 who came later and two who came again
    expectFields(figures, { liveRows: 20, unitsLeft: 0, failedRows: lost }, 'a unit for each but those');
  },
};

async function rowsOf({ stack }: Arena, saleId: string): Promise<number> {
  const sql = 'SELECT COUNT(*) AS `rows` FROM orders WHERE sale_id = ?';
  const [row] = await stack.mysql.query<{ rows: string }>(sql, [saleId]);
  return Number(row?.rows);
}

/** Somebody has a 202 for the last unit; its commit is lost, and then its marker with all that Redis knew of it. */
async function loseAnswered(arena: Arena): Promise<{ readonly saleId: string; readonly buyers: Buyers }> {
  const { stack } = arena;
  const [api] = await Promise.all([
    arena.start('api', { failPoint: 'drop_commit' }),
    arena.start('worker'),
    arena.start('keeper', { env: FAST_REPAIR }),
  ]);
  const { saleId } = await arena.openSale({ stock: 1 });
  const buyers = arena.buyers(saleId, [api]);
  const end = await endOfLog(stack);
  await expectAllAccepted(buyers, ['ann']);
  await arena.reached(api, 'drop_commit');
  expectEqual((await markersOf(stack, saleId)).size, 1, 'markers before');
  const isGone = async (): Promise<boolean> => (await markersOf(stack, saleId)).size === 0;
  await biteOfLostWrites(arena, end, 'Redis knows nothing of it', isGone);
  arena.faultEnded();
  await repaired(stack, saleId);
  return { saleId, buyers };
}

const ANSWERED: readonly Row[] = [
  {
    ...{ id: 'R4', variant: 'recorded' },
    title: 'a 202 whose commit and marker are lost: the check-back commits, the worker claims, the order is there',
    ...{ fast: false, alone: true },
    async run(arena) {
      const { saleId } = await loseAnswered(arena);
      await arena.until('the order comes', async () => (await rowsOf(arena, saleId)) === 1, CHECK_BACK_MS);
      expectFields(await arena.rest(saleId), { liveRows: 1, unitsLeft: 0, failedRows: 0 }, 'recorded');
      expectEqual([...(await markersOf(arena.stack, saleId)).values()], ['claimed'], 'its marker');
    },
  },
  {
    ...{ id: 'R4', variant: 'units_lost' },
    title: 'the same, and another buyer took the unit meanwhile: it ends as failed/units_lost, the unit is sold once',
    ...{ fast: false, alone: true },
    mayFail: ['units_lost'],
    async run(arena) {
      const { saleId, buyers } = await loseAnswered(arena);
      await expectAllAccepted(buyers, ['bob']);
      await arena.until('both have a row', async () => (await rowsOf(arena, saleId)) === 2, CHECK_BACK_MS);
      expectFields(await arena.rest(saleId), { liveRows: 1, unitsLeft: 0, failedRows: 1 }, 'sold once');
      expectEqual(await failedFor(arena, saleId), { ann: 'units_lost' }, 'who failed, and why');
      const { status, json } = await buyers.status('ann');
      expectEqual([status, json.status, json.reason], [200, 'failed', 'units_lost'], 'what she hears');
    },
  },
];

/** An api, and a worker and a keeper that speak to Redis through proxies of their own. */
async function startWatched(arena: Arena) {
  const [forWorker, forKeeper] = [await arena.proxy('redis'), await arena.proxy('redis')];
  const [api] = await Promise.all([
    arena.start('api'),
    arena.start('worker', { env: forWorker.env }),
    arena.start('keeper', { env: { ...forKeeper.env, ...SLOW_REPAIR } }),
  ]);
  return { api: api as Program, forWorker, forKeeper };
}

const LAST_WORDS: readonly Row[] = [
  {
    ...{ id: 'R11', variant: 'settle' },
    title: 'the lost tail holds a settle: the batch is held again, then settled to the same order; no second row',
    ...{ fast: false, alone: true },
    async run(arena) {
      const { stack } = arena;
      const { api, forWorker } = await startWatched(arena);
      const { saleId } = await arena.openSale();
      const buyers = arena.buyers(saleId, [api]);
      let end = 0;
      atScriptCall(forWorker.proxy, 'mark-recorded', async () => void (end = await endOfLog(stack)));
      await expectAllAccepted(buyers, ['ann']);
      await arena.until('it is settled', async () => (await entryOf(arena, saleId, 'ann')) === 'ordered', 30_000);
      const before = await arena.rest(saleId);
      const areHeld = async (): Promise<boolean> => (await entryOf(arena, saleId, 'ann')) === 'held';
      await biteOfLostWrites(arena, end, 'her units are only held again', areHeld);
      arena.faultEnded();
      await repaired(stack, saleId);
      expectEqual(await arena.rest(saleId), before, 'the books');
      expectFields(before, { liveRows: 1, unitsLeft: 9 }, 'and they are right');
    },
  },
  {
    ...{ id: 'R11', variant: 'release' },
    title: 'the lost tail holds a release: the units of a cancelled order come back once, not twice and not never',
    ...{ fast: false, alone: true },
    async run(arena) {
      const { stack } = arena;
      const { api, forKeeper } = await startWatched(arena);
      const { saleId } = await arena.openSale();
      const buyers = arena.buyers(saleId, [api]);
      await expectAllAccepted(buyers, ['ann', 'bob']);
      await arena.until('both are settled', async () => (await rowsOf(arena, saleId)) === 2, 30_000);
      await arena.rest(saleId);
      let end = 0;
      atScriptCall(forKeeper.proxy, 'release', async () => void (end = await endOfLog(stack)));
      const { json } = await buyers.status('ann');
      expectEqual((await buyers.move('cancel', 'ann', String(json.orderId)))?.status, 200, 'her cancellation');
      await arena.until('it is released', async () => (await entryOf(arena, saleId, 'ann')) === 'released', 30_000);
      const before = await arena.rest(saleId);
      const isHers = async (): Promise<boolean> => (await entryOf(arena, saleId, 'ann')) === 'ordered';
      await biteOfLostWrites(arena, end, 'her unit is hers again', isHers);
      arena.faultEnded();
      await repaired(stack, saleId);
      expectEqual(await arena.rest(saleId), before, 'the books');
      expectFields(before, { liveRows: 1, unitsLeft: 9 }, 'and they are right');
      expectAtLeast(end, 1, 'the end of the log before the release');
    },
  },
];

// R5: Redis has nothing of a sale, or is loaded twice.

const OPERATOR = 'a-chaos-row';

/** What Redis has of a sale goes under load; everything else is the same for each way to lose it. */
function emptied(variant: string, what: string, lose: (arena: Arena, saleId: string) => Promise<unknown>): Row {
  return {
    ...{ id: 'R5', variant },
    title: `${what} under load: 503, no answer to check-backs, nothing is loaded over; rebuilt from MySQL`,
    ...{ fast: false, alone: true },
    async run(arena) {
      const { stack, random } = arena;
      const [api] = await Promise.all([
        arena.start('api', { env: REPLY_TIMEOUT }),
        arena.start('worker', { env: REPLY_TIMEOUT }),
        arena.start('keeper', { env: REPLY_TIMEOUT }),
      ]);
      const { saleId } = await arena.openSale({ stock: 100_000 });
      const buyers = arena.buyers(saleId, [api]);
      const { opLog } = buyers;
      const load = buyers.startLoad({ parallel: 24, pauseMs: random.whole(10, 30), tries: 1 });
      const watched = buyers.watch(['load-0', 'load-1', 'load-2']);
      const before = random.whole(200, 600);
      await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);

      await lose(arena, saleId);
      const { state } = await standingOf(stack, saleId);
      await arena.bite('nothing of the sale is in Redis', () => state === null || state === 'repair');
      const refusedBefore = opLog.count('fail');
      const ref = { saleId, bucket: 0, epoch: 1, batchId: 'unheard-of' };
      const { resolve } = createStockStore(stack.redis, silentLog);
      expectEqual(await resolve(ref), 'no_answer', 'what becomes of a batch');
      expectEqual((await stack.admin.warm(saleId, OPERATOR)).outcome, 'wrong_state', 'warm, of a sale that sells');
      await arena.bite('buyers were refused', () => opLog.count('fail') > refusedBefore + 20);
      arena.faultEnded();
      await repaired(stack, saleId);

      const okBefore = opLog.count('ok');
      await arena.until('the same programs sell again', () => opLog.count('ok') > okBefore + 200, 30_000);
      await Promise.all([load.stop(), watched.stop()]);
      await buyers.askAgain();
      expectFields(await arena.rest(saleId), { failedRows: 0, rows: opLog.count('ok') }, 'an order for each yes');
    },
  };
}

const WARMED_HALF: Row = {
  ...{ id: 'R5', variant: 'warm_killed' },
  title: 'warm is killed between Redis and MySQL, and called twice more: loaded once, and never again once it sells',
  ...{ fast: false, alone: false },
  async run(arena) {
    const { stack, env } = arena;
    const [{ api }, redis, sale] = await Promise.all([
      arena.survivors(),
      arena.proxy('redis'),
      draftSale(stack, { stock: arena.random.whole(5, 20) }),
    ]);
    const { saleId, stock } = sale;
    arena.adopt(sale);
    atScriptCall(redis.proxy, 'warm', () => void (redis.proxy.dropReplies = true));
    const command = new RunningCommand(['sale', 'warm', saleId], { ...env, ...redis.env });
    await arena.until('Redis has it', async () => (await standingOf(stack, saleId)).state === 'warm', 20_000);
    const end: CommandEnd = await command.signalAfter(0, 'SIGKILL');
    const inRepository = (await stack.admin.show(saleId))?.state;
    await arena.bite('warm was killed midway', () => end.signal === 'SIGKILL' && inRepository === 'draft');
    arena.faultEnded();

    for (const time of ['second', 'third']) {
      expectEqual((await stack.admin.warm(saleId, OPERATOR)).outcome, 'done', `the ${time} warm`);
    }
    expectEqual((await stack.admin.open(saleId, OPERATOR)).outcome, 'done', 'open');
    const buyers = arena.buyers(saleId, [api]);
    await buyers.rush(userIds(3), 3, { tries: 20 });
    expectEqual((await stack.admin.warm(saleId, OPERATOR)).outcome, 'wrong_state', 'warm, of a sale that sells');
    expectFields(await arena.rest(saleId), { stock, rows: 3, unitsLeft: stock - 3 }, 'the stock, loaded once');
  },
};

/** Every key of a bucket, its markers too. */
async function deleteKeys({ stack }: Arena, saleId: string): Promise<void> {
  const { stock, sale, buyers, requests, pending, tx } = bucketKeys({ saleId, bucket: 0 });
  const markers = [...(await markersOf(stack, saleId)).keys()].map((batchId) => tx + batchId);
  await stack.redis.redis.del(stock, sale, buyers, requests, pending, ...markers);
}

const REDIS_EMPTY_ROWS: readonly Row[] = [
  emptied('keys_deleted', 'the keys of one sale are deleted', deleteKeys),
  emptied('flushall', 'FLUSHALL', ({ stack }) => stack.redis.redis.flushall()),
  emptied('empty_restart', 'Redis is killed and comes back empty', ({ stack }) => loseWritesAfter(stack, 0)),
  WARMED_HALF,
];

const REDIS_FAILOVER_ROWS: readonly Row[] = [
  {
    id: 'R7',
    title:
      'the replica hears nothing any more, then the primary is killed and the replica promoted: shut before a deduct, rebuilt, no unit sold twice',
    ...{ fast: false, alone: true },
    mayFail: ['units_lost'],
    async run(arena) {
      const { stack, random } = arena;
      const [{ proxy, env }, spare] = [await arena.proxy('redis'), await startSpareRedis(stack)];
      const atSpare = { ...stack, redis: spare.redis };
      const link = await TcpProxy.open(`${proxy.target.host}:${proxy.target.port}`);
      try {
        const [linkHost = '', linkPort] = link.address.split(':');
        await replicate(spare.redis, linkHost, Number(linkPort));
        const more = { env: { ...REPLY_TIMEOUT, ...env } };
        const [api] = await Promise.all([
          arena.start('api', more),
          arena.start('worker', more),
          arena.start('keeper', more),
        ]);
        const { saleId } = await arena.openSale({ stock: 1200 });
        const buyers = arena.buyers(saleId, [api]);
        const { opLog } = buyers;
        const load = buyers.startLoad({ parallel: 16, pauseMs: random.whole(10, 30), tries: 1 });
        const watched = buyers.watch(['load-0', 'load-1', 'load-2']);
        const before = random.whole(100, 300);
        await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);
        link.fallSilent();
        await arena.until('more is sold', () => opLog.count('ok') > before + 200, 30_000);
        const sql = 'SELECT DISTINCT batch_id FROM orders WHERE sale_id = ?';
        const recorded = await stack.mysql.query<{ batch_id: string }>(sql, [saleId]);

        const primary = stack.servers.server('redis');
        await primary.stop({ signal: 'SIGKILL' });
        await link.close();
        await promote(spare.redis);
        proxy.target = spare;
        await arena.bite('the new primary misses markers of recorded batches', async () => {
          const markers = await markersOf(atSpare, saleId);
          return recorded.some(({ batch_id: batchId }) => !markers.has(batchId));
        });
        arena.faultEnded(atSpare);
        await repaired(atSpare, saleId);
        const soldOut = async (): Promise<boolean> => (await spare.redis.redis.get(`sk:{${saleId}:0}:stock`)) === '0';
        await arena.until('the same programs sell it out', soldOut, 40_000);

        await primary.start(); // as a replica, so that what checks the books finds them there
        await primary.waitReady();
        await arena.until('it is connected', () => stack.redis.redis.status === 'ready');
        await endOfLog(stack);
        await replicate(stack.redis, spare.host, spare.port);
        await Promise.all([load.stop(), watched.stop()]);
        await buyers.askAgain();
        expectFields(await arena.rest(saleId), { sold: 1200, unitsLeft: 0, oversold: 0 }, 'sold to the unit');
        await arena.programs.close(); // who writes goes first
      } finally {
        await promote(stack.redis).catch(() => undefined); // one that is away is started again after the row
        await link.close();
        await spare.stop();
      }
    },
  },
];

export const REDIS_LOSS_SCENARIOS: readonly Row[] = [
  TAIL,
  LATE_BATCHES,
  ...ANSWERED,
  ...LAST_WORDS,
  ...REDIS_EMPTY_ROWS,
  ...REDIS_FAILOVER_ROWS,
];
