import type { Dependency } from '../errors.js';
import type { BreakerState } from './admission-stores.js';

/** What the breakers tell the metrics. */
export interface BreakerMetrics {
  /** The breaker of this process has moved. */
  breakerMoved(dependency: Dependency, state: BreakerState): void;
  /** A request was refused, or would have been. */
  breakerRefused(dependency: Dependency, dryRun: boolean): void;
  /** Whether enough processes have theirs open; told at each look at the board. */
  breakerQuorum(dependency: Dependency, open: boolean): void;
}
