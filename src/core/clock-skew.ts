/** Maximum clock difference: the clock of Redis opens a sale, the clock of MySQL ends orders, ours only measures. */
export const CLOCK_SKEW_MAX_MS = 2000;
