import type { Sale } from '../../core/sale.js';
import type { Clock } from '../../core/ports/clock.js';
import type { SaleRepository } from '../../core/ports/sale-repository.js';

export interface QuietOptions {
  /** Quiet means: nothing was written for so long, ms. */
  readonly quietMs: number;
  /** The wait ends after so long in any case, ms. */
  readonly waitMaxMs: number;
}

export interface QuietPorts {
  readonly sales: Pick<SaleRepository, 'find'>;
  readonly clock: Clock;
}

const READ_EVERY_MS = 250;
/** All batches of a sale that closed so long ago are written, or are dead letters. */
const CLOSED_LONG_AGO_MS = 24 * 3_600_000;

/**
 * Waits until the workers have written no order of the sale for `quietMs`, so that buyers with a 202 come first.
 * Messages that the broker still holds cannot be counted; a batch that arrives later has to reacquire its units from
 * what is left.
 * @param onRead called before each read, to keep a lease
 * @throws OperationalError mysql, and what `onRead` throws
 */
export async function awaitQuiet(
  sale: Sale,
  { sales, clock }: QuietPorts,
  { quietMs, waitMaxMs }: QuietOptions,
  onRead: () => Promise<void>,
): Promise<void> {
  const startedMs = clock.nowMs();
  if (sale.state === 'closed' && startedMs - sale.closesAtMs > CLOSED_LONG_AGO_MS) return;
  let seen = sale;
  let sinceMs = startedMs;
  for (;;) {
    await clock.sleep(Math.min(READ_EVERY_MS, quietMs, waitMaxMs));
    await onRead();
    const now = await sales.find(sale.saleId);
    const nowMs = clock.nowMs();
    if (now !== null && (now.sold !== seen.sold || now.epoch !== seen.epoch)) {
      seen = now;
      sinceMs = nowMs;
    }
    if (nowMs - sinceMs >= quietMs || nowMs - startedMs >= waitMaxMs) return;
  }
}
