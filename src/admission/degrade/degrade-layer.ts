import type { Layer, Refused } from '../layer.js';
import type { Mode } from '../mode.js';
import type { Caller } from '../caller.js';
import type { Degrade } from './degrade.js';

/** It passes by itself, so the word says when to come again. */
const DEGRADED: Refused = { word: 'degraded', retryAfterMs: null };

/**
 * Refuses purchases, before anything of them has begun. What reads is not refused here, since it has poorer answers
 * (`DegradedReads`); who pays or cancels is asked where that is told from a read.
 */
export class DegradeLayer implements Layer {
  readonly name = 'degrade';
  readonly #degrade: Pick<Degrade, 'mode' | 'levelOf'>;

  constructor(degrade: Pick<Degrade, 'mode' | 'levelOf'>) {
    this.#degrade = degrade;
  }

  get mode(): Mode {
    return this.#degrade.mode;
  }

  /** Who it is decides whether a switch is for him. */
  anonymous(): null {
    return null;
  }

  buyer({ endpoint }: Caller, userId: string): Refused | null {
    return endpoint === 'purchase' && this.#degrade.levelOf(endpoint, userId) === 'L4' ? DEGRADED : null;
  }
}
