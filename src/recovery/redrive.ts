import { decodeBatch } from '../core/batch.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { RedriveChannel } from '../core/ports/channels.js';
import type { BatchStore } from '../core/ports/batch-store.js';
import type { Job } from '../core/job.js';
import type { RecoveryMetrics } from './metrics.js';
import { pendingBuckets, type PendingBucketsPorts } from './pending-buckets.js';

export interface RedrivePorts extends PendingBucketsPorts {
  readonly store: Pick<BatchStore, 'withPending' | 'stalePending'>;
  readonly channel: RedriveChannel;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<RecoveryMetrics, 'redriven'>;
}

export interface RedriveOptions {
  /**
   * A batch deducted this long ago and not marked as recorded is published again; must be longer than a check-back
   * takes.
   */
  readonly afterMs: number;
  /** Batches published in one run. */
  readonly max: number;
}

/** The pause between two tries of one batch doubles up to this many times `afterMs`. */
const PAUSE_FACTOR_MAX = 16;

/**
 * Publishes batches again whose message never arrived (protocol rule 8). The worker answers `already_recorded` where
 * it had arrived after all. Tries are counted in this process only: a new keeper starts with short pauses, which
 * costs a duplicate and nothing else.
 */
export function redrive(ports: RedrivePorts, options: RedriveOptions): Job {
  const { store, channel, clock, log, metrics } = ports;
  const tries = new Map<string, { count: number; dueMs: number }>();

  return {
    name: 'redrive',
    async runOnce(): Promise<void> {
      const seen = new Set<string>();
      let published = 0;
      for (const ref of await pendingBuckets(ports)) {
        // More than may be published: those whose pause is not over must not hide the others.
        for (const { batchId, ageMs, body } of await store.stalePending(ref, options.afterMs, options.max * 10)) {
          const before = tries.get(batchId) ?? { count: 0, dueMs: 0 };
          seen.add(batchId);
          if (published >= options.max || clock.nowMs() < before.dueMs) continue;
          const decoded = body === null ? null : decodeBatch(body);
          if (decoded?.outcome !== 'decoded') {
            log.error({ batchId, saleId: ref.saleId, ageMs }, 'a pending batch has no body: it cannot be re-driven');
            continue;
          }
          await channel.publish(decoded.batch);
          published++;
          metrics.redriven(1);
          const pauseMs = options.afterMs * Math.min(2 ** before.count, PAUSE_FACTOR_MAX);
          tries.set(batchId, { count: before.count + 1, dueMs: clock.nowMs() + pauseMs });
          log.info({ batchId, saleId: ref.saleId, ageMs, tries: before.count + 1 }, 'batch published again');
        }
      }
      for (const batchId of tries.keys()) if (!seen.has(batchId)) tries.delete(batchId); // recorded meanwhile
    },
  };
}
