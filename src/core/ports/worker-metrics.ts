/** How one delivery ended, as the metrics name it (P4, and what happens before and after it). */
export type DeliveryVerdict =
  | 'recorded'
  | 'already_recorded'
  | 'refused'
  | 'retry'
  | 'settle_failed'
  | 'undecodable'
  | 'unknown_version'
  | 'unknown_sale';

/**
 * Why rows could not be written now. Three are for batches of an older epoch, which claim their units first: `repairing`
 * while the sale is being rebuilt, `not_warmed` when Redis does not have it, `held_elsewhere` when some of its purchases
 * wait for the row that another batch writes.
 */
export type RetryReason =
  'unavailable' | 'contended' | 'no_order_ids' | 'poison' | 'repairing' | 'not_warmed' | 'held_elsewhere';

export type BreakerState = 'closed' | 'open' | 'half_open';

/** What the worker counts. Each call is once per batch or transaction, must be cheap and must not throw. */
export interface WorkerMetrics {
  /** One call per receive that brought something. */
  received(deliveries: number): void;
  /** The broker had to ask what became of this batch: its commit was late or lost. */
  checkedBack(): void;
  /** @param purchases of the batch; 0 when the body could not be read */
  delivered(verdict: DeliveryVerdict, purchases: number): void;
  retried(reason: RetryReason): void;
  /**
   * One try to record batches, whatever came of it.
   * @param rows purchases in it; @param tookMs from the terms to COMMIT, with every attempt
   */
  batchesWritten(batches: number, rows: number, tookMs: number): void;
  settled(tookMs: number): void;
  breaker(state: BreakerState): void;
}

/** For tests and for processes that publish no metrics. */
export const silentWorkerMetrics: WorkerMetrics = {
  received: () => undefined,
  checkedBack: () => undefined,
  delivered: () => undefined,
  retried: () => undefined,
  batchesWritten: () => undefined,
  settled: () => undefined,
  breaker: () => undefined,
};
