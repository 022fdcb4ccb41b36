import { BucketFaults } from '../core/bucket-faults.js';
import { OperationalError } from '../core/errors.js';
import type { Job } from '../core/job.js';
import type { Clock } from '../core/ports/clock.js';
import { MemoryTrend, type ServerMemory } from '../core/store-memory.js';
import type { RecoveryMetrics } from './metrics.js';

/**
 * Publishes how much memory each Redis master uses of what it may use, and how many days it lasts. A Redis that is full
 * takes no purchase.
 */
export function watchRedisMemory({
  readMemory,
  clock,
  metrics,
}: {
  /** Of every server; its fault, if it does not answer. */
  readonly readMemory: () => Promise<readonly (ServerMemory | OperationalError)[]>;
  readonly clock: Clock;
  readonly metrics: RecoveryMetrics;
}): Job {
  /** By server; one that is gone is forgotten. */
  let trends = new Map<string, MemoryTrend>();
  return {
    name: 'watch-redis-memory',
    async runOnce(): Promise<void> {
      const servers: ServerMemory[] = [];
      const faults = new BucketFaults();
      for (const one of await readMemory()) {
        if (one instanceof OperationalError) faults.add(one);
        else servers.push(one);
      }
      const known = servers.map(({ server }) => [server, trends.get(server) ?? new MemoryTrend()] as const);
      // while some do not answer, none is known to be gone
      trends = new Map(faults.isEmpty ? known : [...trends, ...known]);
      metrics.redisMemory(
        servers.map((memory) => {
          return { ...memory, daysLeft: trends.get(memory.server)?.daysLeft(memory, clock.monotonicMs()) ?? null };
        }),
      );
      faults.throwIfAny();
    },
  };
}
