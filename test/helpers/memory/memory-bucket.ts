import { splitPurchaseKey } from '../../../src/core/purchase.js';
import { formatRequestEntry, type RequestEntry } from '../../../src/core/outcome.js';
import type { StoredSaleState } from '../../../src/core/sale.js';
import type { BucketTransfers } from '../../../src/core/bucket.js';

export interface LoadedSale {
  state: StoredSaleState;
  epoch: number;
  /** The server on which the sale was loaded or rebuilt. */
  stamp: number;
  opensAtMs: number;
  closesAtMs: number;
  limitPerBuyer: number;
  /** Absent if Redis does not know it. */
  buckets?: number;
  /** The last edit. */
  edit?: { readonly id: number; readonly epoch: number; readonly word: 'done' | 'refused' };
}

/** The state of a batch. The body is kept from deduct until the batch is marked recorded. Then the marker expires. */
export type Marker =
  | { readonly kind: 'deducted' | 'claimed'; readonly body: string | null; readonly untilMs?: number }
  | { readonly kind: 'aborted'; readonly untilMs: number };

/** A running repair and the requests that it has staged so far. */
export interface BucketRepair {
  readonly token: string;
  /** The server on which it began. */
  readonly runId: number;
  readonly leaseMs: number;
  untilMs: number;
  readonly staged: Map<string, RequestEntry>;
}

/** The latest transfer from a bucket to another bucket. */
interface OutgoingTransfer {
  readonly seq: number;
  readonly units: number;
  readonly isOpen: boolean;
  readonly atMs: number;
}

/** Everything a bucket holds, in a form that is comparable between Redis and memory. */
export interface BucketSnapshot {
  readonly state: StoredSaleState | null;
  readonly unitsLeft: number;
  /** Excludes buyers without units. */
  readonly buyers: Record<string, number>;
  /** Same as the `requests` hash. */
  readonly requests: Record<string, string>;
  readonly pending: readonly string[];
  /** `aborted`, `deducted`, or `deducted` followed by the body. */
  readonly markers: Record<string, string>;
}

/** Holds the keys of one bucket in Redis. */
export class MemoryBucket {
  /** Null if not loaded. */
  sale: LoadedSale | null = null;
  unitsLeft = 0;
  requests = new Map<string, RequestEntry>();
  markers = new Map<string, Marker>();
  /** batchId → Unix ms of its deduct. */
  pending = new Map<string, number>();
  /** batchId → time until which the re-drive ignores it, Unix ms. */
  redrives = new Map<string, number>();
  repair: BucketRepair | null = null;
  /** Keyed by the receiving bucket. */
  outgoing = new Map<number, OutgoingTransfer>();
  /** Source bucket → number of the last transfer that arrived from it. */
  incoming = new Map<number, number>();

  /** Returns the marker unless it has expired. */
  marker(batchId: string, nowMs: number): Marker | null {
    const marker = this.markers.get(batchId);
    if (!marker || (marker.untilMs !== undefined && marker.untilMs <= nowMs)) return null;
    return marker;
  }

  /** Returns units held or ordered, by buyer. */
  unitsByBuyer(): Map<string, number> {
    const units = new Map<string, number>();
    for (const [key, entry] of this.requests) {
      if (entry.state === 'released') continue;
      const { userId } = splitPurchaseKey(key);
      units.set(userId, (units.get(userId) ?? 0) + entry.quantity);
    }
    return units;
  }

  /** Returns all buyers with an entry, including ended purchases. */
  acceptedBuyers(): Set<string> {
    return new Set([...this.requests.keys()].map((key) => splitPurchaseKey(key).userId));
  }

  copy(): MemoryBucket {
    const copy = new MemoryBucket();
    copy.sale = this.sale && { ...this.sale };
    copy.unitsLeft = this.unitsLeft;
    copy.requests = new Map(this.requests);
    copy.markers = new Map(this.markers);
    copy.pending = new Map(this.pending);
    copy.redrives = new Map(this.redrives);
    copy.outgoing = new Map(this.outgoing);
    copy.incoming = new Map(this.incoming);
    copy.repair = this.repair && { ...this.repair, staged: new Map(this.repair.staged) };
    return copy;
  }

  /** Adopts everything from the other bucket, which must not be used afterwards. */
  replaceBy({ sale, unitsLeft, requests, markers, pending, redrives, ...rest }: MemoryBucket): void {
    const { repair, outgoing, incoming } = rest;
    Object.assign(this, { sale, unitsLeft, requests, markers, pending, redrives, repair, outgoing, incoming });
  }

  pendingOldestFirst(): [string, number][] {
    const byName = ([a]: [string, number], [b]: [string, number]): number => (a < b ? -1 : 1);
    return [...this.pending].sort((a, b) => a[1] - b[1] || byName(a, b));
  }

  /** @param nowMs if absent, every transfer is new */
  transfers(nowMs?: number): BucketTransfers {
    const outgoing = [...this.outgoing].map(([to, { atMs, ...rest }]) => ({
      to,
      ...rest,
      ageMs: (nowMs ?? atMs) - atMs,
    }));
    return {
      outgoing: outgoing.sort((a, b) => a.to - b.to),
      incoming: new Map([...this.incoming].sort(([a], [b]) => a - b)),
    };
  }

  snapshot(): BucketSnapshot {
    const markers = [...this.markers].map(([batchId, marker]) => {
      const body = marker.kind === 'aborted' ? null : marker.body;
      return [batchId, `${marker.kind}${body ?? ''}`] as const;
    });
    return {
      state: this.sale?.state ?? null,
      unitsLeft: this.unitsLeft,
      buyers: Object.fromEntries(this.unitsByBuyer()),
      requests: Object.fromEntries([...this.requests].map(([key, entry]) => [key, formatRequestEntry(entry)])),
      pending: [...this.pending.keys()].sort(),
      markers: Object.fromEntries(markers),
    };
  }
}
