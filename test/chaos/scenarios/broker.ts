import { rmSync } from 'node:fs';
import { probePort } from '../../../deploy/local/stack/probes.js';
import type { Arena } from '../context.js';
import { recordBatch } from '../harness/batches.js';
import {
  batchesAtBroker,
  brokerStore,
  createTopics,
  killBroker,
  leaveHalvesOpen,
  startBroker,
} from '../harness/broker.js';
import { userIds } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectFields, expectOneOf, expectTrue } from '../harness/expect.js';
import { ask } from '../harness/http.js';
import { EventEar } from '../harness/listeners.js';
import { undoneRows } from '../harness/orders.js';
import { readMetric, sumMetric } from '../harness/programs.js';
import type { StackHands } from '../harness/stack-controls.js';
import { atScriptCall } from '../harness/traffic.js';
import type { Row } from '../scenario.js';

// M: the broker, and what comes out of it.

const SIZE = 3;
const BATCHES = 10;
const OUT_WITHIN_MS = 60_000;
/** No worker runs: what is published again would wait for the next row. */
const KEEPER_ENV = {
  ...{ REDRIVE_AFTER_MS: '3600000', KEEPER_EVERY_MS: '200' },
  ...{ OUTBOX_EVERY_MS: '100', OUTBOX_LEASE_MS: '4000' },
};

const SALES: Row = {
  ...{ id: 'M1', variant: 'sales' },
  title: 'kill -9 of broker and proxy under load: nothing is deducted meanwhile, deducted = rows after it',
  ...{ fast: true, alone: true },
  async run(arena) {
    const { stack, programs, random } = arena;
    const [api] = await Promise.all([arena.start('api'), arena.start('worker'), arena.start('keeper')]);
    const { saleId } = await arena.openSale({ stock: 100_000 });
    const buyers = arena.buyers(saleId, [api]);
    const { opLog } = buyers;
    const load = buyers.startLoad({ parallel: 24, pauseMs: random.whole(20, 40), tries: 1 });
    const before = random.whole(200, 500);
    await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);

    await killBroker(arena);
    const unitsLeft = async (): Promise<number> =>
      (await stack.audit.store.snapshot({ saleId, bucket: 0 }))?.unitsLeft ?? Number.NaN;
    const refusedBefore = opLog.count('fail');
    await arena.until('buyers are refused', () => opLog.count('fail') > refusedBefore + 50);
    const during = await unitsLeft();
    await arena.until('more buyers are refused', () => opLog.count('fail') > refusedBefore + 100, 20_000);
    expectEqual(await unitsLeft(), during, 'units left: no half message, no deduct');

    await startBroker(stack);
    arena.faultEnded();
    const okBefore = opLog.count('ok');
    await arena.until('the same programs sell again', () => opLog.count('ok') > okBefore + 100, 40_000);
    await load.stop();
    const running = programs.running.map(({ name }) => name);
    expectEqual(running, ['api', 'worker', 'keeper'], 'programs that run');

    expectAtLeast((await arena.rest(saleId)).rows, opLog.count('ok'), 'rows');
    await buyers.askAgain();
    const settled = await arena.rest(saleId);
    expectEqual(settled.rows, opLog.count('ok'), 'rows and buyers who heard yes');
  },
};

const OUTBOX: Row = {
  ...{ id: 'M1', variant: 'outbox' },
  title: 'broker down: rows of the outbox wait and are counted, and go out when it is back',
  ...{ fast: true, alone: true },
  async run(arena) {
    const { stack } = arena;
    const [ear, { saleId }, keeper] = await Promise.all([
      EventEar.open(stack.env),
      arena.openSale({ stock: 100 }),
      arena.start('keeper', { env: KEEPER_ENV }),
    ]);
    try {
      await killBroker(arena);
      const orderIds: string[] = [];
      for (let batches = 0; batches < BATCHES; batches++) {
        orderIds.push(...(await recordBatch(stack, saleId, SIZE)).orderIds);
      }
      const metric = async (name: string): Promise<number> => {
        const { text } = await ask(`${keeper.probeUrl}/metrics`);
        return Number(new RegExp(`^${name}\\{kind="batch_recorded"[^}]*\\} (\\S+)$`, 'm').exec(text)?.[1] ?? 0);
      };
      await arena.until('rows are tried', async () => (await metric('seckill_outbox_retried_rows_total')) > 0, 30_000);
      await arena.until('the alert grows', async () => (await metric('seckill_outbox_oldest_seconds')) > 3, 30_000);
      const counted = async (): Promise<boolean> => (await metric('seckill_outbox_undone_rows')) >= BATCHES;
      await arena.until('all are counted', counted, 30_000);
      expectEqual(await undoneRows(stack, 'batch_recorded', saleId), BATCHES, 'rows that wait');

      await startBroker(stack);
      arena.faultEnded();
      const out = async (): Promise<boolean> => (await undoneRows(stack, 'batch_recorded', saleId)) === 0;
      await arena.until('they go out', out, OUT_WITHIN_MS);
      const told = (): Set<string> => new Set(ear.ordersOf(saleId, 'order.created'));
      await arena.until('all are told', () => told().size === orderIds.length, OUT_WITHIN_MS);
      expectEqual([...told()].sort(), [...orderIds].sort(), 'orders that were told');
      expectTrue(keeper.running, 'the same keeper');
    } finally {
      await ear.close();
    }
  },
};

// M2: the broker forgets everything.

/** One message in its hands at most, so that all others that wait are known to the broker only. */
const WORKER_ENV = { WORKER_LOOPS: '1', WORKER_RECEIVE_MAX: '1', WORKER_RETRY_FIRST_MS: '10' };
const IN_HAND = 1;
const SLOW_REDRIVE = { REDRIVE_AFTER_MS: '10000', KEEPER_EVERY_MS: '200' };
const WAITING = 20;
/** The proxy remembers for 20 s that a topic was not there. */
const SELLS_AGAIN_MS = 60_000;

/** The broker runs and has its topics; also for the rows that follow. */
async function bringBack(stack: StackHands): Promise<void> {
  await startBroker(stack);
  await createTopics(stack.servers);
}

const STORE: Row = {
  id: 'M2',
  title: 'the broker loses its disk under load: what it had is published again from Redis, the same programs go on',
  ...{ fast: false, alone: true, timeoutMs: 300_000 },
  async run(arena) {
    const { stack, programs, random } = arena;
    const [api, worker, keeper] = await Promise.all([
      arena.start('api'),
      arena.start('worker', { env: WORKER_ENV }),
      arena.start('keeper', { env: SLOW_REDRIVE }),
    ]);
    const { saleId } = await arena.openSale({ stock: 100_000 });
    const buyers = arena.buyers(saleId, [api]);
    const { opLog } = buyers;
    const load = buyers.startLoad({ parallel: 24, pauseMs: random.whole(20, 40), tries: 1 });
    const before = random.whole(100, 300);
    await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);

    // batches heap up in the broker
    worker.signal('SIGSTOP');
    const pending = async (): Promise<readonly string[]> =>
      (await stack.audit.store.snapshot({ saleId, bucket: 0 }))?.pending ?? [];
    await arena.until('batches wait for the worker', async () => (await pending()).length > WAITING, 30_000);
    await killBroker(arena);
    const refused = opLog.count('fail');
    await arena.until('buyers are refused', () => opLog.count('fail') > refused + 50);
    const lost = await pending();
    arena.atEnd(() => bringBack(stack));
    rmSync(brokerStore(stack), { recursive: true });
    await bringBack(stack);
    await arena.bite(`the broker has none of ${lost.length} batches`, async () => {
      return (await batchesAtBroker(stack, lost)) === 0;
    });
    arena.faultEnded();
    worker.signal('SIGCONT');

    const okBefore = opLog.count('ok');
    await arena.until('the same programs sell again', () => opLog.count('ok') > okBefore + 100, SELLS_AGAIN_MS);
    await load.stop();
    expectAtLeast((await arena.rest(saleId)).rows, opLog.count('ok'), 'rows');
    const redriven = await readMetric(keeper, 'seckill_redriven_batches_total');
    expectAtLeast(redriven, lost.length - IN_HAND, 'batches published again');
    await buyers.askAgain();
    expectEqual((await arena.rest(saleId)).rows, opLog.count('ok'), 'rows and buyers who heard yes');
    const told = async (): Promise<boolean> => (await undoneRows(stack, 'batch_recorded', saleId)) === 0;
    await arena.until('the news of the orders go out', told, 30_000);
    const running = programs.running.map(({ name }) => name);
    expectEqual(running, ['api', 'worker', 'keeper'], 'programs that run');
  },
};

// M4: the proxy dies with what it knows of open half messages, or the name server is gone.

const STOCK = 20;
/** The broker asks 11 to 16 s after the half message, more on a busy machine. */
const CHECK_BACK_MS = 80_000;
/** Nothing is published again: what a check-back must heal is not healed by another way. */
const FAST_KEEPER = { KEEPER_EVERY_MS: '200', REDRIVE_AFTER_MS: '3600000' };
/** Each of three tries; a proxy that does not know a topic lets the client wait. */
const NEW_API_ENV = { ROCKETMQ_START_TIMEOUT_MS: '3000' };
/** Clients ask for their routes anew every 30 s, the proxy every 20 s. */
const ROUTES_RENEWED_MS = 35_000;
const PROXY_OPEN_MS = 60_000;

/** Starts an api that must not get ready. @returns all that it said */
async function refusalOfNewApi(arena: Arena): Promise<string> {
  const gotReady = await arena.start('api', { env: NEW_API_ENV }).then(
    () => true,
    () => false,
  );
  expectEqual(gotReady, false, 'a new api got ready');
  return arena.programs.all.at(-1)?.log ?? '';
}

const PROXY_KILLED: Row = {
  ...{ id: 'M4', variant: 'proxy_killed' },
  title: 'the proxy is killed between a half message and its commit: the check-back commits; a new api says why not',
  ...{ fast: false, alone: true, timeoutMs: 300_000 },
  async run(arena) {
    const { stack, random } = arena;
    const redis = await arena.proxy('redis');
    const [api, worker, { saleId }] = await Promise.all([
      arena.start('api', { env: { ...redis.env, REDIS_REPLY_TIMEOUT_MS: '30000' } }),
      arena.start('worker'),
      arena.openSale({ stock: STOCK }),
      arena.start('keeper', { env: FAST_KEEPER }),
    ]);
    const buyers = arena.buyers(saleId, [api]);
    const users = userIds(random.whole(2, 6));
    atScriptCall(redis.proxy, 'deduct', () => killBroker(arena));
    await buyers.rush(users, users.length);
    const lostCommits = (): Promise<number> => readMetric(api, 'seckill_half_end_failures_total{verb="commit"}');
    await arena.bite('the commit found no proxy', async () => (await lostCommits()) > 0);
    expectAtLeast(buyers.opLog.count('ok'), 1, 'buyers who heard yes: their units are held');
    const pending = (): Promise<number> => stack.audit.store.pendingCount({ saleId, bucket: 0 });
    const open = await pending();
    expectAtLeast(open, 1, 'batches deducted and not committed');
    const said = await refusalOfNewApi(arena);
    expectTrue(
      said.includes(stack.env.ROCKETMQ_ENDPOINT) && said.includes('Is the proxy running there?'),
      'it says why',
    );

    await startBroker(stack);
    arena.faultEnded();
    await arena.until('the check-back commits', async () => (await pending()) === 0, CHECK_BACK_MS);
    const answered = await readMetric(api, 'seckill_check_backs_total{answer="commit"}');
    expectAtLeast(answered, open, 'questions that the same api answered with commit');
    const rescued = await readMetric(worker, 'seckill_deliveries_checked_back_total');
    expectAtLeast(rescued, open, 'messages that came by check-back');
    for (const again of await buyers.rush(users, users.length, { tries: 20 })) {
      expectOneOf(again?.status, [200, 202], 'the answer to the same key');
    }
    const count = users.length;
    expectFields(await arena.rest(saleId), { rows: count, sold: count, failedRows: 0 }, 'one order each');
  },
};

const NAMESRV_DOWN: Row = {
  ...{ id: 'M4', variant: 'namesrv_down' },
  title: 'the name server is down: running programs go on; with a proxy that knows no route, a new api says why not',
  ...{ fast: false, alone: true, timeoutMs: 300_000 },
  async run(arena) {
    const { stack, programs, random } = arena;
    const [namesrv, proxy] = [stack.servers.server('namesrv'), stack.servers.server('proxy')];
    const [api, , , { saleId }] = await Promise.all([
      arena.start('api'),
      arena.start('worker'),
      arena.start('keeper'),
      arena.openSale({ stock: 100_000 }),
    ]);
    const buyers = arena.buyers(saleId, [api]);
    const { opLog } = buyers;
    const load = buyers.startLoad({ parallel: 8, pauseMs: random.whole(20, 60), tries: 1 });
    const before = random.whole(100, 300);
    await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);

    await namesrv.stop({ signal: 'SIGKILL' });
    await arena.bite('the name server was killed', () => namesrv.pid() === null);
    const [goneMs, unhappy] = [performance.now(), opLog.count('fail') + opLog.count('unknown')];
    const overdue = (): boolean => performance.now() - goneMs > ROUTES_RENEWED_MS;
    await arena.until('every route was due anew', overdue, ROUTES_RENEWED_MS * 2);
    const okBefore = opLog.count('ok');
    await arena.until('buyers are served without it', () => opLog.count('ok') > okBefore + 100, 30_000);
    expectEqual(opLog.count('fail') + opLog.count('unknown'), unhappy, 'buyers who did not hear yes');

    // a proxy that starts now finds no routes
    await killBroker(arena);
    await proxy.start();
    const isOpen = async (): Promise<boolean> => (await probePort(stack.servers.ports.grpc)) === null;
    await arena.until('the proxy is open again', isOpen, PROXY_OPEN_MS);
    const said = await refusalOfNewApi(arena);
    expectTrue(/cannot start a RocketMQ client .*seckill-purchase/.test(said), said);

    await namesrv.start();
    await Promise.all([namesrv.waitReady(), proxy.waitReady()]);
    arena.faultEnded();
    const okAfter = opLog.count('ok');
    await arena.until('the same programs sell again', () => opLog.count('ok') > okAfter + 100, SELLS_AGAIN_MS);
    await load.stop();
    const running = programs.running.map(({ name }) => name);
    expectEqual(running, ['api', 'worker', 'keeper'], 'programs that run');
    await arena.rest(saleId);
    await buyers.askAgain();
    expectEqual((await arena.rest(saleId)).rows, opLog.count('ok'), 'rows and buyers who heard yes');
    const newcomer = await arena.start('api');
    expectEqual((await buyers.buy('late', { url: newcomer.url }))?.status, 202, 'a purchase at a new api');
  },
};

// M12: thousands of questions at once.

const HALVES = 10_000;
/** Of one api; far more questions than that arrive at once. */
const ENV = { ROCKETMQ_CHECKS_IN_PARALLEL: '4' };
const NO_REDRIVE = { REDRIVE_AFTER_MS: '3600000' };
/** A question is half a kilobyte or more; HTTP/2 sends no more than 64 kB to somebody who acknowledges nothing. */
const LOST_BYTES = 5_000;
const COMMITS = 'seckill_check_backs_total{answer="commit"}';
const ALL_ENDED_MS = 480_000;

const MANY: Row = {
  id: 'M12',
  title: 'a broker restarts with 10,000 open half messages, one api is cut off: the other ends all of them and sells',
  ...{ fast: false, alone: true, timeoutMs: 900_000 },
  async run(arena) {
    const { stack, random } = arena;
    const { env, proxy } = await arena.proxy('broker');
    const [worker, halves, shop] = await Promise.all([
      arena.start('worker'),
      arena.openSale({ stock: HALVES }),
      arena.openSale({ stock: 100_000 }),
      arena.start('keeper', { env: NO_REDRIVE }),
    ]);
    await leaveHalvesOpen(stack, halves.saleId, HALVES);
    await killBroker(arena);
    const openNow = (): Promise<number> => stack.audit.store.pendingCount({ saleId: halves.saleId, bucket: 0 });
    expectEqual(await openNow(), HALVES, 'open batches at the restart');
    await startBroker(stack);

    const [deaf, api] = await Promise.all([
      arena.start('api', { env: { ...ENV, ...env } }).then((program) => {
        proxy.dropReplies = true; // half-open: the broker hears of it and cannot know that it hears nothing
        return program;
      }),
      arena.start('api', { env: ENV }),
    ]);
    const [cutOff, others] = [arena.buyers(shop.saleId, [deaf]), arena.buyers(shop.saleId, [api])];
    const load = others.startLoad({ parallel: 8, pauseMs: random.whole(20, 60), tries: 20 });
    const left = HALVES - (await sumMetric([deaf, api], COMMITS));
    const lost = (): boolean => proxy.droppedBytes > LOST_BYTES;
    await arena.bite(`questions for one api were lost while ${left} half messages were open`, lost, ALL_ENDED_MS);

    await arena.until('the other api has ended every batch', async () => (await openNow()) === 0, ALL_ENDED_MS);
    await load.stop();
    proxy.dropReplies = false;
    proxy.reset();
    arena.faultEnded();
    expectAtLeast(others.opLog.count('ok'), 100, 'purchases meanwhile');
    expectAtLeast(await readMetric(api, COMMITS), left / 2, 'questions that the other api answered');
    const rescued = await readMetric(worker, 'seckill_deliveries_checked_back_total');
    expectAtLeast(rescued, HALVES, 'messages that came by check-back');
    let tried = 0;
    const sells = async (): Promise<boolean> => (await cutOff.buy(`cut-off-${tried++}`))?.status === 202;
    await arena.until('the api that was cut off sells', sells, SELLS_AGAIN_MS);
    for (const buyers of [others, cutOff]) {
      await buyers.askAgain();
      expectEqual(buyers.opLog.count('unknown'), 0, 'buyers who do not know');
    }
    expectFields(await arena.rest(halves.saleId), { rows: HALVES, failedRows: 0 }, 'one order each');
  },
};

export const BROKER_SCENARIOS: readonly Row[] = [SALES, OUTBOX, STORE, PROXY_KILLED, NAMESRV_DOWN, MANY];
