import { OperationalError } from '../../../src/core/errors.js';
import type { BreakerStore, LiveVote, Vote } from '../../../src/core/ports/admission-stores.js';
import type { Clock } from '../../../src/core/ports/clock.js';

/** The board in memory: votes end with the clock. */
export class MemoryBreakerStore implements BreakerStore {
  readonly #clock: Pick<Clock, 'nowMs'>;
  readonly #votes = new Map<string, { readonly vote: Vote; readonly untilMs: number }>();
  /** While true every call fails as if Redis were away. */
  down = false;

  constructor(clock: Pick<Clock, 'nowMs'>) {
    this.#clock = clock;
  }

  async exchange(processId: string, vote: Vote, lifeMs: number): Promise<readonly LiveVote[]> {
    this.#reach();
    const nowMs = this.#clock.nowMs();
    this.#votes.set(processId, { vote, untilMs: nowMs + lifeMs });
    return [...this.#votes]
      .filter(([, { untilMs }]) => untilMs > nowMs)
      .map(([id, { vote: said }]) => ({ processId: id, vote: said }));
  }

  async withdraw(processId: string): Promise<void> {
    this.#reach();
    this.#votes.delete(processId);
  }

  #reach(): void {
    if (this.down) throw new OperationalError('redis', 'the memory board is down', { retryable: true });
  }
}
