import { Registry } from 'prom-client';
import { randomBytes } from 'node:crypto';
import { newBatchId, sealBatch, type Batch } from '../../src/core/batch.js';
import { DEAD_LETTERS, GROUPS, TOPICS } from '../../src/core/topics.js';
import { createChannelMetrics } from '../../src/rocketmq/metrics.js';
import type { MessageSignatures } from '../../src/core/message-signatures.js';
import type {
  Delivery,
  DeliverySource,
  CheckBack,
  DeadlineChannel,
  OrderEventChannel,
  PurchaseChannel,
  RedriveChannel,
  WorkerProgress,
} from '../../src/core/ports/channels.js';
import { silentLog } from '../helpers/silent-log.js';
import { createWorkerProgress, type Consumed } from '../../src/rocketmq/admin/worker-progress.js';
import { createDeliverySource } from '../../src/rocketmq/delivery-source.js';
import {
  createDeadlineChannel,
  createOrderEventChannel,
  createRedriveChannel,
} from '../../src/rocketmq/plain-channels.js';
import { createPurchaseChannel } from '../../src/rocketmq/purchase-channel.js';
import { MemoryBroker } from '../helpers/memory/memory-broker.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { signaturesOf, TEST_SIGNATURES } from '../helpers/signatures.js';
import { accessIn, brokerOf } from '../helpers/broker.js';
import { stackEnv } from '../helpers/stack-env.js';

type Closeable = { close(): Promise<void> };

/** A broker for the contract suites: RocketMQ or the memory broker. */
export interface BrokerWorld {
  /** Signing keys of its producers. */
  readonly signatures: MessageSignatures;
  purchaseChannel(checkBack: CheckBack): Promise<PurchaseChannel & Closeable>;
  redriveChannel(): Promise<RedriveChannel & Closeable>;
  deadlineChannel(): Promise<DeadlineChannel>;
  orderEventChannel(): Promise<OrderEventChannel>;
  source(topic: string, group: string, invisibleMs?: number): Promise<DeliverySource & Closeable>;
  progress(consumed: readonly Consumed[]): WorkerProgress;
  /** Current time of this world, ms. */
  nowMs(): number;
  /** Advances the clock. */
  elapse(ms: number): Promise<void>;
  /** Closes every open client. */
  close(): Promise<void>;
}

const INVISIBLE_MS = 10_000;
const AWAIT_MS = 1_000;
/** Longer than the default, because a slow response must not look like a different result. */
const REQUEST_TIMEOUT_MS = 10_000;

async function memoryWorld(): Promise<BrokerWorld> {
  const clock = new ManualClock();
  const broker = new MemoryBroker({ clock });
  return {
    signatures: TEST_SIGNATURES,
    purchaseChannel: async (checkBack) => broker.purchaseChannel(checkBack),
    redriveChannel: async () => broker.redriveChannel(),
    deadlineChannel: async () => broker.orderChannels().deadlines,
    orderEventChannel: async () => broker.orderChannels().events,
    async source(topic, group, invisibleMs = INVISIBLE_MS) {
      const source = broker.source(topic, group, invisibleMs, AWAIT_MS);
      return {
        close: () => source.close(),
        async receive(max) {
          const deliveries = await source.receive(max);
          if (deliveries.length === 0) await broker.runChecks(); // the real broker checks back while time passes
          return deliveries;
        },
      };
    },
    progress: (consumed) => broker.progress(consumed),
    nowMs: () => clock.nowMs(),
    elapse: (ms) => clock.sleep(ms),
    close: async () => undefined,
  };
}

export async function rocketmqWorld(): Promise<BrokerWorld> {
  const opened: Closeable[] = [];
  const open = async <T extends Closeable>(opening: Promise<T>): Promise<T> => {
    const client = await opening;
    opened.push(client);
    return client;
  };
  const options = { ...brokerOf(stackEnv()), log: silentLog, requestTimeoutMs: REQUEST_TIMEOUT_MS };
  const signatures = signaturesOf(stackEnv());
  const producer = { ...options, signatures };
  return {
    signatures,
    purchaseChannel: (checkBack) =>
      open(
        createPurchaseChannel({
          ...producer,
          checkBack,
          checksInParallel: 8,
          metrics: createChannelMetrics(new Registry()),
        }),
      ),
    redriveChannel: () => open(createRedriveChannel(producer)),
    deadlineChannel: () => open(createDeadlineChannel(producer)),
    orderEventChannel: () => open(createOrderEventChannel(producer)),
    source: (topic, group, invisibleMs = INVISIBLE_MS) =>
      open(createDeliverySource({ ...options, topic, group, invisibleMs, awaitMs: AWAIT_MS })),
    progress: (consumed) => createWorkerProgress(stackEnv().NAMESRV_ADDR, accessIn(stackEnv()), consumed),
    nowMs: () => Date.now(),
    elapse: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    close: async () => {
      await Promise.all(opened.splice(0).map((client) => client.close()));
    },
  };
}

/** Returns a batch of one purchase with unique ids, so that tests can share a broker. */
export function freshBatch(): Batch {
  return sealBatch({
    batchId: newBatchId(),
    saleId: '4242',
    bucket: 0,
    epoch: 1,
    createdAtMs: Date.now(),
    traceparent: '',
    purchases: [{ userId: 'buyer-1', requestId: randomBytes(8).toString('hex'), quantity: 1 }],
  });
}

/** Returns the next delivery of the batch, or null if none arrives within `ms`. Leaves other messages alone. */
export async function nextDelivery(
  world: BrokerWorld,
  source: DeliverySource,
  batch: Batch,
  ms: number,
): Promise<Delivery | null> {
  const untilMs = world.nowMs() + ms;
  do {
    const deliveries = await source.receive(32);
    const ours = deliveries.find((delivery) => delivery.properties.get('batchId') === batch.batchId);
    if (ours) return ours;
  } while (world.nowMs() < untilMs);
  return null;
}

/** Members of a group share its messages, so each concurrent suite has its own group. */
export const PURCHASES = { topic: TOPICS.purchase, group: GROUPS.writer } as const;
export const REDRIVES = { topic: TOPICS.redrive, group: GROUPS.redriveWriter } as const;
export const REDRIVES_HELD = { topic: TOPICS.redrive, group: GROUPS.coupon } as const;
export const REDRIVES_COUNTED = { topic: TOPICS.redrive, group: GROUPS.expirer } as const;
export const REDRIVES_INSPECTED = { topic: TOPICS.redrive, group: DEAD_LETTERS[GROUPS.coupon].collector } as const;
export const REDRIVES_SEEN = { topic: TOPICS.redrive, group: GROUPS.notifier } as const;

export const BROKER_WORLDS = [
  ['memory', memoryWorld],
  ['rocketmq', rocketmqWorld],
] as const;
