import { z } from 'zod';
import { covers, mode, saleScope } from '../layer.js';
import type { AdmissionMetrics } from '../metrics.js';

/** What one account may do with the stock of a sale without paying. */
export const orderRules = z.strictObject({
  mode: mode.default('off'),
  sales: saleScope.default('all'),
  /** Orders of one sale that one buyer may cancel. */
  cancelsMax: z.int().min(0).max(1000).default(10),
});
export type OrderRules = z.infer<typeof orderRules>;

/** How many orders of a sale a buyer may cancel, under the current rules. */
export class CancelLimit {
  readonly #rules: () => OrderRules;
  readonly #metrics: Pick<AdmissionMetrics, 'refused'>;

  constructor(rules: () => OrderRules, metrics: Pick<AdmissionMetrics, 'refused'>) {
    this.#rules = rules;
    this.#metrics = metrics;
  }

  /** Null: any number. */
  maxOf(saleId: string): number | null {
    const { mode, sales, cancelsMax } = this.#rules();
    return mode === 'off' || !covers(sales, saleId) ? null : cancelsMax;
  }

  /** Counts a buyer who has reached it. @returns whether they are refused */
  refuses(): boolean {
    const { mode } = this.#rules();
    if (mode === 'off') return false;
    this.#metrics.refused('orders', 'cancel_limit_reached', mode);
    return mode === 'on';
  }
}
