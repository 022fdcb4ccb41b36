import type { Dependency } from '../../core/errors.js';
import type { LiveVote } from '../../core/ports/admission-stores.js';

/** One process that is in trouble alone opens it for nobody else. */
const VOTES_MIN = 2;
/** 0.07 × 100 is a little above 7 in floating point. */
const ROUNDING = 1e-9;

/** So many of the live processes open it for all. */
export function votesNeeded(live: number, quorumShare: number): number {
  return Math.max(Math.min(VOTES_MIN, live), Math.ceil(quorumShare * live - ROUNDING));
}

/** A process in a trial counts as live, not as one in trouble: it may wait long for a request to try with. */
export function isOpenForAll(votes: readonly LiveVote[], dependency: Dependency, quorumShare: number): boolean {
  const open = votes.filter(({ vote }) => vote[dependency] === 'open').length;
  return open > 0 && open >= votesNeeded(votes.length, quorumShare);
}

/** Whether a process that was in trouble at the last look has found the dependency well since. */
export function hasRecovered(before: readonly LiveVote[], now: readonly LiveVote[], dependency: Dependency): boolean {
  const wasInTrouble = new Set(before.filter(({ vote }) => vote[dependency] !== 'closed').map((one) => one.processId));
  return now.some(({ processId, vote }) => vote[dependency] === 'closed' && wasInTrouble.has(processId));
}
