import type { Dependency } from '../../core/errors.js';
import type { DegradeMetrics } from '../../core/ports/degrade-metrics.js';
import type { Endpoint } from '../endpoint.js';
import type { Mode } from '../mode.js';
import type { DegradeRules } from './degrade-rules.js';
import type { Level } from './level.js';
import { rulingFor, type Ruling } from './ruling.js';

export interface DegradeParts {
  /** Read at each call. */
  readonly rules: () => DegradeRules;
  /** Whether the breaker of this dependency wants it to be left alone. */
  readonly refuses: (dependency: Dependency) => boolean;
  readonly metrics: DegradeMetrics;
}

/** Decides for each request how much of an answer it gets. */
export class Degrade {
  readonly #parts: DegradeParts;

  constructor(parts: DegradeParts) {
    this.#parts = parts;
  }

  get mode(): Mode {
    return this.#parts.rules().mode;
  }

  /** False: nobody need ask. */
  get isOn(): boolean {
    return this.mode !== 'off';
  }

  /**
   * Asked once for each request.
   * @param who the user, or the client address of somebody who is not signed in
   * @returns null: the layer is off, or only counts; everything is as if it were not there
   */
  rulingOf(endpoint: Endpoint, who: string): Ruling | null {
    const now = this.#parts.rules();
    if (now.mode === 'off') return null;
    const ruling = this.#rule(now, endpoint, who);
    return now.mode === 'on' ? ruling : null;
  }

  /** The same, for who needs no more than the level, and knows himself what a dry run is. L0 while the layer is off. */
  levelOf(endpoint: Endpoint, who: string): Level {
    const now = this.#parts.rules();
    return now.mode === 'off' ? 'L0' : this.#rule(now, endpoint, who).level;
  }

  #rule(now: DegradeRules, endpoint: Endpoint, who: string): Ruling {
    const { refuses, metrics } = this.#parts;
    const ruling = rulingFor(now, endpoint, who, refuses);
    if (ruling.level !== 'L0') metrics.degraded(endpoint, ruling.level, now.mode === 'dry_run');
    return ruling;
  }
}

/**
 * Whether a purchase, a payment or a cancellation is refused. What changes something is done whole or not at all, so
 * between L0 and L4 it is done.
 */
export const refusesChange = (ruling: Ruling | null): boolean => ruling?.level === 'L4';
