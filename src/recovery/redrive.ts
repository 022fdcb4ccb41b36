import { batchIn, logFieldsOf } from '../core/batch.js';
import { type BucketRef, bucketRefName } from '../core/bucket.js';
import { BucketFaults } from '../core/bucket-faults.js';
import { OperationalError } from '../core/errors.js';
import type { Job } from '../core/job.js';
import type { BatchStore, PendingBatch } from '../core/ports/batch-store.js';
import type { RedriveChannel } from '../core/ports/channels.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { SaleRepository } from '../core/ports/sale-repository.js';
import { NO_TRACING, type Tracing } from '../core/ports/tracing.js';
import { inSpan } from '../core/spans.js';
import type { RecoveryMetrics } from './metrics.js';
import { pendingBuckets } from './pending-buckets.js';

interface RedrivePorts {
  readonly sales: SaleRepository;
  readonly store: BatchStore;
  readonly channel: RedriveChannel;
  /** If absent, nothing is traced. */
  readonly tracing?: Tracing;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RecoveryMetrics;
}

/** Lease on a batch. If the keeper dies or the broker refuses the batch, it is due again after this time. */
const LEASE_MS = 20_000;
/** Maximum number of batches leased together and published at once. */
const PER_TAKE = 32;
/** Maximum number of groups under way, of one or several buckets. Each takes at most its share of the run's budget. */
const TAKES_AT_ONCE = 4;
/** The pause between two publications of a batch equals its age, up to this many times `afterMs`. */
const PAUSE_FACTOR_MAX = 16;

/**
 * Publishes batches again whose message never arrived (protocol rule 8). If it did arrive, the worker finds the batch
 * `already_recorded`. Leases in Redis let several keepers share the work and let a worker keep a batch that it is still
 * retrying (decision 29). Buckets take turns, so a sale with many batches does not delay others.
 * @param afterMs age after which a batch is published again; longer than a check-back takes
 * @param max maximum number of batches published per run
 */
export function redrive(
  ports: RedrivePorts,
  { afterMs, max }: { readonly afterMs: number; readonly max: number },
): Job {
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
      /** Buckets without more batches in this run, or without an answer. */
      const dry = new Set<string>();
      const take = async (ref: BucketRef): Promise<void> => {
        const wanted = Math.min(PER_TAKE, Math.ceil(left / TAKES_AT_ONCE));
        // others can use the part of the budget that this one does not use
        if (wanted === 0 || dry.has(bucketRefName(ref)) || refused.isAll) return;
        left -= wanted;
        served++;
        const fromMs = windows.startOf(ref, clock.monotonicMs());
        const asked = store.takeDue(ref, { olderThanMs: afterMs, leaseMs, max: wanted, fromMs });
        const due = await asked.catch((error: unknown) => {
          dry.add(bucketRefName(ref));
          left += wanted; // as far as we know, nothing was leased, so the other buckets get this share
          throw error;
        });
        windows.goOn(ref, due.nextFromMs);
        left += wanted - due.batches.length;
        if (!due.more) dry.add(bucketRefName(ref));
        await publish(ref, due.batches, ports, { pauseMaxMs: afterMs * PAUSE_FACTOR_MAX, refused });
      };

      let waiting = turned(await pendingBuckets(ports, faults), served);
      while (left > 0 && waiting.length > 0 && !refused.isAll) {
        // if only few buckets have more batches, each is read several times at once
        const takes = waiting.length < TAKES_AT_ONCE ? [...waiting, ...waiting, ...waiting] : waiting;
        await faults.forEach(takes.slice(0, Math.max(TAKES_AT_ONCE, waiting.length)), take, TAKES_AT_ONCE);
        waiting = waiting.filter((ref) => !dry.has(bucketRefName(ref)));
      }
      refused.throwIfAny();
      faults.throwIfAny();
    },
  };
}

/** A published batch gets its pause; any other keeps its lease. @throws OperationalError redis */
async function publish(
  ref: BucketRef,
  batches: readonly PendingBatch[],
  { channel, store, tracing = NO_TRACING, log, metrics }: RedrivePorts,
  { pauseMaxMs, refused }: { readonly pauseMaxMs: number; readonly refused: RefusedBatches },
): Promise<void> {
  const { saleId } = ref;
  const tried = await Promise.allSettled(
    batches.map(async ({ batchId, ageMs, body }) => {
      const batch = batchIn(body);
      if (batch === null) {
        log.error({ batchId, saleId, ageMs }, 'a pending batch has no body, so it cannot be published again');
        return;
      }
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
 * Counts the batches that the broker refused in one run. A single one must not hold up the others. If the broker
 * refuses all, the run must stop, or it would lose a time-out on every lease.
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

  /** Whether the broker refused as many batches in a row as one lease holds. The cause is then not in the batches. */
  get isAll(): boolean {
    return this.#inARow >= PER_TAKE;
  }

  /** @throws OperationalError of the broker */
  throwIfAny(): void {
    if (this.#first === null) return;
    if (this.#count === 1) throw this.#first;
    const { dependency, message, retryable } = this.#first;
    const what = `${message}; ${this.#count} batches in total were not published`;
    throw new OperationalError(dependency, what, { retryable, cause: this.#first });
  }
}

const turned = (refs: readonly BucketRef[], by: number): readonly BucketRef[] => {
  const start = refs.length === 0 ? 0 : by % refs.length;
  return [...refs.slice(start), ...refs.slice(0, start)];
};

/**
 * The deduct time from which each bucket is searched for batches that were never leased. A search continues where the
 * last one ended. From time to time it starts over, because the clock of a new Redis server may be behind.
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
