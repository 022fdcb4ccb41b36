/** How one batch ended, as the metrics name it; `bucket_empty`: nobody was let in yet, units come from other buckets. */
export type BatchVerdict =
  'all_answered_by_precheck' | 'bucket_empty' | 'accepted' | 'refused' | 'aborted' | 'unavailable' | 'outcome_unknown';

/** What the main path counts. Every call must be cheap: it stands on the hot path, once per batch. */
export interface PurchaseMetrics {
  /** @param size purchases that went into the batch; @param tookMs from precheck to the last word to a buyer */
  batchPlaced(verdict: BatchVerdict, size: number, tookMs: number): void;
  /** How long the oldest purchase of a batch had waited in the queue, ms. */
  queueWaited(waitedMs: number): void;
}
