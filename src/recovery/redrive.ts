import { decodeBatch, logFieldsOf } from '../core/batch.js';
import { type BucketRef, bucketRefName } from '../core/bucket.js';
import { BucketFaults } from '../core/bucket-faults.js';
import { OperationalError } from '../core/errors.js';
import type { Job } from '../core/job.js';
import type { BatchStore, PendingBatch } from '../core/ports/batch-store.js';
import type { RedriveChannel } from '../core/ports/channels.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import { NO_TRACING, type Tracing } from '../core/ports/tracing.js';
import { inSpan } from '../core/spans.js';
import type { RecoveryMetrics } from './metrics.js';
import { pendingBuckets, type PendingBucketsPorts } from './pending-buckets.js';

export interface RedrivePorts extends PendingBucketsPorts {
  readonly store: Pick<BatchStore, 'withPending' | 'takeDue' | 'leaveAlone'>;
  readonly channel: RedriveChannel;
  /** Absent: nothing is recorded. */
  readonly tracing?: Tracing;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RecoveryMetrics;
}

export interface RedriveOptions {
  /**
   * A batch deducted this long ago and not marked as recorded is published again; must be longer than a check-back
   * takes.
   */
  readonly afterMs: number;
  /** Batches published in one run. */
  readonly max: number;
}

/** What is taken and not published, because the keeper died or the broker refused, is due again after this. */
const LEASE_MS = 20_000;
/** Batches that are taken together, and published at the same time. */
const PER_TAKE = 32;
/** Takes under way, of several buckets or of one; each is at most that share of what may still be published. */
const TAKES_AT_ONCE = 4;
/** The pause between two publications of a batch is as long as it has waited, up to this many times `afterMs`. */
const PAUSE_FACTOR_MAX = 16;

/**
 * Publishes batches again whose message never arrived (protocol rule 8). If the message had arrived after all, the worker
 * answers `already_recorded`. A keeper leases the batches it takes in Redis, so several keepers share the work, and a worker
 * that still retries a batch keeps it in the same way (decision 29). Buckets take turns, so a sale with very many batches
 * does not delay the batches of other sales.
 */
export function redrive(ports: RedrivePorts, { afterMs, max }: RedriveOptions): Job {
  const { store, clock } = ports;
  const leaseMs = Math.min(LEASE_MS, afterMs);
  const windows = new Windows(afterMs);
  let served = 0;

  return {
    name: 'redrive',
    async runOnce(): Promise<void> {
      const faults = new BucketFaults();
      const refused = new RefusedBatches();
      let left = max;
      /** Buckets that have no more in this run, or did not answer. */
      const dry = new Set<string>();
      const take = async (ref: BucketRef): Promise<void> => {
        const wanted = Math.min(PER_TAKE, Math.ceil(left / TAKES_AT_ONCE));
        // what other takes do not find is free again
        if (wanted === 0 || dry.has(bucketRefName(ref)) || refused.isAll) return;
        left -= wanted;
        served++;
        const fromMs = windows.startOf(ref, clock.monotonicMs());
        const asked = store.takeDue(ref, { olderThanMs: afterMs, leaseMs, max: wanted, fromMs });
        const due = await asked.catch((error: unknown) => {
          dry.add(bucketRefName(ref));
          left += wanted; // nothing was taken, so far as we know: the other buckets have their share
          throw error;
        });
        windows.goOn(ref, due.nextFromMs);
        left += wanted - due.batches.length;
        if (!due.more) dry.add(bucketRefName(ref));
        await publish(ref, due.batches, ports, { pauseMaxMs: afterMs * PAUSE_FACTOR_MAX, refused });
      };

      let waiting = turned(await pendingBuckets(ports, faults), served);
      while (left > 0 && waiting.length > 0 && !refused.isAll) {
        // where few buckets have more, several takes of each are under way
        const takes = waiting.length < TAKES_AT_ONCE ? [...waiting, ...waiting, ...waiting] : waiting;
        await faults.forEach(takes.slice(0, Math.max(TAKES_AT_ONCE, waiting.length)), take, TAKES_AT_ONCE);
        waiting = waiting.filter((ref) => !dry.has(bucketRefName(ref)));
      }
      refused.throwIfAny();
      faults.throwIfAny();
    },
  };
}

/** Those that were published have their pause, the others keep their lease. @throws OperationalError redis */
async function publish(
  ref: BucketRef,
  batches: readonly PendingBatch[],
  { channel, store, tracing = NO_TRACING, log, metrics }: RedrivePorts,
  { pauseMaxMs, refused }: { readonly pauseMaxMs: number; readonly refused: RefusedBatches },
): Promise<void> {
  const { saleId } = ref;
  const tried = await Promise.allSettled(
    batches.map(async ({ batchId, ageMs, body }) => {
      const decoded = body === null ? null : decodeBatch(body);
      if (decoded?.outcome !== 'decoded') {
        log.error({ batchId, saleId, ageMs }, 'a pending batch has no body: it cannot be re-driven');
        return;
      }
      const { batch } = decoded;
      const fields = { 'seckill.batch': batchId, 'seckill.sale': saleId };
      const span = tracing.startWork(batch.traceparent, { name: 'publish batch again', kind: 'producer', fields });
      try {
        await inSpan(span, () => channel.publish(batch));
      } catch (error) {
        refused.add(error);
        throw error;
      }
      refused.published();
      metrics.redriven(1);
      log.info({ ...logFieldsOf(batch), saleId, ageMs }, 'batch published again');
    }),
  );
  const done = batches.filter((_, index) => tried[index]?.status === 'fulfilled');
  const pauses = done.map(({ batchId, ageMs }) => ({ batchId, forMs: Math.min(ageMs, pauseMaxMs) }));
  if (pauses.length > 0) await store.leaveAlone(ref, pauses);
  for (const one of tried) {
    if (one.status === 'rejected' && !(one.reason instanceof OperationalError)) throw one.reason;
  }
}

/**
 * Batches that the broker did not take in one run. One that it refuses must not keep the others waiting; a broker that
 * takes none would keep the run at it, a time-out for each take.
 */
class RefusedBatches {
  #first: OperationalError | null = null;
  #count = 0;
  #inARow = 0;

  add(error: unknown): void {
    if (!(error instanceof OperationalError)) return;
    this.#first ??= error;
    this.#count++;
    this.#inARow++;
  }

  published(): void {
    this.#inARow = 0;
  }

  /** So many in a row: it is not the batches. */
  get isAll(): boolean {
    return this.#inARow >= PER_TAKE;
  }

  /** @throws OperationalError of the broker */
  throwIfAny(): void {
    if (this.#first === null) return;
    if (this.#count === 1) throw this.#first;
    const { dependency, message, retryable } = this.#first;
    const what = `${message}; in all ${this.#count} batches were not published`;
    throw new OperationalError(dependency, what, { retryable, cause: this.#first });
  }
}

const turned = (refs: readonly BucketRef[], by: number): readonly BucketRef[] => {
  const start = refs.length === 0 ? 0 : by % refs.length;
  return [...refs.slice(start), ...refs.slice(0, start)];
};

/**
 * From which time of deduct a bucket is looked through for batches that were never taken: where the last look ended, and
 * from the beginning once in a while, since a Redis that was replaced may have a clock behind that of the old one.
 */
class Windows {
  readonly #againMs: number;
  #windows = new Map<string, number>();
  #sinceMs = -Infinity;

  constructor(againMs: number) {
    this.#againMs = againMs;
  }

  startOf(ref: BucketRef, nowMs: number): number {
    if (Math.abs(nowMs - this.#sinceMs) >= this.#againMs) {
      this.#windows = new Map();
      this.#sinceMs = nowMs;
    }
    return this.#windows.get(bucketRefName(ref)) ?? 0;
  }

  goOn(ref: BucketRef, fromMs: number): void {
    this.#windows.set(bucketRefName(ref), fromMs);
  }
}
