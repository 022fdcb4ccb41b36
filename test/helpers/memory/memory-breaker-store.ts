import { OperationalError } from '../../../src/core/errors.js';
import type { BreakerStore, LiveReport, BreakerReport } from '../../../src/core/ports/admission-stores.js';
import type { Clock } from '../../../src/core/ports/clock.js';

/** Breaker reports in memory; they end with the clock. */
export class MemoryBreakerStore implements BreakerStore {
  readonly #clock: Pick<Clock, 'nowMs'>;
  readonly #reports = new Map<string, { readonly report: BreakerReport; readonly untilMs: number }>();
  /** While true every call fails as if Redis were away. */
  down = false;

  constructor(clock: Pick<Clock, 'nowMs'>) {
    this.#clock = clock;
  }

  async exchange(processId: string, report: BreakerReport, lifeMs: number): Promise<readonly LiveReport[]> {
    this.#reach();
    const nowMs = this.#clock.nowMs();
    this.#reports.set(processId, { report, untilMs: nowMs + lifeMs });
    return [...this.#reports]
      .filter(([, { untilMs }]) => untilMs > nowMs)
      .map(([id, { report: said }]) => ({ processId: id, report: said }));
  }

  async withdraw(processId: string): Promise<void> {
    this.#reach();
    this.#reports.delete(processId);
  }

  #reach(): void {
    if (this.down) throw new OperationalError('redis', 'the breaker store in memory is down', { retryable: true });
  }
}
