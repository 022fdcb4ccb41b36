import { probePort } from '../../../deploy/local/stack/probes.js';
import type { Arena } from '../arena.js';
import { killBroker, startBroker } from '../harness/broker-hands.js';
import { userIds } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectFields, expectOneOf, expectTrue } from '../harness/expect.js';
import { readMetric } from '../harness/metrics.js';
import { atScriptCall } from '../harness/script-calls.js';
import type { Row } from '../row.js';

// M4: the proxy dies with what it knows of open half messages, or the name server is gone.

const STOCK = 20;
/** The broker asks 11 to 16 s after the half message, more on a busy machine. */
const CHECK_BACK_MS = 80_000;
/** Nothing is published again: what a check-back must heal is not healed by another way. */
const KEEPER_ENV = { KEEPER_EVERY_MS: '200', REDRIVE_AFTER_MS: '3600000' };
/** Each of three tries; a proxy that does not know a topic lets the client wait. */
const NEW_API_ENV = { ROCKETMQ_START_TIMEOUT_MS: '3000' };
/** Clients ask for their routes anew every 30 s, the proxy every 20 s. */
const ROUTES_RENEWED_MS = 35_000;
const PROXY_OPEN_MS = 60_000;
/** The proxy remembers for 20 s that it found no route. */
const SELLS_AGAIN_MS = 60_000;

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
      arena.start('keeper', { env: KEEPER_ENV }),
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

export const BROKER_UNREACHABLE_ROWS: readonly Row[] = [PROXY_KILLED, NAMESRV_DOWN];
