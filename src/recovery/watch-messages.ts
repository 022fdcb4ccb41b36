import { publishedByOne, type Job, type LeaseOptions } from '../core/job.js';
import type { JobLeases } from '../core/ports/job-leases.js';
import type { RecoveryMetrics } from './metrics.js';

/** What RocketMQ holds, over all its brokers. */
export interface MessageFigures {
  readonly groups: readonly {
    readonly group: string;
    readonly topic: string;
    /** Messages that no consumer of the group was given yet, and the age of the oldest of them, ms; null: none. */
    readonly lag: number;
    readonly oldestMs: number | null;
  }[];
  /** Half messages without an answer. */
  readonly halves: { readonly open: number; readonly oldestMs: number | null };
  /** Half messages that were given up. */
  readonly discarded: number;
  /** One for each broker; `down` says why it does not answer. */
  readonly brokers: readonly { readonly down: string | null }[];
}

/**
 * Publishes what RocketMQ holds. It is asked for all keepers by one of them, since its answers cost the broker some work.
 */
export function watchMessages(
  {
    leases,
    inspect,
    metrics,
  }: {
    readonly leases: JobLeases;
    readonly inspect: () => Promise<MessageFigures>;
    readonly metrics: Pick<RecoveryMetrics, 'messages'>;
  },
  options: LeaseOptions,
): Job {
  const publish = (figures: MessageFigures | null): void => metrics.messages(figures);
  return publishedByOne('watch-messages', leases, options, { look: inspect, publish });
}
