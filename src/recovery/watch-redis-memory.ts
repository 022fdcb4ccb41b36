import { BucketFaults } from '../core/bucket-faults.js';
import { OperationalError } from '../core/errors.js';
import type { Job } from '../core/job.js';
import type { Clock } from '../core/ports/clock.js';
import { MemoryTrend, type ServerMemory } from '../core/store-memory.js';
import type { RecoveryMetrics } from './metrics.js';

/** Publishes the memory use of each Redis master and how many days are left. A full Redis accepts no purchases. */
export function watchRedisMemory({
  readMemory,
  clock,
  metrics,
}: {
  /** Reads the memory of every server. For a server that does not answer, returns its fault. */
  readonly readMemory: () => Promise<readonly (ServerMemory | OperationalError)[]>;
  readonly clock: Clock;
  readonly metrics: RecoveryMetrics;
}): Job {
  /** Memory trends per server. Servers that are gone are removed. */
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
      // while some servers do not answer, gone servers are unknown
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
