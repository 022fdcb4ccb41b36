import type { Dependency } from '../errors.js';

export const BREAKER_STATES = ['closed', 'open', 'half_open'] as const;
export type BreakerState = (typeof BREAKER_STATES)[number];

/** What one process says of each dependency, from its own experience only. */
export type Vote = Readonly<Record<Dependency, BreakerState>>;

export interface LiveVote {
  readonly processId: string;
  readonly vote: Vote;
}

/** Where every process says how its breakers stand, and sees what the others say. */
export interface BreakerStore {
  /**
   * Writes the vote of this process, in place of its last one, and reads those of all live processes, its own too.
   * A vote that cannot be read (another release wrote it) counts as a live process without trouble.
   * @param lifeMs after so long without another exchange, on the clock of the board, the process is not live any more
   * @returns at most 1000 votes, in no order
   * @throws OperationalError redis
   * Source: lua/vote-2.lua
   */
  exchange(processId: string, vote: Vote, lifeMs: number): Promise<readonly LiveVote[]>;

  /**
   * Takes the vote back at once: the process ends. Nothing happens when there is none.
   * @throws OperationalError redis
   */
  withdraw(processId: string): Promise<void>;
}
