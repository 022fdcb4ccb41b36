import type { Job } from '../core/job.js';
import type { Clock } from '../core/ports/clock.js';
import { MemoryTrend, type ServerMemory } from '../core/store-memory.js';
import type { RecoveryMetrics } from './metrics.js';

/**
 * Publishes how much memory each Redis master uses of what it may use, and how many days it lasts. A Redis that is full
 * refuses every purchase.
 */
export function watchRedisMemory({
  readMemory,
  clock,
  metrics,
}: {
  /** @throws OperationalError redis */
  readonly readMemory: () => Promise<readonly ServerMemory[]>;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly metrics: Pick<RecoveryMetrics, 'redisMemory'>;
}): Job {
  /** By server; one that is gone is forgotten. */
  let trends = new Map<string, MemoryTrend>();
  return {
    name: 'watch-redis-memory',
    async runOnce(): Promise<void> {
      const servers = await readMemory();
      trends = new Map(servers.map(({ server }) => [server, trends.get(server) ?? new MemoryTrend()]));
      metrics.redisMemory(
        servers.map((memory) => {
          return { ...memory, daysLeft: trends.get(memory.server)?.daysLeft(memory, clock.monotonicMs()) ?? null };
        }),
      );
    },
  };
}
