import { publishedByOne, type Job, type LeaseOptions } from '../../core/job.js';
import type { JobLeases } from '../../core/ports/job-leases.js';
import type { RecoveryMetrics } from '../../recovery/metrics.js';

/** Messages that RocketMQ holds, over all its brokers. */
export interface MessageFigures {
  readonly groups: readonly {
    readonly group: string;
    readonly topic: string;
    /**
     * Messages that no consumer of the group has received yet, and the age of the oldest in ms, or null if there are
     * none.
     */
    readonly lag: number;
    readonly oldestMs: number | null;
  }[];
  /** Half messages without an answer. */
  readonly halves: { readonly open: number; readonly oldestMs: number | null };
  /** Half messages that the broker gave up on. */
  readonly discarded: number;
  /** The brokers. `down` says why a broker does not answer. */
  readonly brokers: readonly { readonly down: string | null }[];
}

/**
 * Publishes how many messages RocketMQ holds. One keeper asks for all keepers, since the answers cost the broker some
 * work.
 */
export function watchMessages(
  {
    leases,
    inspect,
    metrics,
  }: {
    readonly leases: JobLeases;
    readonly inspect: () => Promise<MessageFigures>;
    readonly metrics: RecoveryMetrics;
  },
  options: LeaseOptions,
): Job {
  const publish = (figures: MessageFigures | null): void => metrics.messages(figures);
  return publishedByOne('watch-messages', leases, options, { look: inspect, publish });
}
