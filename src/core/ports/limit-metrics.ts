import type { LimitName } from '../limits.js';

/** What the limits of the entry count. No user and no address in a label. */
export interface LimitMetrics {
  /** Visits of one call, by who counted them: Redis for all processes, or this process while Redis is away. */
  counted(by: 'redis' | 'local', callers: number): void;
  /**
   * A visit that was refused (`on`), or would have been (`dry_run`).
   * @param limit the limit that made it wait longest
   */
  refused(endpoint: string, limit: LimitName | 'leaky', mode: 'on' | 'dry_run'): void;
  /** A user or an address came that was not counted, because too many others were. */
  uncounted(times: number): void;
}

/** For tests and tools that count nothing. */
export const noLimitMetrics: LimitMetrics = {
  counted: () => undefined,
  refused: () => undefined,
  uncounted: () => undefined,
};
