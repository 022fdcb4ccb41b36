import type { BucketRef } from '../../core/bucket.js';
import { OperationalError } from '../../core/errors.js';
import type { Sale } from '../../core/sale.js';
import type { WorkerProgress } from '../../core/ports/channels.js';
import type { Clock } from '../../core/ports/clock.js';
import type { Log } from '../../core/ports/log.js';
import type { RepairRepository, RepairStore } from '../../core/ports/repair-stores.js';

const READ_EVERY_MS = 250;
/** Age of a closed sale after which all its batches are written, or are dead letters. */
const CLOSED_LONG_AGO_MS = 24 * 3_600_000;

/**
 * Waits until the workers have written the orders of the sale, so that buyers with a 202 come first. The workers must
 * have received everything that their queues held when the sale was locked, and must then have written no order of the
 * sale for `quietMs`. Quiet alone proves nothing: the batches of the sale may be queued behind those of other sales. If
 * the broker never reports the progress of the workers, quiet alone decides. A batch that arrives later (from a stopped
 * worker, or after its retry) has to reacquire its units from the units left. An idle sale does not wait if the workers
 * had received everything before.
 * @param quietMs time without a written order after which the sale counts as quiet
 * @param waitMaxMs maximum total wait
 * @param onRead called before each read, to check that the lease is still ours
 * @throws OperationalError mysql, and any error that `onRead` throws
 */
export async function awaitQuiet(
  sale: Sale,
  {
    findSale,
    isIdle,
    progress,
    clock,
    log,
  }: {
    /** Reads the sale from MySQL. */
    readonly findSale: (saleId: string) => Promise<Sale | null>;
    /** Whether nothing shows that a batch of the sale is still to be written. */
    readonly isIdle: () => Promise<boolean>;
    /** Null if the broker cannot be asked: then only `quietMs` decides. */
    readonly progress: WorkerProgress | null;
    readonly clock: Clock;
    readonly log: Log;
  },
  { quietMs, waitMaxMs }: { readonly quietMs: number; readonly waitMaxMs: number },
  onRead: () => Promise<void>,
): Promise<void> {
  const startedMs = clock.monotonicMs();
  if (sale.state === 'closed' && clock.nowMs() - sale.closesAtMs > CLOSED_LONG_AGO_MS) return;
  let haveReceived = progress === null ? null : await receivedByWorkers(progress, log);
  /** True if the last answer of the broker says that messages are still to be received. */
  let isBehind = false;
  let isFirst = true;
  let seen = sale;
  let sinceMs = startedMs;
  for (;;) {
    const answer = (await haveReceived?.()) ?? null;
    if (isFirst && answer === true && (await isIdle())) return;
    isFirst = false;
    if (answer !== null) isBehind = !answer;
    if (answer === true) {
      haveReceived = null;
      sinceMs = clock.monotonicMs();
    }
    await clock.sleep(Math.min(READ_EVERY_MS, isBehind ? READ_EVERY_MS : quietMs, waitMaxMs)); // `quietMs` may be 0
    await onRead();
    const now = await findSale(sale.saleId);
    const nowMs = clock.monotonicMs();
    if (now !== null && (now.sold !== seen.sold || now.epoch !== seen.epoch)) {
      seen = now;
      sinceMs = nowMs;
    }
    if (nowMs - startedMs >= waitMaxMs || (!isBehind && nowMs - sinceMs >= quietMs)) return;
  }
}

/** Age of the last order after which a sale counts as idle. Far longer than a worker takes to write a batch. */
const IDLE_AFTER_MS = 10_000;

/**
 * Whether nothing shows that a batch of the sale is still to be written: its last order is old, and Redis knows of no
 * batch that is not recorded.
 * @throws OperationalError mysql, redis
 */
export async function isIdleSale(
  { saleId }: Sale,
  refs: readonly BucketRef[],
  {
    repairs,
    repository,
    clock,
  }: { readonly repairs: RepairStore; readonly repository: RepairRepository; readonly clock: Clock },
): Promise<boolean> {
  const lastMs = await repository.lastOrderMs(saleId);
  if (lastMs !== null && clock.nowMs() - lastMs < IDLE_AFTER_MS) return false;
  const bodies = await Promise.all(refs.map((ref) => repairs.pendingBodies(ref)));
  return bodies.every(({ length }) => length === 0);
}

/**
 * @returns a function that says whether the workers have received everything that the broker holds now (null while the
 *   broker gives no answer), or null if the broker cannot be asked at all
 */
async function receivedByWorkers(progress: WorkerProgress, log: Log): Promise<(() => Promise<boolean | null>) | null> {
  let hasSaid = false;
  const asked = async <T>(ask: () => Promise<T>): Promise<T | null> => {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      if (!hasSaid) log.warn({ error: error.message }, 'the broker does not report the progress of the workers');
      hasSaid = true;
      return null;
    }
  };
  const ends = await asked(() => progress.ends());
  return ends === null ? null : () => asked(() => progress.haveReceived(ends));
}
