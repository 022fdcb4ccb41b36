import type { WatchedState } from '../waiting-states.js';
import type { OutboxBacklog, OutboxKind } from './outbox.js';
import type { RefundOutcome } from './payment-provider.js';

/** How one message that the keeper consumes ended. */
export type ConsumeVerdict = 'done' | 'later' | 'failed' | 'undecodable' | 'unknown_version';

/** What the keeper counts. Jobs are named by their file. */
export interface KeeperMetrics {
  jobRan(job: string, result: 'done' | 'failed', tookMs: number): void;
  /** Batches published again because nobody settled them. */
  redriven(batches: number): void;
  /** Batches that MySQL had and Redis still held. */
  settledLate(batches: number): void;
  /** Requests whose units went back. */
  released(requests: number): void;
  /** Unpaid orders ended at their deadline. */
  expired(orders: number): void;
  /** What waits in this state beyond its deadline, and how long ago the oldest should have ended, in ms. */
  overdue(state: WatchedState, count: number, oldestMs: number): void;
  /** Messages parked in `dead_letters`. */
  parked(messages: number): void;
  /** Batches deducted and not settled, all sales together, and the age of the oldest one in ms. The alert to have. */
  pending(batches: number, oldestMs: number): void;
  /** Rows of the outbox that were published, or given back to be tried again. */
  relayed(kind: OutboxKind, result: 'published' | 'retried', rows: number): void;
  /** What the outbox still holds; the age of the oldest row is an alert to have. */
  backlog(backlog: OutboxBacklog): void;
  /** Rows that were done long ago and are gone now. */
  removed(rows: number): void;
  /** One message of a group that the keeper works for. */
  consumed(group: string, verdict: ConsumeVerdict): void;
  /** One try to give money back. */
  refundTried(outcome: RefundOutcome['outcome']): void;
  /** Orders whose buyers may have waited and were told. */
  notificationsSent(orders: number): void;
  /** Coupons that paid orders earned. */
  couponsIssued(coupons: number): void;
}
