import { OperationalError } from '../../core/errors.js';
import type { Sale } from '../../core/sale.js';
import type { WorkerProgress } from '../../core/ports/channels.js';
import type { Clock } from '../../core/ports/clock.js';
import type { Log } from '../../core/ports/log.js';
import type { SaleRepository } from '../../core/ports/sale-repository.js';

export interface QuietOptions {
  /** Quiet means: nothing was written for so long, ms. */
  readonly quietMs: number;
  /** The wait ends after so long in any case, ms. */
  readonly waitMaxMs: number;
}

export interface QuietPorts {
  readonly sales: Pick<SaleRepository, 'find'>;
  /** Null: the broker cannot be asked, so it waits until no order was written for `quietMs`. */
  readonly progress: WorkerProgress | null;
  readonly clock: Clock;
  readonly log: Log;
}

const READ_EVERY_MS = 250;
/** All batches of a sale that closed so long ago are written, or are dead letters. */
const CLOSED_LONG_AGO_MS = 24 * 3_600_000;

/**
 * Waits until the workers have written the orders of the sale, so that buyers with a 202 come first: until they have
 * received all that their queues held when the sale was locked, and have then written no order of it for `quietMs`.
 * Stillness alone proves nothing: its batches may stand behind those of other sales. It has to do where the broker never
 * says how far they are. A batch that arrives later (from a worker that is stopped, or after its retry) has to reacquire
 * its units from what is left.
 * @param onRead called before each read, to see whether the lease is still ours
 * @throws OperationalError mysql, and what `onRead` throws
 */
export async function awaitQuiet(
  sale: Sale,
  ports: QuietPorts,
  { quietMs, waitMaxMs }: QuietOptions,
  onRead: () => Promise<void>,
): Promise<void> {
  const { sales, clock } = ports;
  const startedMs = clock.monotonicMs();
  if (sale.state === 'closed' && clock.nowMs() - sale.closesAtMs > CLOSED_LONG_AGO_MS) return;
  let haveReceived = await receivedByWorkers(ports);
  /** The broker has said that something was not received, and since then nothing else. */
  let isBehind = false;
  let seen = sale;
  let sinceMs = startedMs;
  for (;;) {
    const answer = (await haveReceived?.()) ?? null;
    if (answer !== null) isBehind = !answer;
    if (answer === true) {
      haveReceived = null;
      sinceMs = clock.monotonicMs();
    }
    await clock.sleep(Math.min(READ_EVERY_MS, isBehind ? READ_EVERY_MS : quietMs, waitMaxMs)); // `quietMs` may be 0
    await onRead();
    const now = await sales.find(sale.saleId);
    const nowMs = clock.monotonicMs();
    if (now !== null && (now.sold !== seen.sold || now.epoch !== seen.epoch)) {
      seen = now;
      sinceMs = nowMs;
    }
    if (nowMs - startedMs >= waitMaxMs || (!isBehind && nowMs - sinceMs >= quietMs)) return;
  }
}

/**
 * @returns whether the workers have received what the broker holds now, or null while it gives no answer; null in place
 *   of that: it cannot be asked
 */
async function receivedByWorkers({ progress, log }: QuietPorts): Promise<(() => Promise<boolean | null>) | null> {
  if (progress === null) return null;
  let hasSaid = false;
  const asked = async <T>(ask: () => Promise<T>): Promise<T | null> => {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      if (!hasSaid) log.warn({ error: error.message }, 'the broker does not say how far the workers are');
      hasSaid = true;
      return null;
    }
  };
  const ends = await asked(() => progress.ends());
  return ends === null ? null : () => asked(() => progress.haveReceived(ends));
}
