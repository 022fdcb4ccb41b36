import type { Dependency } from '../core/errors.js';

/** Each of them has a breaker. */
export const DEPENDENCIES = ['redis', 'rocketmq', 'mysql'] as const satisfies readonly Dependency[];
