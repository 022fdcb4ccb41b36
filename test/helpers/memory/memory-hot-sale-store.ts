import { OperationalError } from '../../../src/core/errors.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { HotSale, HotSaleStore } from '../../../src/core/ports/hot-sales.js';

/** Reports of hot sales in memory that expire with the clock. */
export class MemoryHotSaleStore implements HotSaleStore {
  readonly #clock: Clock;
  readonly #reports = new Map<string, { readonly sales: readonly HotSale[]; readonly untilMs: number }>();
  /** While true, every call fails as if Redis were down. */
  down = false;
  /** Number of reports written. */
  calls = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async report(processId: string, sales: readonly HotSale[], lifeMs: number): Promise<void> {
    this.#failIfDown();
    this.calls++;
    this.#reports.set(processId, { sales, untilMs: this.#clock.nowMs() + lifeMs });
  }

  async withdraw(processId: string): Promise<void> {
    this.#failIfDown();
    this.#reports.delete(processId);
  }

  async reports(): Promise<readonly (readonly HotSale[])[]> {
    this.#failIfDown();
    const nowMs = this.#clock.nowMs();
    return [...this.#reports.values()].filter(({ untilMs }) => untilMs > nowMs).map(({ sales }) => sales);
  }

  #failIfDown(): void {
    if (this.down) throw new OperationalError('redis', 'memory hot sale store is down', { retryable: true });
  }
}
