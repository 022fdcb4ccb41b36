/**
 * How much of an answer is given.
 * - L0  the full answer
 * - L1  the answer of a while ago, marked as stale
 * - L2  of that one the essential fields
 * - L3  an answer of the right shape that says nothing
 * - L4  refused at once
 */
export const LEVELS = ['L0', 'L1', 'L2', 'L3', 'L4'] as const;
export type Level = (typeof LEVELS)[number];

const RANKS: Readonly<Record<Level, number>> = { L0: 0, L1: 1, L2: 2, L3: 3, L4: 4 };

/** Whether less is given at `one` than at `other`. */
export const isBelow = (one: Level, other: Level): boolean => RANKS[one] > RANKS[other];
