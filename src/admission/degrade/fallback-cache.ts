import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/ports/clock.js';
import type { DegradeRules } from './degrade-rules.js';

export interface Kept<T> {
  readonly value: T;
  readonly ageMs: number;
}

export interface FallbackCacheParts {
  /** Read at each call. */
  readonly rules: () => DegradeRules['cache'];
  /** One that goes on evenly. */
  readonly clock: Pick<Clock, 'nowMs'>;
  /** Beyond it the least used answer goes. */
  readonly entriesMax: number;
}

/**
 * The last good answers of one source, for the time in which it gives none. The longer the source is out, the less its old
 * answers are worth: each failure in a row makes their life shorter, and the first success gives it back.
 */
export class FallbackCache<T extends object> {
  readonly #parts: FallbackCacheParts;
  readonly #answers: LRUCache<string, { readonly value: T; readonly atMs: number }>;
  #failures = 0;

  constructor(parts: FallbackCacheParts) {
    this.#parts = parts;
    this.#answers = new LRUCache({ max: parts.entriesMax });
  }

  /** How old an answer may be now. */
  get ttlMs(): number {
    const { ttlMs, factor, ttlMinMs } = this.#parts.rules();
    return Math.max(ttlMinMs, ttlMs * factor ** this.#failures);
  }

  /** The source has given this. */
  put(key: string, value: T): void {
    this.worked();
    this.#answers.set(key, { value, atMs: this.#parts.clock.nowMs() });
  }

  /** The source has answered, and there is nothing to keep. */
  worked(): void {
    this.#failures = 0;
  }

  /** The source has failed. */
  failed(): void {
    this.#failures++;
  }

  get(key: string): Kept<T> | null {
    const answer = this.#answers.get(key);
    if (answer === undefined) return null;
    const ageMs = Math.max(0, this.#parts.clock.nowMs() - answer.atMs);
    return ageMs < this.ttlMs ? { value: answer.value, ageMs } : null;
  }
}
