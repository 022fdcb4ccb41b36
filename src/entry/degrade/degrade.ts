import type { Dependency } from '../../domain/errors.js';
import type { DegradeMeters } from '../../ports/degrade-meters.js';
import type { Endpoint } from '../endpoint.js';
import type { DegradeRules } from './degrade-rules.js';
import type { Level } from './level.js';
import { rulingFor, type Ruling } from './ruling.js';

export interface DegradeParts {
  /** Read at each call. */
  readonly rules: () => DegradeRules;
  /** Whether the breaker of this dependency wants it to be left alone. */
  readonly refuses: (dependency: Dependency) => boolean;
  readonly meters: DegradeMeters;
}

/** Decides for each request how much of an answer it gets. */
export class Degrade {
  readonly #parts: DegradeParts;

  constructor(parts: DegradeParts) {
    this.#parts = parts;
  }

  /**
   * Asked once for each request.
   * @param who the user, or the client address of somebody who is not signed in
   * @returns null: the layer is off, or only counts; everything is as if it were not there
   */
  rulingOf(endpoint: Endpoint, who: string): Ruling | null {
    const { rules, refuses, meters } = this.#parts;
    const now = rules();
    if (now.mode === 'off') return null;
    const ruling = rulingFor(now, endpoint, who, refuses);
    const dryRun = now.mode === 'dry_run';
    if (ruling.level !== 'L0') meters.degraded(endpoint, ruling.level, dryRun);
    return dryRun ? null : ruling;
  }

  /** The same, for who needs no more than the level. */
  levelOf(endpoint: Endpoint, who: string): Level {
    return this.rulingOf(endpoint, who)?.level ?? 'L0';
  }
}

/**
 * Whether a purchase, a payment or a cancellation is refused. What changes something is done whole or not at all, so
 * between L0 and L4 it is done.
 */
export const refusesChange = (ruling: Ruling | null): boolean => ruling?.level === 'L4';
