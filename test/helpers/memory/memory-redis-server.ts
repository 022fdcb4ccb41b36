import { OperationalError } from '../../../src/core/errors.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { BucketRef } from '../../../src/core/bucket.js';
import { MemoryBucket, type LoadedSale } from './memory-bucket.js';
import { ManualClock } from './manual-clock.js';

/** The faults that a test can order, each for the next call of its kind. `…_lost` never arrives, `…_reply_lost` does. */
export type StoreFault =
  | 'precheck_fails'
  | 'deduct_lost'
  | 'deduct_reply_lost'
  | 'decide_lost'
  | 'decide_reply_lost'
  | 'read_fails'
  | 'settle_fails'
  | 'settle_reply_lost'
  | 'claim_fails'
  | 'claim_reply_lost'
  | 'release_fails'
  | 'release_reply_lost'
  | 'unpark_fails'
  | 'repair_fails'
  | 'repair_reply_lost';

/** How a server comes back; without any of them it lost nothing. */
export interface Restart {
  /** So many of the last writes are gone. */
  readonly lose?: number;
  /** Everything is gone. */
  readonly empty?: boolean;
}

/** Writes that can be undone. */
const HISTORY_MAX = 64;

/** The server that a ledger in memory runs on: its buckets, its faults, and how it comes back after its death. */
export class MemoryServer {
  readonly clock: Clock;
  readonly #buckets = new Map<string, MemoryBucket>();
  readonly #faults: StoreFault[] = [];
  /** Another one after every restart, as the `run_id` of Redis. */
  #runId = 1;
  #history: { readonly bucket: MemoryBucket; readonly before: MemoryBucket }[] | null = null;

  constructor(options: { readonly clock?: Clock } = {}) {
    this.clock = options.clock ?? new ManualClock();
  }

  get runId(): number {
    return this.#runId;
  }

  get nowMs(): number {
    return this.clock.nowMs();
  }

  /** The next call that the fault fits fails; several are kept in order. */
  breakNext(...faults: StoreFault[]): void {
    this.#faults.push(...faults);
  }

  isBroken(kind: StoreFault): boolean {
    const index = this.#faults.indexOf(kind);
    if (index >= 0) this.#faults.splice(index, 1);
    return index >= 0;
  }

  failOn(kind: StoreFault): void {
    if (this.isBroken(kind)) throw new OperationalError('redis', kind, { retryable: true });
  }

  /** Where a test looks, and plants what only a disaster would leave. */
  bucket({ saleId, bucket }: BucketRef): MemoryBucket {
    const name = `${saleId}:${bucket}`;
    let found = this.#buckets.get(name);
    if (!found) this.#buckets.set(name, (found = new MemoryBucket()));
    return found;
  }

  /** Whether the bucket is as this server wrote it: loaded, not in repair, and not from before a restart. */
  isSure(sale: LoadedSale | null): sale is LoadedSale {
    return sale !== null && sale.state !== 'repair' && sale.stamp === this.#runId;
  }

  /** Writes can be lost from now on. It costs a copy of a bucket each. */
  keepHistory(): void {
    this.#history ??= [];
  }

  /** Stands before each write, so that a restart can lose it. */
  aboutToWrite(bucket: MemoryBucket): void {
    if (this.#history === null) return;
    this.#history.push({ bucket, before: bucket.copy() });
    if (this.#history.length > HISTORY_MAX) this.#history.shift();
  }

  /**
   * It dies and comes back as another one.
   * @returns how many writes are gone
   */
  restart({ lose = 0, empty = false }: Restart = {}): number {
    this.#runId++;
    if (empty) {
      for (const bucket of this.#buckets.values()) bucket.become(new MemoryBucket());
      this.#history?.splice(0);
    }
    if (lose > 0 && this.#history === null) throw new Error('keepHistory comes first');
    const undone = this.#history?.splice(Math.max(0, this.#history.length - lose)) ?? [];
    for (const { bucket, before } of undone.reverse()) bucket.become(before);
    return lose > 0 ? undone.length : 0;
  }
}
