import { NO_TRANSFERS, unitsInTransit } from '../../src/core/unit-transfer.js';
import type { BucketSnapshot } from '../../src/core/ports/audit.js';

/** All buckets of a sale as if they were one. */
export interface MergedSnapshot extends Omit<BucketSnapshot, 'transfers'> {
  readonly inTransit: number;
}

/** Those that are not loaded have nothing. */
export function mergeBuckets(buckets: readonly (BucketSnapshot | null)[]): MergedSnapshot {
  const loaded = buckets.filter((bucket): bucket is BucketSnapshot => bucket !== null);
  const inTransit = unitsInTransit(buckets.map((bucket) => bucket?.transfers ?? NO_TRANSFERS));
  const [only] = loaded;
  if (loaded.length === 1 && only) return { ...only, inTransit };
  return {
    inTransit,
    unitsLeft: loaded.reduce((sum, bucket) => sum + bucket.unitsLeft, 0),
    requests: new Map(loaded.flatMap((bucket) => [...bucket.requests])),
    buyers: new Map(loaded.flatMap((bucket) => [...bucket.buyers])), // a buyer has one home bucket
    pending: loaded.flatMap((bucket) => bucket.pending),
  };
}
