import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { startPlainProducer } from '../../../src/rocketmq/plain-channels.js';
import type { ScenarioContext } from '../context.js';
import { batchesAtBroker, brokerStore, createTopics, startBroker } from '../harness/broker.js';
import { userIds, type Buyers, type Load } from '../harness/buyers.js';
import {
  fillVolume,
  freeVolume,
  mountRefusal,
  mountVolume,
  moveToSmallVolume,
  unmountBelow,
  VOLUME_BYTES,
} from '../harness/disks.js';
import { expectAtLeast, expectEqual } from '../harness/expect.js';
import { expectRowPerAccepted, startSystem } from '../harness/load.js';
import { complaintOf, NO_REDRIVE, readMetric, type Program } from '../harness/programs.js';
import { restoreServers } from '../harness/stack-controls.js';
import { deadLettersOf, pendingBatchesOf, rowsOf, unitsLeftOf } from '../harness/sale-state.js';
import type { Scenario } from '../scenario.js';
import { brokerOf } from '../../helpers/broker.js';
import { silentLog } from '../../helpers/silent-log.js';

// M3 and L3: the disk of the broker, Redis or MariaDB is full.

// The broker deletes old messages above 85 %, and refuses new messages above 90 %.
const DELETES_AT = 0.87;
const REFUSES_AT = 0.93;
const FAST_KEEPER = { KEEPER_EVERY_MS: '200' };

/** Starts an empty broker on a small volume, until the end of the scenario. */
async function startOnSmallVolume(context: ScenarioContext): Promise<string> {
  const { stack } = context;
  const store = brokerStore(stack);
  const proxy = stack.servers.server('proxy');
  await proxy.stop({ signal: 'SIGKILL' });
  context.atEnd(async () => {
    await proxy.stop({ signal: 'SIGKILL' });
    unmountBelow(store);
  });
  mountVolume(store, VOLUME_BYTES);
  await startBroker(stack);
  await createTopics(stack.servers);
  return store;
}

const BROKER_FULL: Scenario = {
  name: 'M3/full',
  title: 'the disk of the broker is full: buyers get 503 before deduct, and /readyz says why, until there is space',
  alone: true,
  timeoutMs: 300_000,
  skip: mountRefusal,
  async run(context) {
    const { stack, random } = context;
    const store = await startOnSmallVolume(context);
    const { api, saleId, buyers } = await startSystem(
      context,
      { stock: 100_000 },
      { keeper: { ...FAST_KEEPER, ...NO_REDRIVE } },
    );
    const options = { parallel: 16, pauseMs: random.whole(20, 40), tries: 1 };
    const load = await buyers.startLoadUntil(options, random.whole(100, 300));

    fillVolume(store, REFUSES_AT);
    const isReported = async (): Promise<boolean> => /disk is full/.test((await complaintOf(api, 'rocketmq')) ?? '');
    await context.observed('the broker refused messages and /readyz says that its disk is full', isReported);
    await buyers.untilRefused(50);
    const during = await unitsLeftOf(stack, saleId);
    const answer = await buyers.buy('ann');
    expectEqual([answer?.status, answer?.json.code], [503, 'unavailable'], 'status and code of an answer');
    await buyers.untilRefused(100);
    expectEqual(await unitsLeftOf(stack, saleId), during, 'units left: no half message, no deduct');

    freeVolume(store);
    context.faultEnded();
    await buyers.untilAccepted(100, 'the same programs sell again');
    await load.stop();
    context.expectRunning('api', 'worker', 'keeper');
    await context.until('/readyz reports no error', async () => (await complaintOf(api, 'rocketmq')) === null);
    await context.expectInvariants(saleId);
    await expectRowPerAccepted(context, buyers);
  },
};

/** `mappedFileSizeCommitLog` of deploy/local/templates/broker.conf. */
const LOG_FILE_BYTES = 134_217_728;
const BALLAST_TOPIC = 'seckill-chaos-ballast';
const BALLAST_BYTES = 3 * 1024 ** 2;

/** Sends messages without a consumer until the log has a second file, so that the broker may delete the first. */
async function rollTheLog({ stack }: ScenarioContext): Promise<void> {
  const topic = {
    topicName: BALLAST_TOPIC,
    readQueueNums: 1,
    writeQueueNums: 1,
    perm: 6,
    attributes: { '+message.type': 'NORMAL' as const },
  };
  await stack.servers.applyTopics({ topics: [topic], groups: [] });
  const options = { ...brokerOf(stack.env), requestTimeoutMs: 10_000, log: silentLog };
  const producer = await startPlainProducer(BALLAST_TOPIC, options);
  try {
    for (let bytes = 0; bytes <= LOG_FILE_BYTES; bytes += BALLAST_BYTES) {
      await producer.send({ body: Buffer.alloc(BALLAST_BYTES) }, 'ballast');
    }
  } finally {
    await producer.close();
  }
}

const MESSAGES_DELETED: Scenario = {
  name: 'M3/deleted',
  title: 'a full broker deletes messages that no consumer has received: their batches are published again',
  alone: true,
  timeoutMs: 300_000,
  skip: mountRefusal,
  async run(context) {
    const { stack, random } = context;
    const store = await startOnSmallVolume(context);
    const oldest = join(store, 'commitlog', '0'.repeat(20));
    const api = await context.start('api');
    const { saleId } = await context.openSale({ stock: 1000 });
    const buyers = context.buyers(saleId, [api]);
    const users = userIds(random.whole(20, 60));
    for (const answer of await buyers.rush(users, 8)) expectEqual(answer?.status, 202, 'the purchase');
    const pending = await pendingBatchesOf(stack, saleId);
    const atBroker = (): Promise<number> => batchesAtBroker(stack, pending);
    await context.until('every batch is committed', async () => (await atBroker()) === pending.length);

    await rollTheLog(context);
    fillVolume(store, DELETES_AT);
    const areDeleted = async (): Promise<boolean> => !existsSync(oldest) && (await atBroker()) === 0;
    await context.observed(`the broker deleted ${pending.length} batches`, areDeleted);
    context.faultEnded();
    const [keeper] = await Promise.all([
      context.start('keeper', { env: { ...FAST_KEEPER, REDRIVE_AFTER_MS: '2000' } }),
      context.start('worker'),
    ]);
    await context.expectFigures(saleId, { rows: users.length, failedRows: 0 }, 'one order each');
    const redriven = await readMetric(keeper, 'seckill_redriven_batches_total');
    expectAtLeast(redriven, pending.length, 'batches published again');
    expectEqual((await buyers.buy('late', { tries: 5 }))?.status, 202, 'the next purchase');
  },
};

interface Loaded {
  readonly saleId: string;
  readonly api: Program;
  readonly worker: Program;
  readonly buyers: Buyers;
  readonly load: Load;
}

/** A sale that never sells out, and a load that makes files grow. */
async function startUnderLoad(context: ScenarioContext): Promise<Loaded> {
  const { api, worker, saleId, buyers } = await startSystem(context, { stock: 100_000 });
  const options = { parallel: 16, pauseMs: context.random.whole(10, 30), tries: 1 };
  const load = await buyers.startLoadUntil(options, 100);
  return { saleId, api, worker, buyers, load };
}

const pidsOf = ({ programs }: ScenarioContext): number[] => programs.running.map(({ pid }) => pid);

/** Asserts that the same programs serve, and that each accepted purchase has an order. */
async function expectHealed(
  context: ScenarioContext,
  { saleId, buyers, load }: Loaded,
  pids: readonly number[],
): Promise<void> {
  const { stack } = context;
  const rowsBefore = await rowsOf(stack, saleId);
  await buyers.untilAccepted(50, 'buyers are accepted');
  await context.until('orders are written', async () => (await rowsOf(stack, saleId)) > rowsBefore);
  await load.stop();
  expectEqual(pidsOf(context), pids, 'programs: none had to start again');
  await expectRowPerAccepted(context, buyers, { failedRows: 0 });
  expectEqual(await deadLettersOf(stack, saleId), 0, 'dead letters');
}

const REDIS_FULL: Scenario = {
  name: 'L3/redis',
  title: 'the disk under Redis is full: buyers get 503, and /readyz says why, until there is space',
  alone: true,
  timeoutMs: 300_000,
  skip: mountRefusal,
  async run(context) {
    const { stack } = context;
    const dir = await moveToSmallVolume(context, 'redis');
    const loaded = await startUnderLoad(context);
    const { api, buyers } = loaded;
    const { opLog } = buyers;
    fillVolume(dir, 1);
    const hasFailed = async (): Promise<boolean> =>
      (await stack.redis.redis.info('persistence')).includes('aof_last_write_status:err');
    await context.observed('Redis could not write its append-only file', hasFailed);
    const isReported = async (): Promise<boolean> => /append-only file/.test((await complaintOf(api, 'redis')) ?? '');
    await context.until('/readyz says so', isReported);
    const unserved = (): number => opLog.count('fail') + opLog.count('unknown');
    const before = { ok: opLog.count('ok'), unserved: unserved() };
    await context.until('buyers are refused', () => unserved() > before.unserved + 50);
    expectEqual((await buyers.buy('ann'))?.status, 503, 'the answer to a purchase');
    expectEqual(opLog.count('ok'), before.ok, 'accepted purchases: none meanwhile');
    await context.start('api'); // a program that crashed could be restarted unnoticed
    const pids = pidsOf(context);
    const server = stack.servers.server('redis').pid();

    freeVolume(dir);
    context.faultEnded();
    await context.until('/readyz reports no error', async () => (await complaintOf(api, 'redis')) === null);
    await expectHealed(context, loaded, pids);
    expectEqual(stack.servers.server('redis').pid(), server, 'the process of Redis');
  },
};

const MYSQL_FULL: Scenario = {
  name: 'L3/mysql',
  title: 'the disk under MySQL is full: accepted orders wait, and each is written once there is space',
  alone: true,
  timeoutMs: 300_000,
  skip: mountRefusal,
  async run(context) {
    const { stack } = context;
    const dir = await moveToSmallVolume(context, 'mysql');
    const loaded = await startUnderLoad(context);
    const { worker, buyers } = loaded;
    fillVolume(dir, 1);
    const hasFailed = (): boolean => /mysql: (disk_full|timed_out)/.test(worker.log);
    // MariaDB ends itself if it needs space to roll a transaction back
    const hasEnded = (): boolean => stack.servers.server('mysql').pid() === null;
    await context.observed('a worker could not write: the disk is full', () => hasFailed() || hasEnded());
    const isReported = async (): Promise<boolean> =>
      hasEnded() || /no space|does not finish/.test((await complaintOf(worker, 'mysql')) ?? '');
    await context.until('/readyz of the worker says so', isReported);
    await buyers.untilAccepted(100, 'purchases are accepted all the same');
    const pids = pidsOf(context);

    freeVolume(dir);
    // with a binary log, MariaDB 11.4 hangs even when there is space again
    if (/mysql: timed_out/.test(worker.log)) await stack.servers.server('mysql').stop({ signal: 'SIGKILL' });
    if (hasEnded()) await restoreServers(stack.servers);
    context.faultEnded();
    await expectHealed(context, loaded, pids);
  },
};

export const FULL_DISKS_SCENARIOS: readonly Scenario[] = [BROKER_FULL, MESSAGES_DELETED, REDIS_FULL, MYSQL_FULL];
