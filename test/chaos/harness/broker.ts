import { Registry } from 'prom-client';
import { readFileSync } from 'node:fs';
import { Metadata } from '@grpc/grpc-js';
import definition from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';
import services from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_grpc_pb.js';
import requests from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_pb.js';
import { stackPaths } from '../../../deploy/local/stack/paths.js';
import type { Stack } from '../../../deploy/local/stack/stack.js';
import type { Batch } from '../../../src/core/batch.js';
import { createChannelMetrics } from '../../../src/rocketmq/metrics.js';
import type { PurchaseChannel } from '../../../src/core/ports/channels.js';
import { accessIn, adminPortOf, brokerOf, credentialsIn } from '../../helpers/broker.js';
import type { StackEnv } from '../../../deploy/local/stack/settings.js';
import { channelCredentials, tlsChannelOptions } from '../../../src/rocketmq/channel-credentials.js';
import { signedHeaders } from '../../../src/rocketmq/credentials.js';
import type { RemotingAddress } from '../../../src/rocketmq/admin/remoting.js';
import { inLanes } from '../../helpers/lanes.js';
import { silentLog } from '../../helpers/silent-log.js';
import { signaturesOf } from '../../helpers/signatures.js';
import { TOPICS } from '../../../src/core/topics.js';
import { createStockStore } from '../../../src/redis/stock-store.js';
import { readMessagesOfKey } from '../../../src/rocketmq/admin/inspect-broker.js';
import { askRemoting, exchange, refusal, REQUEST } from '../../../src/rocketmq/admin/remoting.js';
import { readTopicLists } from '../../../src/rocketmq/admin/topic-lists.js';
import { createPurchaseChannel } from '../../../src/rocketmq/purchase-channel.js';
import type { ScenarioContext } from '../context.js';
import { batchOf } from './batches.js';
import { userIds } from './buyers.js';
import { expectEqual } from './expect.js';
import { LISTENER_GROUP } from './listeners.js';
import { readMetric } from './programs.js';
import type { StackControls } from './stack-controls.js';
import { until } from './wait.js';

// The broker runs in one process with its proxy. Only scenarios that run alone may break it.

type Broker = Pick<StackControls, 'servers'>;

const addressOf = ({ servers }: Broker): RemotingAddress => adminPortOf(servers);

/** A check-back comes 11 to 16 s after the half message, later on a busy machine. */
export const CHECK_BACK_WITHIN_MS = 80_000;

export async function killBroker(context: Pick<ScenarioContext, 'stack' | 'observed'>): Promise<void> {
  const proxy = context.stack.servers.server('proxy');
  await proxy.stop({ signal: 'SIGKILL' });
  await context.observed('broker and proxy were killed', () => proxy.pid() === null);
}

/** Resolves when the broker serves. */
export async function startBroker({ servers }: Broker): Promise<void> {
  const proxy = servers.server('proxy');
  await proxy.start();
  await proxy.waitReady();
}

/** The folder with everything the broker stores: messages, topics, groups, offsets. */
export const brokerStore = ({ servers }: Broker): string => stackPaths(servers.dir).data('rocketmq');

/**
 * Creates every topic and group of the product, and the group of the listener, because a broker with an empty store has
 * neither topics nor groups.
 */
export async function createTopics(stack: Pick<Stack, 'applyTopics'>): Promise<void> {
  const { topics, groups } = readTopicLists();
  await stack.applyTopics({ topics, groups: [...groups, { groupName: LISTENER_GROUP, retryMaxTimes: 16 }] });
}

/** Returns for how many of these batches the broker has a committed message. */
export async function batchesAtBroker(broker: Broker, batchIds: readonly string[]): Promise<number> {
  let found = 0;
  for (const batchId of batchIds) if ((await timesIn(broker, TOPICS.purchase, batchId)).length > 0) found++;
  return found;
}

/**
 * Runs `work` while the running broker has a different number for a setting, then restores the number of its file.
 * @throws Error if the broker does not answer
 */
export async function withBrokerSetting<T>(
  broker: Broker,
  name: string,
  value: number,
  work: () => Promise<T>,
): Promise<T> {
  const usual = settingInFile(broker, name);
  await set(broker, name, String(value));
  try {
    return await work();
  } finally {
    await set(broker, name, usual);
  }
}

async function set(broker: Broker, name: string, value: string): Promise<void> {
  await askRemoting(addressOf(broker), REQUEST.updateBrokerConfig, `${name}=${value}\n`);
}

function settingInFile({ servers }: Broker, name: string): string {
  const text = readFileSync(stackPaths(servers.dir).conf('broker.conf'), 'utf8');
  const value = [...text.matchAll(new RegExp(`^${name}=(\\d+)$`, 'gm'))].at(-1)?.[1]; // the last value counts
  if (value === undefined) throw new Error(`broker.conf has no number ${name}`);
  return value;
}

/** System topics that clients cannot read: half messages, and half messages that the broker has given up. */
const HALF = 'RMQ_SYS_TRANS_HALF_TOPIC';
const GIVEN_UP = 'TRANS_CHECK_MAX_TIME_TOPIC';

/** Returns whether the broker has given up the half message of a batch, so that no check-back follows. */
export async function isGivenUp(broker: Broker, batchId: string): Promise<boolean> {
  return (await timesIn(broker, GIVEN_UP, batchId)).length > 0;
}

/** Returns how long the half message of a batch was open, ms on the broker's clock. Null if it is uncommitted. */
export async function openForMs(broker: Broker, batchId: string): Promise<number | null> {
  const [halfAtMs] = await timesIn(broker, HALF, batchId);
  const [committedAtMs] = await timesIn(broker, TOPICS.purchase, batchId);
  return halfAtMs === undefined || committedAtMs === undefined ? null : committedAtMs - halfAtMs;
}

/** Returns when messages of a batch were stored in a topic, Unix ms. */
const timesIn = async (broker: Broker, topic: string, batchId: string): Promise<number[]> =>
  (await readMessagesOfKey(addressOf(broker), topic, batchId)).map(({ storedAtMs }) => storedAtMs);

const PARALLEL = 64;

/**
 * Leaves half messages of one buyer each that are deducted but never committed, as an api would that dies between the
 * two. Their producer is gone afterwards, so that other apis get the check-backs.
 */
export async function leaveHalfMessagesOpen(stack: StackControls, saleId: string, count: number): Promise<void> {
  const store = createStockStore(stack.redis, silentLog);
  await withUnresponsiveProducer(stack, async (channel) => {
    await inLanes(PARALLEL, userIds(count, 'half-'), async (userId) => {
      const batch = batchOf(saleId, [userId]);
      await sendUntilStored(batch, channel);
      expectEqual(await store.deduct(batch), { outcome: 'deducted' }, 'deduct');
    });
  });
}

/**
 * Makes the broker give up half messages of finished scenarios. Redis no longer knows their sales, so the broker would
 * check back on each for an hour. A few dozen would use up the check slots of an api, and an even number would always
 * go to the same api.
 */
export async function drainHalfMessages(stack: StackControls): Promise<void> {
  const last = batchOf('0', ['nobody']); // earlier messages in the queue have had at least as many check-backs
  await withUnresponsiveProducer(stack, (channel) =>
    withBrokerSetting(stack, 'transactionCheckMax', 1, async () => {
      await sendUntilStored(last, channel);
      await until('old half messages are given up', () => isGivenUp(stack, last.batchId), { everyMs: 500 });
    }),
  );
}

/** A producer that never commits and gives no answer to a check-back. */
export async function withUnresponsiveProducer<T>(
  stack: StackControls,
  work: (channel: PurchaseChannel) => Promise<T>,
): Promise<T> {
  const channel = await createPurchaseChannel({
    ...brokerOf(stack.env),
    requestTimeoutMs: 10_000,
    signatures: signaturesOf(stack.env),
    log: silentLog,
    checkBack: () => Promise.resolve('no_answer'),
    checksInParallel: 1,
    metrics: createChannelMetrics(new Registry()),
  });
  try {
    return await work(channel);
  } finally {
    await channel.close();
  }
}

async function sendUntilStored(batch: Batch, channel: PurchaseChannel): Promise<void> {
  const half = await channel.sendHalf(batch);
  if (typeof half === 'string') throw new Error(`a half message was not stored: ${half}`);
}

type Proxy = InstanceType<typeof services.MessagingServiceClient>;

const CALL_TIMEOUT_MS = 5_000;
/** The language that the Node client claims. The proxy does not know Node. */
const LANGUAGE = 'HTTP';

/**
 * Unregisters killed apis. The broker keeps a killed api for two minutes and tries three apis per check-back, so a live
 * api might get no check-back for that time.
 * @param pids processes that have ended
 * @throws Error if broker or proxy does not answer, or refuses
 */
export async function unregisterProducers(
  { servers, env }: Pick<StackControls, 'servers' | 'env'>,
  pids: readonly number[],
): Promise<void> {
  if (pids.length === 0) return;
  const known = await producersOf(addressOf({ servers }), TOPICS.purchase);
  const ids = known.filter((id) => pids.includes(pidOf(id)));
  const { ROCKETMQ_ENDPOINT: target } = env;
  const { tls = null } = accessIn(env);
  const proxy = new services.MessagingServiceClient(
    target,
    channelCredentials(tls, target),
    tlsChannelOptions(tls, target),
  );
  try {
    await Promise.all(ids.map((id) => unregister(proxy, env, id)));
  } finally {
    proxy.close();
  }
}

function unregister(proxy: Proxy, env: StackEnv, clientId: string): Promise<void> {
  const metadata = new Metadata();
  metadata.set('x-mq-client-id', clientId);
  metadata.set('x-mq-language', LANGUAGE);
  for (const [name, value] of Object.entries(signedHeaders(credentialsIn(env)))) metadata.set(name, value);
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

/** Part of a broker's answer for a group without producers. */
const NO_PRODUCER = 'not exist';

/** Client ids of the producers that a broker knows, including producers killed up to two minutes ago. */
async function producersOf(broker: RemotingAddress, topic: string): Promise<string[]> {
  // ids of gRPC clients
  const frame = await exchange(broker, REQUEST.producerConnections, '', { producerGroup: topic });
  if (frame.remark?.includes(NO_PRODUCER)) return [];
  if (frame.code !== 0) throw refusal(broker, frame);
  const { connectionSet = [] } = JSON.parse(frame.body) as { connectionSet?: readonly { clientId: string }[] };
  return connectionSet.map(({ clientId }) => clientId);
}

/** The client builds its id from host, pid, a counter and the time. */
const pidOf = (clientId: string): number => Number(clientId.split('@')[1]);

/** Outlasts the hidden time of a delivery to a dead worker. */
const HIDDEN_MS = 12_000;

/**
 * Waits until the broker has redelivered all messages of dead workers and all messages whose ack was lost. For
 * scenarios whose worker must die of its own message.
 */
export async function drainDeliveries(context: ScenarioContext): Promise<void> {
  const worker = await context.start('worker');
  let [seen, sinceMs] = [0, Date.now()];
  const isQuiet = async (): Promise<boolean> => {
    const now = await readMetric(worker, 'seckill_batches_total');
    if (now !== seen) [seen, sinceMs] = [now, Date.now()];
    return Date.now() - sinceMs > HIDDEN_MS;
  };
  await context.until('no delivery of another scenario is left', isQuiet, { everyMs: 500 });
  await worker.stop();
}
