import { newBatchId, sealBatch, type Batch } from '../../domain/batch.js';
import { silentChannelMeters } from '../../ports/channel-meters.js';
import { silentLog } from '../../ports/log.js';
import type { PurchaseChannel } from '../../ports/purchase-channel.js';
import type { StockLedger } from '../../ports/stock-ledger.js';
import { createStockLedger } from '../../redis/stock-ledger.js';
import { createPurchaseChannel } from '../../rocketmq/purchase-channel.js';
import { expectEqual } from './expect.js';
import type { StackHands } from './stack-hands.js';

const PARALLEL = 64;

/**
 * Half messages of one buyer each whose units are deducted and whose commit never comes, as many apis would leave them
 * that died between the two. Their producer is gone afterwards, so that others are asked.
 */
export async function leaveHalvesOpen(stack: StackHands, saleId: string, count: number): Promise<void> {
  const channel = await createPurchaseChannel({
    ...{ endpoint: stack.env.ROCKETMQ_ENDPOINT, requestTimeoutMs: 10_000, log: silentLog },
    ...{ checkBack: () => Promise.resolve('no_answer'), checksInParallel: 1, meters: silentChannelMeters },
  });
  const ledger = createStockLedger(stack.redis, silentLog);
  let next = 0;
  const hand = async (): Promise<void> => {
    while (next < count) await leaveOneOpen(batchOf(saleId, `half-${next++}`), channel, ledger);
  };
  try {
    await Promise.all(Array.from({ length: PARALLEL }, hand));
  } finally {
    await channel.close();
  }
}

async function leaveOneOpen(batch: Batch, channel: PurchaseChannel, ledger: StockLedger): Promise<void> {
  const half = await channel.sendHalf(batch);
  if (typeof half === 'string') throw new Error(`a half message was not stored: ${half}`);
  expectEqual(await ledger.deduct(batch), { outcome: 'deducted' }, 'deduct');
}

const batchOf = (saleId: string, userId: string): Batch =>
  sealBatch({
    ...{ batchId: newBatchId(), saleId, bucket: 0, epoch: 1, createdAtMs: Date.now(), trace: '' },
    purchases: [{ userId, requestId: 'k1', quantity: 1 }],
  });
