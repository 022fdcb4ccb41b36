import type { LoadFigures, ScenarioResult } from '../results.js';

/** Something the project promised of this machine class, as far as the run can tell. */
export interface Goal {
  readonly goal: string;
  readonly measured: number;
  readonly met: boolean;
}

const LANDED_PER_SECOND = 10_000;
const TIMES_NO_GROUP_COMMIT = 7;
const SHARE_OF_BARE_HTTP = 0.7;
/** Of the heap, last third to first third of a minute of `win`. */
const HEAP_GROWTH = 1.2;

/** The goals that the scenarios of this run speak about. They are shown, and fail nothing: machines differ. */
export function judgeGoals(results: readonly ScenarioResult[]): Goal[] {
  const find = (name: string): LoadFigures | undefined =>
    results.find((result): result is LoadFigures => result.kind === 'load' && result.scenario === name);
  const [win, single, soldOut] = [find('win'), find('no-group-commit'), find('sold-out')];
  const goals: Goal[] = [];
  if (win) goals.push(atLeast('win, landed/s', win.landedPerSecond, LANDED_PER_SECOND));
  if (win && single) {
    const times = win.landedPerSecond / Math.max(1, single.landedPerSecond);
    goals.push(atLeast('win, times no-group-commit', times, TIMES_NO_GROUP_COMMIT));
    const [measured, limit] = [win.latency.p99, single.latency.p99];
    goals.push({ goal: `win, p99 in ms below ${limit.toFixed(1)}`, measured, met: measured < limit });
  }
  const heap = find('memory')?.extra;
  const [first, last] = [heap?.['heap floor first third, MiB'], heap?.['heap floor last third, MiB']];
  if (typeof first === 'number' && typeof last === 'number') {
    const measured = last / first;
    goals.push({ goal: `memory, growth of the heap ≤ ${HEAP_GROWTH}`, measured, met: measured <= HEAP_GROWTH });
  }
  const share = soldOut?.extra['share of bare node:http'];
  if (typeof share === 'number') goals.push(atLeast('sold-out, share of bare node:http', share, SHARE_OF_BARE_HTTP));
  return goals;
}

const atLeast = (what: string, measured: number, limit: number): Goal => ({
  goal: `${what} ≥ ${limit.toLocaleString('en')}`,
  measured,
  met: measured >= limit,
});
