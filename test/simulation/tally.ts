import type { Outcome } from './run.js';

/** A run that broke a promise. */
export interface Broken {
  readonly seed: number;
  readonly code: string;
  readonly what: string;
}

/** The totals of many runs, as JSON that processes can exchange. */
export interface Tally {
  runs: number;
  /** Counts over all runs. */
  events: number;
  /** Virtual time of all runs together. */
  virtualMs: number;
  /** Number of runs that broke a promise. `broken` has the first of them. */
  brokenRuns: number;
  broken: Broken[];
  /** How often each fault happened. */
  faults: Record<string, number>;
  /** How often a fault other than a delay hit each call. */
  hits: Record<string, number>;
  /** Events that the programs counted: `kind: word`. */
  counts: Record<string, number>;
}

const BROKEN_MAX = 20;

export const emptyTally = (): Tally => ({
  runs: 0,
  events: 0,
  virtualMs: 0,
  brokenRuns: 0,
  broken: [],
  faults: {},
  hits: {},
  counts: {},
});

export function addRun(tally: Tally, { seed, violation, world }: Outcome): void {
  tally.runs++;
  tally.events += world.scheduler.happened;
  tally.virtualMs += world.scheduler.passedMs;
  addAll(tally.faults, world.faults.observed);
  addAll(tally.hits, world.faults.hit);
  addAll(tally.counts, world.counts);
  if (violation === null) return;
  tally.brokenRuns++;
  if (tally.broken.length < BROKEN_MAX) tally.broken.push({ seed, ...violation });
}

export function merge(into: Tally, other: Tally): void {
  into.runs += other.runs;
  into.events += other.events;
  into.virtualMs += other.virtualMs;
  into.brokenRuns += other.brokenRuns;
  into.broken = [...into.broken, ...other.broken].sort((a, b) => a.seed - b.seed).slice(0, BROKEN_MAX);
  addAll(into.faults, Object.entries(other.faults));
  addAll(into.hits, Object.entries(other.hits));
  addAll(into.counts, Object.entries(other.counts));
}

function addAll(into: Record<string, number>, more: Iterable<readonly [string, number]>): void {
  for (const [name, count] of more) into[name] = (into[name] ?? 0) + count;
}

/** Returns names in alphabetical order with their counts, for a person. */
export function listed(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}
