import { applyTopics } from '../../../src/rocketmq/admin/apply-topics.js';
import { readTopicLists } from '../../../src/rocketmq/admin/topic-lists.js';
import { PrivateCluster } from '../../helpers/private-cluster.js';
import type { ScenarioContext } from '../context.js';
import type { Buyers } from '../harness/buyers.js';
import { leaveHalfMessagesOpen } from '../harness/broker.js';
import { expectAtLeast, expectTrue } from '../harness/expect.js';
import { expectRowPerAccepted, startSystem } from '../harness/load.js';
import { NO_REDRIVE, readMetric } from '../harness/programs.js';
import { isRecorded, pendingBatchesOf, pendingCountOf } from '../harness/sale-state.js';
import type { Scenario } from '../scenario.js';

// M14: a broker or a proxy of a cluster dies. Two master brokers are behind two proxies.

const BROKERS = ['broker-a', 'broker-b'];
const PROXIES = ['proxy-a', 'proxy-b'];
/** After a failed send, a proxy avoids the broker for some seconds. docs/servers.md recommends it. */
const PROXY_SETTINGS = { sendLatencyEnable: true, transactionDataExpireMillis: 120_000 };

/** The protocol requires these settings. */
const BROKER_SETTINGS = { transactionTimeOut: 10_000, transactionCheckInterval: 5_000, transactionCheckMax: 720 };

async function startCluster(context: ScenarioContext, brokers = BROKERS) {
  const cluster = await PrivateCluster.start(brokers, BROKER_SETTINGS);
  context.atEnd(() => cluster.close());
  const proxies = await cluster.startProxies(PROXIES, PROXY_SETTINGS);
  const createTopics = () =>
    applyTopics({ namesrvAddr: cluster.namesrvAddr, cluster: null, credentials: null }, readTopicLists());
  await createTopics();
  const env = {
    ROCKETMQ_ENDPOINT: [...proxies.values()].join(),
    NAMESRV_ADDR: cluster.namesrvAddr,
    ROCKETMQ_ACCESS_KEY: '',
    ROCKETMQ_ACCESS_SECRET: '',
  };
  return { cluster, env, createTopics };
}

/** The promise: this long after a broker dies, this share of the purchases is accepted. */
const HEALED_AFTER_MS = 3_000;
const ACCEPTED_MIN = 0.95;
const SECONDS_WATCHED = 15;

/** Counts the answers per second after a fault, and asserts the promise. */
async function expectSoldAgain(context: ScenarioContext, { opLog }: Buyers, fault: string): Promise<void> {
  const count = () => ({ ok: opLog.count('ok'), fail: opLog.count('fail'), unknown: opLog.count('unknown') });
  const startedMs = performance.now();
  const counts = [count()];
  for (let second = 1; second <= SECONDS_WATCHED; second++) {
    await context.until(`second ${second}`, () => performance.now() - startedMs >= second * 1000);
    counts.push(count());
  }
  const between = (from: number, to: number) => {
    const [a, b] = [counts[from] ?? count(), counts[to] ?? count()];
    const [ok, fail, unknown] = [b.ok - a.ok, b.fail - a.fail, b.unknown - a.unknown];
    return { ok, share: ok / (ok + fail + unknown), unknown };
  };
  const shares = Array.from({ length: SECONDS_WATCHED }, (_, second) => between(second, second + 1).share.toFixed(2));
  const { unknown } = between(0, SECONDS_WATCHED);
  await context.observed(`${fault}; accepted by second ${shares.join(' ')}, unknown in all ${unknown}`, () => true);
  const healed = between(HEALED_AFTER_MS / 1000, SECONDS_WATCHED);
  expectAtLeast(healed.ok, 100, 'purchases accepted afterwards');
  expectTrue(healed.share >= ACCEPTED_MIN, `accepted ${healed.share} of the purchases after ${HEALED_AFTER_MS} ms`);
}

const LOAD = { parallel: 24, tries: 1 };
const HALVES = 40;
const COMMITS = 'seckill_check_backs_total{answer="commit"}';

const BROKER_KILLED: Scenario = {
  name: 'M14/broker',
  title: 'one of two brokers is killed under load: sales continue, and its half messages are checked after its return',
  alone: true,
  timeoutMs: 400_000,
  healMaxMs: 120_000, // a killed broker forgets its last deliveries, and the re-drive waits a minute
  async run(context) {
    const { stack, random } = context;
    const { cluster, env } = await startCluster(context);
    const { api, saleId, buyers } = await startSystem(context, { stock: 100_000 }, { all: env });
    const halves = await context.openSale({ stock: HALVES });
    const load = await buyers.startLoadUntil({ ...LOAD, pauseMs: random.whole(20, 40) }, random.whole(300, 500));

    await leaveHalfMessagesOpen({ ...stack, env: { ...stack.env, ...env } }, halves.saleId, HALVES);
    await cluster.signal('broker-a', 'SIGKILL');
    await expectSoldAgain(context, buyers, 'broker-a was killed');
    await load.stop();
    const checked = await readMetric(api, COMMITS);
    expectAtLeast(await pendingCountOf(stack, halves.saleId), 1, 'half messages that only the dead broker has');

    await cluster.restart('broker-a');
    context.faultEnded();
    await context.until('the broker that is back checks back', async () => (await readMetric(api, COMMITS)) > checked);
    for (const one of [saleId, halves.saleId])
      await context.until('every batch is recorded', () => isRecorded(stack, one), { grantedMs: 180_000 });
    await context.expectFigures(halves.saleId, { rows: HALVES, failedRows: 0 }, 'one order each');
    await expectRowPerAccepted(context, buyers);
    context.expectRunning('api', 'worker', 'keeper');
  },
};

const BROKER_REDRIVEN: Scenario = {
  name: 'M14/redriven',
  title: 'one of two brokers is killed and stays away: its batches are published once at the other broker',
  alone: true,
  timeoutMs: 400_000,
  async run(context) {
    const { stack, random } = context;
    const { cluster, env } = await startCluster(context);
    const redrive = { REDRIVE_AFTER_MS: '10000', KEEPER_EVERY_MS: '200' };
    const { worker, keeper, saleId, buyers } = await startSystem(
      context,
      { stock: 100_000 },
      { all: env, keeper: redrive },
    );
    const load = await buyers.startLoadUntil({ ...LOAD, pauseMs: random.whole(20, 40) }, random.whole(300, 500));
    worker.signal('SIGSTOP'); // so that messages wait at both brokers
    await buyers.untilAccepted(100, 'batches wait for the worker');
    await cluster.signal('broker-a', 'SIGKILL');
    const waiting = await pendingBatchesOf(stack, saleId);
    await context.observed('broker-a was killed while batches waited', () => waiting.length > 1);
    worker.signal('SIGCONT');
    await load.stop();
    await context.until('every batch is recorded without that broker', () => isRecorded(stack, saleId));
    expectAtLeast(await readMetric(keeper, 'seckill_redriven_batches_total'), 1, 'batches published again');

    await cluster.restart('broker-a');
    context.faultEnded();
    const sold = await buyers.startLoadUntil(LOAD, 300);
    await sold.stop();
    await expectRowPerAccepted(context, buyers);
    context.expectRunning('api', 'worker', 'keeper');
  },
};

/** Clients renew their routes every 30 s, the proxies every 20 s. */
const ROUTES_RENEWED_MS = 35_000;

const BROKER_JOINS: Scenario = {
  name: 'M14/joined',
  title: 'a second broker joins and the first is killed: the same programs sell and record at the new broker',
  alone: true,
  timeoutMs: 400_000,
  healMaxMs: 120_000, // as above
  async run(context) {
    const { stack } = context;
    const { cluster, env, createTopics } = await startCluster(context, ['broker-a']);
    const { saleId, buyers } = await startSystem(context, { stock: 100_000 }, { all: env });
    const load = await buyers.startLoadUntil({ ...LOAD, pauseMs: 30 }, 100);
    await cluster.addBroker('broker-b');
    await createTopics();
    const joinedMs = performance.now();
    await context.until('every route was due for renewal', () => performance.now() - joinedMs > ROUTES_RENEWED_MS);
    await cluster.signal('broker-a', 'SIGKILL');
    await expectSoldAgain(context, buyers, 'broker-a was killed after broker-b had joined');
    await load.stop();
    await cluster.restart('broker-a');
    context.faultEnded();
    await context.until('every batch is recorded', () => isRecorded(stack, saleId), { grantedMs: 180_000 });
    await expectRowPerAccepted(context, buyers);
    context.expectRunning('api', 'worker', 'keeper');
  },
};

const PROXY_KILLED: Scenario = {
  name: 'M14/proxy',
  title: 'one of two proxies is killed under load: its clients use the other proxy, and every batch is recorded',
  alone: true,
  timeoutMs: 400_000,
  async run(context) {
    const { stack, random } = context;
    const { cluster, env } = await startCluster(context);
    const { saleId, buyers } = await startSystem(context, { stock: 100_000 }, { all: env, keeper: NO_REDRIVE });
    const load = await buyers.startLoadUntil({ ...LOAD, pauseMs: random.whole(20, 40) }, random.whole(300, 500));
    // the api uses one of them, so each dies once
    await cluster.signal('proxy-a', 'SIGKILL');
    await expectSoldAgain(context, buyers, 'proxy-a was killed');
    await cluster.restart('proxy-a');
    await buyers.untilAccepted(100, 'the load continues');
    await cluster.signal('proxy-b', 'SIGKILL');
    await expectSoldAgain(context, buyers, 'proxy-b was killed');
    context.faultEnded();
    await load.stop();
    await context.until('every batch is recorded', () => isRecorded(stack, saleId));
    await expectRowPerAccepted(context, buyers);
    context.expectRunning('api', 'worker', 'keeper');
  },
};

export const BROKER_CLUSTER_SCENARIOS: readonly Scenario[] = [
  BROKER_KILLED,
  BROKER_REDRIVEN,
  BROKER_JOINS,
  PROXY_KILLED,
];
