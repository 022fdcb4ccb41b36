import { Registry } from 'prom-client';
import { createChannelMetrics } from '../../src/rocketmq/metrics.js';
import { silentLog } from '../../test/helpers/silent-log.js';
import { createPurchaseChannel } from '../../src/rocketmq/purchase-channel.js';
import { BenchError } from '../bench-error.js';
import type { Session } from '../session/session.js';
import { freshBatch } from './batches.js';
import { throughput, type ThroughputOptions } from './throughput.js';

/** Nobody consumes it. */
const TOPIC = 'seckill-bench-half';

/** Messages per second that are sent as half messages and committed. `size` is how many purchases one carries. */
export async function halfMessageLimit(session: Session, size: number, options: ThroughputOptions): Promise<number> {
  const { stack } = session;
  const attributes = { '+message.type': 'TRANSACTION' } as const;
  await stack.applyTopics({
    topics: [{ topicName: TOPIC, readQueueNums: 8, writeQueueNums: 8, perm: 6, attributes }],
    groups: [],
  });
  const channel = await createPurchaseChannel({
    endpoint: stack.env().ROCKETMQ_ENDPOINT,
    topic: TOPIC,
    checkBack: () => Promise.resolve('commit'),
    checksInParallel: 8,
    log: silentLog,
    metrics: createChannelMetrics(new Registry()),
  });
  try {
    return await throughput(options, async (place) => {
      const half = await channel.sendHalf(freshBatch('900000000000000002', place, size));
      if (typeof half === 'string') throw new BenchError(`a half message was ${half}`);
      await half.commit();
      return 1;
    });
  } finally {
    await channel.close();
  }
}
