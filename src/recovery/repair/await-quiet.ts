import type { Sale } from '../../core/sale.js';
import type { Clock } from '../../core/ports/clock.js';
import type { SaleRepository } from '../../core/ports/sale-repository.js';

export interface QuietOptions {
  /** So long must nothing have been written, ms. */
  readonly quietMs: number;
  /** So long is waited at most, ms. */
  readonly waitMaxMs: number;
}

export interface QuietPorts {
  readonly sales: Pick<SaleRepository, 'find'>;
  readonly clock: Clock;
}

const LOOK_EVERY_MS = 250;
/** Whatever the workers had of a sale that closed so long ago is written, or is a dead letter. */
const CLOSED_LONG_AGO_MS = 24 * 3_600_000;

/**
 * Waits for the workers, so that those come first who have a 202: until the sale has sold nothing for `quietMs`. What
 * the broker still holds cannot be asked for, so a batch that comes later is late, and claims what is left.
 * @param onLook called between two looks, to keep a lease
 * @throws OperationalError mysql, and whatever `onLook` throws
 */
export async function awaitQuiet(
  sale: Sale,
  { sales, clock }: QuietPorts,
  { quietMs, waitMaxMs }: QuietOptions,
  onLook: () => Promise<void>,
): Promise<void> {
  const startedMs = clock.nowMs();
  if (sale.state === 'closed' && startedMs - sale.closesAtMs > CLOSED_LONG_AGO_MS) return;
  let seen = sale;
  let sinceMs = startedMs;
  for (;;) {
    await clock.sleep(Math.min(LOOK_EVERY_MS, quietMs, waitMaxMs));
    await onLook();
    const now = await sales.find(sale.saleId);
    const nowMs = clock.nowMs();
    if (now !== null && (now.sold !== seen.sold || now.epoch !== seen.epoch)) {
      seen = now;
      sinceMs = nowMs;
    }
    if (nowMs - sinceMs >= quietMs || nowMs - startedMs >= waitMaxMs) return;
  }
}
