import type { BucketRef } from '../../core/bucket.js';
import { OperationalError } from '../../core/errors.js';
import type { Sale } from '../../core/sale.js';
import type { WorkerProgress } from '../../core/ports/channels.js';
import type { Clock } from '../../core/ports/clock.js';
import type { Log } from '../../core/ports/log.js';
import type { RepairRepository, RepairStore } from '../../core/ports/repair-stores.js';

const READ_EVERY_MS = 250;
/** At this age, all batches of a closed sale are written or dead letters. */
const CLOSED_LONG_AGO_MS = 24 * 3_600_000;

/**
 * Waits until the workers have written the orders of the sale, so buyers with a 202 come first. The workers must have
 * received all messages that were queued when the sale was locked, and then written no order of the sale for `quietMs`.
 * Quiet alone proves nothing, because batches of the sale may be queued behind other sales; it decides only if the
 * broker never reports the progress of the workers. A batch that arrives later (from a stopped worker, or after its
 * retry) reacquires its units from the units left. An idle sale without unreceived messages does not wait. A log line
 * says why a sale waits.
 * @param quietMs time without a written order after which the sale counts as quiet
 * @param waitMaxMs maximum total wait
 * @param onRead called before each read, to check that the lease is still ours
 * @throws OperationalError mysql, and any error of `onRead`
 */
export async function awaitQuiet(
  sale: Sale,
  {
    findSale,
    whyBusy,
    progress,
    clock,
    log,
  }: {
    readonly findSale: (saleId: string) => Promise<Sale | null>;
    /** Returns why a batch of the sale may still have to be written. Null if nothing suggests so. */
    readonly whyBusy: () => Promise<string | null>;
    /** Null if the broker cannot be asked; then `quietMs` alone decides. */
    readonly progress: WorkerProgress | null;
    readonly clock: Clock;
    readonly log: Log;
  },
  { quietMs, waitMaxMs }: { readonly quietMs: number; readonly waitMaxMs: number },
  onRead: () => Promise<void>,
): Promise<void> {
  const startedMs = clock.monotonicMs();
  if (sale.state === 'closed' && clock.nowMs() - sale.closesAtMs > CLOSED_LONG_AGO_MS) return;
  let fault = 'NAMESRV_ADDR is not set';
  const onFault = ({ message }: OperationalError): void => void (fault = message);
  const queues = progress === null ? null : await queuesOfWorkers(progress, onFault);
  let haveReceived = queues?.haveReceived ?? null;
  /** True if, according to the broker's last answer, there are messages to be received. */
  let isBehind = false;
  let isFirst = true;
  let seen = sale;
  let sinceMs = startedMs;
  for (;;) {
    const answer = (await haveReceived?.()) ?? null;
    if (isFirst) {
      const mayHold = answer === false && (await queues?.mayHold(sale.saleId)) !== false;
      const why =
        answer === null ? fault : mayHold ? 'the workers have not received all of its batches' : await whyBusy();
      if (why === null) return;
      log.info({ saleId: sale.saleId, why }, 'a sale waits for the workers before its repair');
    }
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

/** A sale whose last order has this age is idle. Far longer than a worker takes to write a batch. */
const IDLE_AFTER_MS = 10_000;

/** Returns why a batch may still have to be written. Null if the sale is idle. @throws OperationalError mysql, redis */
export async function whyBusySale(
  { saleId }: Sale,
  refs: readonly BucketRef[],
  {
    repairs,
    repository,
    clock,
  }: { readonly repairs: RepairStore; readonly repository: RepairRepository; readonly clock: Clock },
): Promise<string | null> {
  const lastMs = await repository.lastOrderMs(saleId);
  if (lastMs !== null && clock.nowMs() - lastMs < IDLE_AFTER_MS) return 'its last order is too recent';
  const bodies = await Promise.all(refs.map((ref) => repairs.pendingBodies(ref)));
  return bodies.some(({ length }) => length > 0) ? 'Redis holds batches that are not recorded' : null;
}

/** The queues when a sale was locked. An answer is null if the broker does not answer. */
interface Queues {
  /** Whether the workers have received all of those messages. */
  readonly haveReceived: () => Promise<boolean | null>;
  /** Whether an unreceived message may belong to this sale. */
  readonly mayHold: (saleId: string) => Promise<boolean | null>;
}

/** @returns null if the broker does not answer */
async function queuesOfWorkers(
  progress: WorkerProgress,
  onFault: (error: OperationalError) => void,
): Promise<Queues | null> {
  const asked = async <T>(ask: () => Promise<T>): Promise<T | null> => {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      onFault(error);
      return null;
    }
  };
  const ends = await asked(() => progress.ends());
  if (ends === null) return null;
  return {
    haveReceived: () => asked(() => progress.haveReceived(ends)),
    mayHold: (saleId) => asked(async () => (await progress.unreceivedSales(ends))?.has(saleId) ?? true),
  };
}
