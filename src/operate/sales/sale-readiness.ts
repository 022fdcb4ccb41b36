import type { Config } from '../../core/config/schema.js';
import { recent } from '../../core/recent.js';
import { TOPICS } from '../../core/topics.js';
import type { Log } from '../../core/ports/log.js';
import type { Sale } from '../../core/sale.js';
import type { RedisConnection } from '../../redis/connection.js';
import { createSaleSnapshotCache } from '../../redis/sale-store.js';
import { createStockStore } from '../../redis/stock-store.js';
import { brokerAccessOf } from '../../rocketmq/credentials.js';
import { readinessOf, type Readiness } from '../../sales/schedule/readiness.js';
import { systemClock } from '../../process/system-clock.js';

/** Sales that start together are checked one after the other and share one answer of the broker. */
const TOPICS_KNOWN_MS = 5000;

/** Opens the readiness check of a sale, on real servers. */
export function openReadiness(
  redis: RedisConnection,
  { rocketmq, brokerAccess }: Config<'rocketmq' | 'brokerAccess'>,
  log: Log,
): (sale: Sale) => Promise<Readiness> {
  const store = createStockStore(redis, log);
  const cache = createSaleSnapshotCache(redis);
  const broker = { endpoint: rocketmq.endpoint, ...brokerAccessOf(brokerAccess) };
  const topics = recent(
    async () => {
      const { probeTopics } = await import('../../rocketmq/probe-topics.js'); // the broker client takes long to load
      return probeTopics(broker, Object.values(TOPICS));
    },
    TOPICS_KNOWN_MS,
    systemClock,
  );
  return (sale) => readinessOf(sale, store, cache, topics);
}
