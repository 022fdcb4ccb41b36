import {
  HONEST_P99_ROW,
  HONEST_SHARE_ROW,
  HONEST_UNITS_ROW,
  SLOW_LIMIT_ROW,
  SLOW_LONGEST_ROW,
} from '../attack/attack-figures.js';
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
const SHARE_OF_BARE_HTTP_BEHIND_ADMISSION = 0.5;
/** Of honest buyers under attack: of their rate without it, and ms. */
const HONEST_SHARE = 0.8;
const HONEST_P99_MS = 100;
/** CPU per purchase, with every layer off, of what it was before. */
const PAIRED_RATIO = 1.02;
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
  const admissionIsOn = soldOut?.extra.admission === 'on';
  if (typeof share === 'number') {
    const what = `sold-out${admissionIsOn ? ' with every layer on' : ''}, share of bare node:http`;
    goals.push(atLeast(what, share, admissionIsOn ? SHARE_OF_BARE_HTTP_BEHIND_ADMISSION : SHARE_OF_BARE_HTTP));
  }
  return [...goals, ...attackGoals(find('attack')?.extra), ...pairedGoals(results)];
}

function attackGoals(extra: LoadFigures['extra'] = {}): Goal[] {
  const [share, p99] = [extra[HONEST_SHARE_ROW], extra[HONEST_P99_ROW]];
  const [longest, mayLast] = [extra[SLOW_LONGEST_ROW], extra[SLOW_LIMIT_ROW]];
  const units = extra[HONEST_UNITS_ROW];
  if (typeof share !== 'number' || typeof units !== 'number' || typeof p99 !== 'number') return [];
  if (typeof longest !== 'number' || typeof mayLast !== 'number') return [];
  return [
    // On a machine that is busy a load may take longer without attack than with it: the worse of the two counts.
    atLeast('attack, honest buyers of their rate and units without it', Math.min(share, units), HONEST_SHARE),
    { goal: `attack, p99 of honest winners in ms below ${HONEST_P99_MS}`, measured: p99, met: p99 < HONEST_P99_MS },
    { goal: `attack, ms until slow headers are closed ≤ ${mayLast}`, measured: longest, met: longest <= mayLast },
  ];
}

function pairedGoals(results: readonly ScenarioResult[]): Goal[] {
  return results.flatMap((result) => {
    if (result.kind !== 'paired') return [];
    const measured = result.comparison.ratio.median;
    const goal = `paired, CPU per purchase of that of ${result.comparison.against} ≤ ${PAIRED_RATIO}`;
    return [{ goal, measured, met: measured <= PAIRED_RATIO }];
  });
}

const atLeast = (what: string, measured: number, limit: number): Goal => ({
  goal: `${what} ≥ ${limit.toLocaleString('en')}`,
  measured,
  met: measured >= limit,
});
