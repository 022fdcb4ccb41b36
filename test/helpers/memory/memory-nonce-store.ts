import { OperationalError } from '../../../src/core/errors.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { NonceStore } from '../../../src/core/ports/admission-stores.js';

/** Nonces in memory; they end with the clock. */
export class MemoryNonceStore implements NonceStore {
  readonly #clock: Clock;
  readonly #untilMs = new Map<string, number>();
  /** While true every call fails as if Redis were away. */
  down = false;
  asked = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async take(keyId: string, nonce: string, lifeMs: number): Promise<'fresh' | 'used'> {
    this.asked++;
    if (this.down) throw new OperationalError('redis', 'memory nonce store is down', { retryable: true });
    const name = `${keyId}:${nonce}`;
    if ((this.#untilMs.get(name) ?? 0) > this.#clock.nowMs()) return 'used';
    this.#untilMs.set(name, this.#clock.nowMs() + lifeMs);
    return 'fresh';
  }
}
