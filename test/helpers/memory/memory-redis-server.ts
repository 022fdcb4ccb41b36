import { OperationalError } from '../../../src/core/errors.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { BucketRef } from '../../../src/core/bucket.js';
import type { Batch } from '../../../src/core/batch.js';
import { purchaseKey } from '../../../src/core/purchase.js';
import { MemoryBucket, type LoadedSale } from './memory-bucket.js';
import { ManualClock } from './manual-clock.js';

/** The faults that a test can ask for, each for the next call of its kind. `…_lost` never arrives, `…_reply_lost` does. */
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

/** What a server lost when it comes back; nothing, by default. */
export interface Restart {
  /** The number of last writes that are gone. */
  readonly lose?: number;
  /** Everything is gone. */
  readonly empty?: boolean;
}

/** The number of writes that can be lost. */
const HISTORY_MAX = 64;

const HALF_A_PAIR = /\p{Surrogate}/u;

/** Whether cjson, with which the scripts decode a body, takes this JSON: unlike JavaScript it refuses half a surrogate pair. */
function isCjson(body: string): boolean {
  if (!body.includes('\\u')) return true; // JavaScript writes half a pair as an escape
  let isFine = true;
  JSON.parse(body, (name, value: unknown) => {
    if (HALF_A_PAIR.test(name) || (typeof value === 'string' && HALF_A_PAIR.test(value))) isFine = false;
    return value;
  });
  return isFine;
}

/** A Redis server in memory: the buckets it holds, faults of single calls, and restarts that lose data. */
export class MemoryRedisServer {
  readonly clock: Clock;
  /** Sales whose repair was asked for. */
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

  /** Each fault hits the next call of its kind; several of one kind hit calls in turn. */
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

  /** Keys of purchases with which the scripts that read a batch fail, however often. */
  readonly poisoned = new Set<string>();

  /** @throws OperationalError, not retryable, for a batch with which a script fails: it decodes the body as cjson does */
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

  /** For tests too: to read what is stored, and to store what only a disaster would leave. */
  bucket({ saleId, bucket }: BucketRef): MemoryBucket {
    const name = `${saleId}:${bucket}`;
    let found = this.#buckets.get(name);
    if (!found) this.#buckets.set(name, (found = new MemoryBucket()));
    return found;
  }

  /** Whether the bucket can be trusted: loaded, not in repair, and written by this server, not before a restart. */
  isSure(sale: LoadedSale | null): sale is LoadedSale {
    return sale !== null && sale.state !== 'repair' && sale.stamp === this.#runId;
  }

  /** From now on writes can be lost by a restart. Each write costs a copy of its bucket. */
  keepHistory(): void {
    this.#history ??= [];
  }

  /** To be called before each write, so that a restart can lose it. */
  aboutToWrite(bucket: MemoryBucket): void {
    if (this.#history === null) return;
    this.#history.push({ bucket, before: bucket.copy() });
    if (this.#history.length > HISTORY_MAX) this.#history.shift();
  }

  /** Dies and comes back with another run id. @returns how many writes are gone */
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
