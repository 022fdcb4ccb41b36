import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ChannelCredentials, Metadata } from '@grpc/grpc-js';
import definition from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';
import services from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_grpc_pb.js';
import requests from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_pb.js';
import { stackPaths, TEMPLATES_DIR } from '../../../deploy/local/stack/paths.js';
import type { Stack } from '../../../deploy/local/stack/stack.js';
import { type Batch, newBatchId, sealBatch } from '../../../src/core/batch.js';
import { silentChannelMetrics } from '../../../src/core/ports/channel-metrics.js';
import type { PurchaseChannel } from '../../../src/core/ports/channels.js';
import { silentLog } from '../../../src/core/ports/log.js';
import { TOPICS } from '../../../src/core/topics.js';
import { createStockStore } from '../../../src/redis/stock-store.js';
import { producersOf } from '../../../src/rocketmq/admin/broker-state.js';
import { findMessages } from '../../../src/rocketmq/admin/find-messages.js';
import { askRemoting, REQUEST } from '../../../src/rocketmq/admin/remoting.js';
import { readTopicLists } from '../../../src/rocketmq/admin/topic-lists.js';
import { createPurchaseChannel } from '../../../src/rocketmq/purchase-channel.js';
import type { Arena } from '../context.js';
import { expectEqual } from './expect.js';
import { EAR_GROUP } from './listeners.js';
import { readMetric } from './programs.js';
import type { StackHands } from './stack-controls.js';
import { until } from './wait.js';

// The broker, which is one process with its proxy here. Only for rows that run alone.

export async function killBroker(arena: Pick<Arena, 'stack' | 'bite'>): Promise<void> {
  const proxy = arena.stack.servers.server('proxy');
  await proxy.stop({ signal: 'SIGKILL' });
  await arena.bite('broker and proxy were killed', () => proxy.pid() === null);
}

/** Resolves when it serves. */
export async function startBroker({ servers }: Pick<StackHands, 'servers'>): Promise<void> {
  const proxy = servers.server('proxy');
  await proxy.start();
  await proxy.waitReady();
}

/** The folder with all that the broker remembers: messages, topics, groups, offsets. */
export const brokerStore = ({ servers }: Pick<StackHands, 'servers'>): string =>
  stackPaths(servers.dir).data('rocketmq');

/** Every topic and group of the product, and the group of the ear: a broker with an empty store has none. */
export async function createTopics(stack: Pick<Stack, 'applyTopics'>): Promise<void> {
  const { topics, groups } = readTopicLists();
  await stack.applyTopics({ topics, groups: [...groups, { groupName: EAR_GROUP, retryMaxTimes: 16 }] });
}

/** How many of these batches the broker has a committed message of. */
export async function batchesAtBroker(
  { servers }: Pick<StackHands, 'servers'>,
  batchIds: readonly string[],
): Promise<number> {
  const broker = { host: '127.0.0.1', port: servers.ports.broker };
  let found = 0;
  for (const batchId of batchIds) {
    const stored = await findMessages(broker, TOPICS.purchase, batchId);
    if (stored.length > 0) found++;
  }
  return found;
}

type Broker = Pick<StackHands, 'servers'>;

/**
 * Runs `work` while the running broker has another number for a setting; then it has that of its file again.
 * Only for rows that run alone.
 * @throws Error when the broker does not answer
 */
export async function withBrokerSetting<T>(
  broker: Broker,
  name: string,
  value: number,
  work: () => Promise<T>,
): Promise<T> {
  const usual = settingInFile(name);
  await set(broker, name, String(value));
  try {
    return await work();
  } finally {
    await set(broker, name, usual);
  }
}

async function set({ servers }: Broker, name: string, value: string): Promise<void> {
  const address = { host: '127.0.0.1', port: servers.ports.broker };
  await askRemoting(address, REQUEST.updateBrokerConfig, `${name}=${value}\n`);
}

function settingInFile(name: string): string {
  const text = readFileSync(join(TEMPLATES_DIR, 'broker.conf'), 'utf8');
  const [, value] = new RegExp(`^${name}=(\\d+)$`, 'm').exec(text) ?? [];
  if (value === undefined) throw new Error(`broker.conf has no number ${name}`);
  return value;
}

/** What the broker itself knows of half messages. */

/** Topics of its own, which clients cannot read: half messages, and those that it has given up. */
const HALF = 'RMQ_SYS_TRANS_HALF_TOPIC';
const GIVEN_UP = 'TRANS_CHECK_MAX_TIME_TOPIC';

/** Whether it has given up the half message of a batch: it asks nobody about it any more. */
export async function isGivenUp(broker: Broker, batchId: string): Promise<boolean> {
  return (await timesIn(broker, GIVEN_UP, batchId)).length > 0;
}

/** How long the half message of a batch was open, ms on the clock of the broker; null: nobody has committed it. */
export async function openForMs(broker: Broker, batchId: string): Promise<number | null> {
  const [halfAtMs] = await timesIn(broker, HALF, batchId);
  const [committedAtMs] = await timesIn(broker, TOPICS.purchase, batchId);
  return halfAtMs === undefined || committedAtMs === undefined ? null : committedAtMs - halfAtMs;
}

const timesIn = ({ servers }: Broker, topic: string, batchId: string): Promise<number[]> =>
  findMessages({ host: '127.0.0.1', port: servers.ports.broker }, topic, batchId);

const PARALLEL = 64;

/**
 * Half messages of one buyer each whose units are deducted and whose commit never comes, as many apis would leave them
 * that died between the two. Their producer is gone afterwards, so that others are asked.
 */
export async function leaveHalvesOpen(stack: StackHands, saleId: string, count: number): Promise<void> {
  const store = createStockStore(stack.redis, silentLog);
  await withDumbProducer(stack, async (channel) => {
    let next = 0;
    const hand = async (): Promise<void> => {
      while (next < count) {
        const batch = batchOf(saleId, `half-${next++}`);
        await sendUntilStored(batch, channel);
        expectEqual(await store.deduct(batch), { outcome: 'deducted' }, 'deduct');
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, hand));
  });
}

/** Ten to fifteen seconds until one is asked about, and a further round; more on a busy machine. */
const GIVEN_UP_WITHIN_MS = 90_000;

/**
 * Half messages of rows that are over, of sales that Redis no longer knows, nobody can answer: the broker asks about each in
 * every round, for an hour. Tens of them fill the checks of an api, and where all that are open are an even number one of two
 * apis is always asked about the same. This makes the broker give them up.
 */
export async function drainHalfMessages(stack: StackHands): Promise<void> {
  const last = batchOf('0', 'nobody'); // those before it in the queue have been asked about at least as often
  await withDumbProducer(stack, (channel) =>
    withBrokerSetting(stack, 'transactionCheckMax', 1, async () => {
      await sendUntilStored(last, channel);
      await until('old half messages are given up', () => isGivenUp(stack, last.batchId), GIVEN_UP_WITHIN_MS, 500);
    }),
  );
}

/** One that never commits and gives no answer when it is asked. */
async function withDumbProducer(stack: StackHands, work: (channel: PurchaseChannel) => Promise<void>): Promise<void> {
  const channel = await createPurchaseChannel({
    ...{ endpoint: stack.env.ROCKETMQ_ENDPOINT, requestTimeoutMs: 10_000, log: silentLog },
    ...{ checkBack: () => Promise.resolve('no_answer'), checksInParallel: 1, metrics: silentChannelMetrics },
  });
  try {
    await work(channel);
  } finally {
    await channel.close();
  }
}

async function sendUntilStored(batch: Batch, channel: PurchaseChannel): Promise<void> {
  const half = await channel.sendHalf(batch);
  if (typeof half === 'string') throw new Error(`a half message was not stored: ${half}`);
}

const batchOf = (saleId: string, userId: string): Batch =>
  sealBatch({
    ...{ batchId: newBatchId(), saleId, bucket: 0, epoch: 1, createdAtMs: Date.now(), trace: '' },
    purchases: [{ userId, requestId: 'k1', quantity: 1 }],
  });

type Proxy = InstanceType<typeof services.MessagingServiceClient>;

const CALL_TIMEOUT_MS = 5_000;
/** The one that clients of ours name; the proxy knows no Node. */
const LANGUAGE = 'HTTP';

/**
 * Takes leave of the broker for apis that were killed and could not. It keeps each for two minutes and tries three of its
 * list per check-back: behind rows that killed several, the one api that lives might not be asked for as long.
 * @param pids processes that have ended
 * @throws Error when broker or proxy does not answer, or refuses
 */
export async function forgetProducers(
  { servers, env }: Pick<StackHands, 'servers' | 'env'>,
  pids: readonly number[],
): Promise<void> {
  if (pids.length === 0) return;
  const known = await producersOf({ host: '127.0.0.1', port: servers.ports.broker }, TOPICS.purchase);
  const ids = known.filter((id) => pids.includes(pidOf(id)));
  const proxy = new services.MessagingServiceClient(env.ROCKETMQ_ENDPOINT, ChannelCredentials.createInsecure());
  try {
    await Promise.all(ids.map((id) => takeLeave(proxy, id)));
  } finally {
    proxy.close();
  }
}

function takeLeave(proxy: Proxy, clientId: string): Promise<void> {
  const metadata = new Metadata();
  metadata.set('x-mq-client-id', clientId);
  metadata.set('x-mq-language', LANGUAGE);
  const options = { deadline: Date.now() + CALL_TIMEOUT_MS };
  return new Promise((resolve, reject) => {
    proxy.notifyClientTermination(new requests.NotifyClientTerminationRequest(), metadata, options, (error, reply) => {
      const status = reply?.getStatus();
      if (error) reject(error);
      else if (status?.getCode() === definition.Code.OK) resolve();
      else reject(new Error(`the proxy does not forget ${clientId}: ${status?.getMessage()}`));
    });
  });
}

/** The client makes its id of host, pid, a counter and the time. */
const pidOf = (clientId: string): number => Number(clientId.split('@')[1]);

/** Longer than a delivery stays hidden that a dead worker took along. */
const HIDDEN_MS = 12_000;
/** On a busy machine the dead worker may have held it for a minute, because its transaction took seconds. */
export const REDELIVERED_WITHIN_MS = 90_000;

/**
 * What workers of other rows died with, or a broker that was killed has forgotten the acks of, comes again: until none has
 * come for longer than it stays hidden. For rows whose worker is to die of a message of their own.
 */
export async function drainDeliveries(arena: Arena): Promise<void> {
  const worker = await arena.start('worker');
  let [seen, sinceMs] = [0, Date.now()];
  const nothingComes = async (): Promise<boolean> => {
    const now = await readMetric(worker, 'seckill_batches_total');
    if (now !== seen) [seen, sinceMs] = [now, Date.now()];
    return Date.now() - sinceMs > HIDDEN_MS;
  };
  await arena.until('deliveries of other rows have come to their end', nothingComes, REDELIVERED_WITHIN_MS, 500);
  await worker.stop();
}
