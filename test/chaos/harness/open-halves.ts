import { newBatchId, sealBatch, type Batch } from '../../../src/core/batch.js';
import { silentChannelMetrics } from '../../../src/core/ports/channel-metrics.js';
import { silentLog } from '../../../src/core/ports/log.js';
import type { PurchaseChannel } from '../../../src/core/ports/channels.js';
import { createStockStore } from '../../../src/redis/stock-store.js';
import { createPurchaseChannel } from '../../../src/rocketmq/purchase-channel.js';
import { withBrokerSetting } from './broker-settings.js';
import { expectEqual } from './expect.js';
import { isGivenUp } from './half-messages.js';
import type { StackHands } from './stack-hands.js';
import { until } from './until.js';

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
