import { OperationalError } from '../../../src/core/errors.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { BucketRef } from '../../../src/core/bucket.js';
import type { Batch } from '../../../src/core/batch.js';
import { purchaseKey } from '../../../src/core/purchase.js';
import { MemoryBucket, type LoadedSale } from './memory-bucket.js';
import { ManualClock } from './manual-clock.js';

/**
 * Faults that a test can inject, each for the next call of its kind. With `…_lost` the call never arrives, with
 * `…_reply_lost` it does.
 */
export type RedisFault =
  | 'precheck_fails'
  | 'deduct_lost'
  | 'deduct_reply_lost'
  | 'resolve_lost'
  | 'resolve_reply_lost'
  | 'read_fails'
  | 'mark_recorded_fails'
  | 'mark_recorded_reply_lost'
  | 'reacquire_fails'
  | 'reacquire_reply_lost'
  | 'release_fails'
  | 'release_reply_lost'
  | 'unpark_fails'
  | 'edit_fails'
  | 'edit_reply_lost'
  | 'leave_alone_fails'
  | 'repair_fails'
  | 'repair_reply_lost';

/** The loss of a server at a restart. Nothing by default. */
export interface Restart {
  /** The number of last writes that are lost. */
  readonly lose?: number;
  /** Loses everything. */
  readonly empty?: boolean;
}

/** The number of writes that can be lost. */
const HISTORY_MAX = 64;

const HALF_A_PAIR = /\p{Surrogate}/u;

/**
 * Whether cjson, the decoder of the scripts, accepts this JSON. Unlike JavaScript, cjson refuses half a surrogate pair.
 */
function isCjson(body: string): boolean {
  if (!body.includes('\\u')) return true; // JavaScript escapes half a pair
  let isFine = true;
  JSON.parse(body, (name, value: unknown) => {
    if (HALF_A_PAIR.test(name) || (typeof value === 'string' && HALF_A_PAIR.test(value))) isFine = false;
    return value;
  });
  return isFine;
}

/** A Redis server in memory: its buckets, faults of single calls, and restarts that lose data. */
export class MemoryRedisServer {
  readonly clock: Clock;
  /** Sales for which a repair was requested. */
  readonly asks = new Set<string>();
  readonly #buckets = new Map<string, MemoryBucket>();
  readonly #faults: RedisFault[] = [];
  /** Changes with every restart, as the `run_id` of Redis does. */
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

  /** Injects faults for the next call of each kind. Several faults of one kind hit successive calls. */
  breakNext(...faults: RedisFault[]): void {
    this.#faults.push(...faults);
  }

  isBroken(kind: RedisFault): boolean {
    const index = this.#faults.indexOf(kind);
    if (index >= 0) this.#faults.splice(index, 1);
    return index >= 0;
  }

  failOn(kind: RedisFault): void {
    if (this.isBroken(kind)) throw new OperationalError('redis', kind, { retryable: true });
  }

  /** Purchase keys with which the scripts that read a batch always fail. */
  readonly poisoned = new Set<string>();

  /** Decodes the body like cjson. @throws OperationalError, not retryable, for a batch with which a script fails */
  decode({ body, purchases }: Pick<Batch, 'body' | 'purchases'>): void {
    const isPoisoned = this.poisoned.size > 0 && purchases.some((purchase) => this.poisoned.has(purchaseKey(purchase)));
    if (isPoisoned || !isCjson(body)) throw new OperationalError('redis', 'a script failed', { retryable: false });
  }

  /** Sales whose server does not answer. */
  readonly cutOff = new Set<string>();

  /** @throws OperationalError while the server of the bucket does not answer */
  reach({ saleId }: BucketRef): void {
    const fault = this.faultOf({ saleId, bucket: 0 });
    if (fault !== null) throw fault;
  }

  faultOf({ saleId }: BucketRef): OperationalError | null {
    return this.cutOff.has(saleId) ? new OperationalError('redis', `${saleId} is cut off`, { retryable: true }) : null;
  }

  /** Returns a bucket, also for tests that read stored data or store the remains of a disaster. */
  bucket({ saleId, bucket }: BucketRef): MemoryBucket {
    const name = `${saleId}:${bucket}`;
    let found = this.#buckets.get(name);
    if (!found) this.#buckets.set(name, (found = new MemoryBucket()));
    return found;
  }

  /** Whether the bucket can be trusted: loaded, not in repair, and written by this server since its last restart. */
  isSure(sale: LoadedSale | null): sale is LoadedSale {
    return sale !== null && sale.state !== 'repair' && sale.stamp === this.#runId;
  }

  /** From now on, lets a restart lose writes. Each write costs a copy of its bucket. */
  keepHistory(): void {
    this.#history ??= [];
  }

  /** Must be called before each write, so that a restart can lose the write. */
  aboutToWrite(bucket: MemoryBucket): void {
    if (this.#history === null) return;
    this.#history.push({ bucket, before: bucket.copy() });
    if (this.#history.length > HISTORY_MAX) this.#history.shift();
  }

  /** Dies and comes back with another run id. @returns the number of lost writes */
  restart({ lose = 0, empty = false }: Restart = {}): number {
    this.#runId++;
    if (empty) {
      this.asks.clear();
      for (const bucket of this.#buckets.values()) bucket.replaceBy(new MemoryBucket());
      this.#history?.splice(0);
    }
    if (lose > 0 && this.#history === null) throw new Error('keepHistory comes first');
    const undone = this.#history?.splice(Math.max(0, this.#history.length - lose)) ?? [];
    for (const { bucket, before } of undone.reverse()) bucket.replaceBy(before);
    return lose > 0 ? undone.length : 0;
  }
}
