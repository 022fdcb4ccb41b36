import { rmSync } from 'node:fs';
import { probePort } from '../../../deploy/local/stack/probes.js';
import type { ScenarioContext } from '../context.js';
import { recordBatch } from '../harness/batches.js';
import {
  batchesAtBroker,
  brokerStore,
  createTopics,
  killBroker,
  leaveHalfMessagesOpen,
  startBroker,
  withUnresponsiveProducer,
} from '../harness/broker.js';
import { userIds } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectTrue } from '../harness/expect.js';
import { OrderEventListener } from '../harness/listeners.js';
import { expectOneOrderEach, expectRowPerAccepted, startSystem } from '../harness/load.js';
import { NO_REDRIVE, readMetric, sumMetric } from '../harness/programs.js';
import { isRecorded, pendingBatchesOf, pendingCountOf, pendingOutboxRows, unitsLeftOf } from '../harness/sale-state.js';
import type { StackControls } from '../harness/stack-controls.js';
import { atScriptCall } from '../harness/traffic.js';
import type { Scenario } from '../scenario.js';

// M1, M2, M4, M12: the broker dies, loses everything, cannot be reached, or has thousands of open half messages.

const FAST_KEEPER = { KEEPER_EVERY_MS: '200' };

const KILLED: Scenario = {
  name: 'M1/sales',
  title: 'broker and proxy are killed under load: nothing is deducted until they are back',
  fast: true,
  alone: true,
  async run(context) {
    const { stack, random } = context;
    const { saleId, buyers } = await startSystem(context, { stock: 100_000 });
    const options = { parallel: 24, pauseMs: random.whole(20, 40), tries: 1 };
    const load = await buyers.startLoadUntil(options, random.whole(200, 500));

    await killBroker(context);
    await buyers.untilRefused(50);
    const during = await unitsLeftOf(stack, saleId);
    await buyers.untilRefused(50);
    expectEqual(await unitsLeftOf(stack, saleId), during, 'units left: no half message, no deduct');

    await startBroker(stack);
    context.faultEnded();
    await buyers.untilAccepted(100, 'the same programs sell again');
    await load.stop();
    context.expectRunning('api', 'worker', 'keeper');
    expectAtLeast((await context.expectInvariants(saleId)).rows, buyers.opLog.count('ok'), 'rows');
    await expectRowPerAccepted(context, buyers);
  },
};

const OUTBOX: Scenario = {
  name: 'M1/outbox',
  title: 'the broker is down: waiting outbox rows are counted, and published when the broker is back',
  fast: true,
  alone: true,
  async run(context) {
    const SIZE = 3;
    const BATCHES = 10;
    const { stack } = context;
    // no worker runs, so re-driven batches would wait for the next scenario
    const env = { ...NO_REDRIVE, ...FAST_KEEPER, OUTBOX_EVERY_MS: '100', OUTBOX_LEASE_MS: '4000' };
    const [listener, { saleId }, keeper] = await Promise.all([
      OrderEventListener.open(stack.env),
      context.openSale({ stock: 100 }),
      context.start('keeper', { env }),
    ]);
    try {
      await killBroker(context);
      const orderIds: string[] = [];
      for (let batches = 0; batches < BATCHES; batches++) {
        orderIds.push(...(await recordBatch(stack, saleId, SIZE)).orderIds);
      }
      const isAbove = async (name: string, value: number): Promise<boolean> =>
        (await readMetric(keeper, `${name}{kind="batch_recorded"}`)) > value;
      await context.until('rows are tried', () => isAbove('seckill_outbox_retried_rows_total', 0));
      await context.until('the alert grows', () => isAbove('seckill_outbox_oldest_seconds', 3));
      await context.until('all are counted', () => isAbove('seckill_outbox_undone_rows', BATCHES - 1));
      expectEqual(await pendingOutboxRows(stack, 'batch_recorded', saleId), BATCHES, 'rows that wait');

      await startBroker(stack);
      context.faultEnded();
      const areDone = async (): Promise<boolean> => (await pendingOutboxRows(stack, 'batch_recorded', saleId)) === 0;
      await context.until('they are published', areDone);
      const received = (): Set<string> => new Set(listener.ordersOf(saleId, 'order.created'));
      await context.until('all are received', () => received().size === orderIds.length);
      expectEqual([...received()].sort(), [...orderIds].sort(), 'orders in the events');
      expectTrue(keeper.running, 'the same keeper');
    } finally {
      await listener.close();
    }
  },
};

/** Starts the broker and creates its topics, for the next scenarios too. */
async function startEmptyBroker(stack: StackControls): Promise<void> {
  await startBroker(stack);
  await createTopics(stack.servers);
}

const DISK_LOST: Scenario = {
  name: 'M2',
  title: 'the broker loses its disk under load: the same programs publish its batches again from Redis',
  alone: true,
  timeoutMs: 300_000,
  async run(context) {
    // one message at a time, so that only the broker knows the other messages
    const ONE_MESSAGE = { WORKER_LOOPS: '1', WORKER_RECEIVE_MAX: '1', WORKER_RETRY_FIRST_MS: '10' };
    const WAITING = 20;
    const { stack, random } = context;
    const { worker, keeper, saleId, buyers } = await startSystem(
      context,
      { stock: 100_000 },
      { worker: ONE_MESSAGE, keeper: { ...FAST_KEEPER, REDRIVE_AFTER_MS: '10000' } },
    );
    const options = { parallel: 24, pauseMs: random.whole(20, 40), tries: 1 };
    const load = await buyers.startLoadUntil(options, random.whole(100, 300));

    // batches pile up at the broker
    worker.signal('SIGSTOP');
    const areWaiting = async (): Promise<boolean> => (await pendingBatchesOf(stack, saleId)).length > WAITING;
    await context.until('batches wait for the worker', areWaiting);
    await killBroker(context);
    await buyers.untilRefused(50);
    const lost = await pendingBatchesOf(stack, saleId);
    context.atEnd(() => startEmptyBroker(stack));
    rmSync(brokerStore(stack), { recursive: true });
    await startEmptyBroker(stack);
    const areLost = async (): Promise<boolean> => (await batchesAtBroker(stack, lost)) === 0;
    await context.observed(`the broker has none of ${lost.length} batches`, areLost);
    context.faultEnded();
    worker.signal('SIGCONT');

    await buyers.untilAccepted(100, 'the same programs sell again');
    await load.stop();
    expectAtLeast((await context.expectInvariants(saleId)).rows, buyers.opLog.count('ok'), 'rows');
    const redriven = await readMetric(keeper, 'seckill_redriven_batches_total');
    expectAtLeast(redriven, lost.length - 1, 'batches published again, but for one that the worker had received');
    await expectRowPerAccepted(context, buyers);
    const areDone = async (): Promise<boolean> => (await pendingOutboxRows(stack, 'batch_recorded', saleId)) === 0;
    await context.until('the events of the orders are published', areDone);
    context.expectRunning('api', 'worker', 'keeper');
  },
};

/** Starts an api that must not become ready. @returns its log */
async function logOfRefusedApi(context: ScenarioContext): Promise<string> {
  // limits each of three attempts, because a proxy without the topic lets the client wait
  const refused = await context.startRefused('api', { env: { ROCKETMQ_START_TIMEOUT_MS: '3000' } });
  expectEqual(refused, true, 'a new api refuses to start');
  return context.programs.all.at(-1)?.log ?? '';
}

const PROXY_KILLED: Scenario = {
  name: 'M4/proxy_killed',
  title: 'the proxy is killed between half message and commit: the check-back commits the batch',
  alone: true,
  timeoutMs: 300_000,
  async run(context) {
    const { stack, random } = context;
    const redis = await context.proxy('redis');
    const [api, worker, { saleId }] = await Promise.all([
      context.start('api', { env: { ...redis.env, REDIS_REPLY_TIMEOUT_MS: '30000' } }),
      context.start('worker'),
      context.openSale({ stock: 20 }),
      context.start('keeper', { env: { ...FAST_KEEPER, ...NO_REDRIVE } }),
    ]);
    const buyers = context.buyers(saleId, [api]);
    const users = userIds(random.whole(2, 6));
    atScriptCall(redis.proxy, 'deduct', () => killBroker(context));
    await buyers.rush(users, users.length);
    const lostCommits = (): Promise<number> => readMetric(api, 'seckill_half_end_failures_total{verb="commit"}');
    await context.observed('the commit found no proxy', async () => (await lostCommits()) > 0);
    expectAtLeast(buyers.opLog.count('ok'), 1, 'accepted purchases: their units are held');
    const open = await pendingCountOf(stack, saleId);
    expectAtLeast(open, 1, 'batches deducted and not committed');
    const log = await logOfRefusedApi(context);
    expectTrue(
      log.includes(stack.env.ROCKETMQ_ENDPOINT) && log.includes('Check that the proxy runs there.'),
      'it says why',
    );

    await startBroker(stack);
    context.faultEnded();
    await context.until('the check-back commits', () => isRecorded(stack, saleId));
    const answered = await readMetric(api, 'seckill_check_backs_total{answer="commit"}');
    expectAtLeast(answered, open, 'check-backs that the same api answered with commit');
    const rescued = await readMetric(worker, 'seckill_deliveries_checked_back_total');
    expectAtLeast(rescued, open, 'messages that came by check-back');
    await expectOneOrderEach(context, buyers, users);
  },
};

/** Clients renew their routes every 30 s, the proxy every 20 s. */
const ROUTES_RENEWED_MS = 35_000;

const NAME_SERVER_DOWN: Scenario = {
  name: 'M4/namesrv_down',
  title: 'the name server is down: running programs continue, and a new api says why it cannot start',
  alone: true,
  timeoutMs: 300_000,
  async run(context) {
    const { stack, random } = context;
    const [nameServer, proxy] = [stack.servers.server('namesrv'), stack.servers.server('proxy')];
    const [api, , , { saleId }] = await Promise.all([
      context.start('api'),
      context.start('worker'),
      context.start('keeper'),
      context.openSale({ stock: 100_000 }),
    ]);
    const buyers = context.buyers(saleId, [api]);
    const { opLog } = buyers;
    const options = { parallel: 8, pauseMs: random.whole(20, 60), tries: 1 };
    const load = await buyers.startLoadUntil(options, random.whole(100, 300));

    await nameServer.stop({ signal: 'SIGKILL' });
    await context.observed('the name server was killed', () => nameServer.pid() === null);
    const unserved = (): number => opLog.count('fail') + opLog.count('unknown');
    const [goneMs, before] = [performance.now(), unserved()];
    const isDue = (): boolean => performance.now() - goneMs > ROUTES_RENEWED_MS;
    await context.until('every route was due for renewal', isDue);
    await buyers.untilAccepted(100, 'buyers are served without it');
    expectEqual(unserved(), before, 'purchases that were not accepted');

    // a proxy that starts now finds no routes
    await killBroker(context);
    await proxy.start();
    const isOpen = async (): Promise<boolean> => (await probePort(stack.servers.ports.grpc)) === null;
    await context.until('the proxy is open again', isOpen);
    const log = await logOfRefusedApi(context);
    expectTrue(/cannot start a RocketMQ client .*seckill-purchase/.test(log), log);

    await nameServer.start();
    await Promise.all([nameServer.waitReady(), proxy.waitReady()]);
    context.faultEnded();
    await buyers.untilAccepted(100, 'the same programs sell again');
    await load.stop();
    context.expectRunning('api', 'worker', 'keeper');
    await context.expectInvariants(saleId);
    await expectRowPerAccepted(context, buyers);
    // the broker registers its topics every 10 s, and no api can start earlier
    const canStart = (): Promise<boolean> => withUnresponsiveProducer(stack, () => Promise.resolve(true));
    await context.until('a new producer can start', canStart);
    const newApi = await context.start('api');
    expectEqual((await buyers.buy('late', { url: newApi.url }))?.status, 202, 'a purchase at a new api');
  },
};

const HALVES = 10_000;
/** Far fewer than the check-backs that arrive at once. */
const FEW_CHECKS = { ROCKETMQ_CHECKS_IN_PARALLEL: '4' };
/** About ten check-backs. HTTP/2 sends at most 64 kB to a client that acknowledges nothing. */
const LOST_BYTES = 5_000;
const COMMITS = 'seckill_check_backs_total{answer="commit"}';
const ALL_ENDED_MS = 480_000;

const MANY_HALF_MESSAGES: Scenario = {
  name: 'M12',
  title: 'a broker restarts with 10,000 open half messages and one api is cut off: the other api ends all batches',
  alone: true,
  timeoutMs: 900_000,
  async run(context) {
    const { stack, random } = context;
    const { env, proxy } = await context.proxy('broker');
    const [worker, halves, shop] = await Promise.all([
      context.start('worker'),
      context.openSale({ stock: HALVES }),
      context.openSale({ stock: 100_000 }),
      context.start('keeper', { env: NO_REDRIVE }),
    ]);
    await leaveHalfMessagesOpen(stack, halves.saleId, HALVES);
    await killBroker(context);
    expectEqual(await pendingCountOf(stack, halves.saleId), HALVES, 'open batches at the restart');
    await startBroker(stack);

    const [cutOffApi, api] = await Promise.all([
      context.start('api', { env: { ...FEW_CHECKS, ...env } }).then((program) => {
        proxy.dropReplies = true; // half-open: the broker gets its requests but cannot know that its replies are lost
        return program;
      }),
      context.start('api', { env: FEW_CHECKS }),
    ]);
    const [cutOff, others] = [context.buyers(shop.saleId, [cutOffApi]), context.buyers(shop.saleId, [api])];
    const load = others.startLoad({ parallel: 8, pauseMs: random.whole(20, 60), tries: 20 });
    const left = HALVES - (await sumMetric([cutOffApi, api], COMMITS));
    const areLost = (): boolean => proxy.droppedBytes > LOST_BYTES;
    const what = `check-backs for one api were lost while ${left} half messages were open`;
    await context.observed(what, areLost, { grantedMs: ALL_ENDED_MS });

    await context.until('the other api has ended every batch', () => isRecorded(stack, halves.saleId), {
      grantedMs: ALL_ENDED_MS,
    });
    await load.stop();
    proxy.dropReplies = false;
    proxy.reset();
    context.faultEnded();
    expectAtLeast(others.opLog.count('ok'), 100, 'purchases meanwhile');
    expectAtLeast(await readMetric(api, COMMITS), left / 2, 'check-backs that the other api answered');
    const rescued = await readMetric(worker, 'seckill_deliveries_checked_back_total');
    expectAtLeast(rescued, HALVES, 'messages that came by check-back');
    let tried = 0;
    const sells = async (): Promise<boolean> => (await cutOff.buy(`cut-off-${tried++}`))?.status === 202;
    await context.until('the api that was cut off sells', sells);
    for (const buyers of [others, cutOff]) {
      await buyers.retryUnknown();
      expectEqual(buyers.opLog.count('unknown'), 0, 'purchases without an answer');
    }
    await context.expectFigures(halves.saleId, { rows: HALVES, failedRows: 0 }, 'one order each');
  },
};

export const BROKER_SCENARIOS: readonly Scenario[] = [
  KILLED,
  OUTBOX,
  DISK_LOST,
  PROXY_KILLED,
  NAME_SERVER_DOWN,
  MANY_HALF_MESSAGES,
];
