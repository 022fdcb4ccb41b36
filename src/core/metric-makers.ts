/**
 * Upper bounds of a histogram of durations, in seconds: a step of a purchase should take milliseconds and must not take
 * seconds.
 */
export const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
