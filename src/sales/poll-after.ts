import type { SaleView } from './get-sale.js';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
/** How long before the opening the last read takes place. The next read follows the opening. */
const LAST_READ_MS = 40 * SECOND_MS;
const AFTER_OPENING_MS = 5 * SECOND_MS;
export const OPEN_POLL_MS = 10 * SECOND_MS;

/**
 * How long a page should wait before it reads the sale again, ms. The pause avoids the moment of the opening, even if a
 * page makes it half as long again.
 */
export function pollAfterMs({ state, stock, opensAtMs, nowMs }: SaleView): number {
  const untilOpenMs = opensAtMs - nowMs;
  switch (state) {
    case 'announced':
    case 'not_open':
      if (untilOpenMs <= 0) return 5 * SECOND_MS; // the shop is late in opening it
      if (untilOpenMs <= LAST_READ_MS) return untilOpenMs + AFTER_OPENING_MS;
      return Math.min(15 * MINUTE_MS, Math.max(10 * SECOND_MS, Math.floor(untilOpenMs / 4)));
    case 'loading':
      return 5 * SECOND_MS;
    case 'paused':
      return 10 * SECOND_MS;
    case 'open': // returned units are soon sold again
      return stock === 'none' ? 20 * SECOND_MS : OPEN_POLL_MS;
    case 'closed':
      return 5 * MINUTE_MS;
  }
}
