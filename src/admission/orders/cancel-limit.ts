import { modeFor } from '../layer.js';
import type { AdmissionMetrics } from '../metrics.js';
import type { OrderRules } from './order-rules.js';

/** Limits how many orders of a sale a buyer may cancel, under the current rules. */
export class CancelLimit {
  readonly #rules: () => OrderRules;
  readonly #metrics: AdmissionMetrics;

  constructor(rules: () => OrderRules, metrics: AdmissionMetrics) {
    this.#rules = rules;
    this.#metrics = metrics;
  }

  /** Returns the limit. Null if there is none. */
  maxOf(saleId: string): number | null {
    const rules = this.#rules();
    return modeFor(rules, saleId) === 'off' ? null : rules.cancelsMax;
  }

  /** Counts a buyer who has reached the limit. @returns whether the buyer is refused */
  refuses(): boolean {
    const { mode } = this.#rules();
    if (mode === 'off') return false;
    this.#metrics.refused('orders', 'cancel_limit_reached', mode);
    return mode === 'on';
  }
}
