import { renderTable } from '../test/helpers/render-table.js';
import {
  HONEST_P99_ROW,
  HONEST_SHARE_ROW,
  HONEST_UNITS_ROW,
  SLOW_LIMIT_ROW,
  SLOW_LONGEST_ROW,
} from './attack/attack-figures.js';
import { LEFT_SHARE_ROW, ROWS_EACH_MAX, ROWS_EACH_ROW } from './attack/cancel-loop.js';
import { HONEST_STOCK_ROW } from './attack/token-crowd.js';
import type { LayerCost } from './layers/cost.js';
import type { CpuUser } from './measure.js';
import { sharesOf, type Case } from './neighbours/phases.js';
import { problemsIn, type LoadFigures, type ScenarioResult } from './results.js';
import type { ConsolesFigures } from './scenarios/consoles.js';
import { ratioOf, type Comparison, type Slice } from './scenarios/paired.js';
import type { RebuildFigures } from './scenarios/rebuild.js';
import type { Machine } from './session/machine.js';

/** One run: what --json prints, and what the table is made of. */
export interface Report {
  /** ISO 8601. */
  readonly startedAt: string;
  /** Of the checkout; null outside of one. */
  readonly commit: string | null;
  readonly loadGenerator: string;
  readonly warmUpSeconds: number;
  readonly machine: Machine;
  /** Programs that wanted a core in the minute before the run, on average: above 0.1 or so the machine was not ours. */
  readonly loadAverageBefore: number;
  readonly results: readonly ScenarioResult[];
  readonly goals: readonly Goal[];
}

type Cell = (figures: LoadFigures) => string;

const CPU_USERS: readonly CpuUser[] = ['api', 'worker', 'keeper', 'redis', 'mariadb', 'broker', 'load generator'];

/** Rows that every scenario with load has. */
const ROWS: readonly (readonly [name: string, cell: Cell])[] = [
  ['requests', ({ requests }) => formatNumber(requests)],
  ['answers/s', (figures) => formatNumber(figures.answersPerSecond)],
  ['accepted/s', (figures) => formatNumber(figures.acceptedPerSecond)],
  ['landed/s', (figures) => formatNumber(figures.landedPerSecond)],
  ['p50, ms', ({ latency }) => formatNumber(latency.p50)],
  ['p99, ms', ({ latency }) => formatNumber(latency.p99)],
  ['p99.9, ms', ({ latency }) => formatNumber(latency.p999)],
  ['max, ms', ({ latency }) => formatNumber(latency.max)],
  ['batch size, mean', ({ batchSizeMean }) => formatNumber(batchSizeMean)],
  ...CPU_USERS.map((user): [string, Cell] => [
    `CPU µs each: ${user}`,
    ({ cpuMicros }) => formatNumber(cpuMicros[user]),
  ]),
  ['CPU µs each: other programs', ({ cpuMicros }) => formatNumber(cpuMicros.others)],
  ['idle cores', ({ idleCores }) => formatNumber(idleCores)],
  ['yardstick: one HMAC, CPU µs', (figures) => formatNumber(figures.yardstickMicros)],
  ['unanswered', ({ unanswered }) => formatNumber(unanswered)],
  ['check: accepted', ({ verdict }) => formatNumber(verdict.accepted)],
  ['check: landed', ({ verdict }) => formatNumber(verdict.landed)],
  ['check: oversold', ({ verdict }) => formatNumber(verdict.oversold)],
  ['check: duplicate', ({ verdict }) => formatNumber(verdict.duplicates)],
  ['check: lost', ({ verdict }) => formatNumber(verdict.lost)],
  ['check: units unaccounted', ({ verdict }) => formatNumber(verdict.difference)],
  ['check', ({ verdict }) => (verdict.problems.length === 0 ? 'passed' : 'FAILED')],
];

/** A row per figure, a column per scenario; and below it what has rows of its own. */
export function reportTable(results: readonly ScenarioResult[]): string {
  const loads = results.filter((result) => result.kind === 'load');
  const rows = loads.length === 0 ? [] : ROWS.map(([name, cell]) => [name, ...columns(results, cell)]);
  for (const name of extraNames(loads)) {
    rows.push([name, ...columns(results, ({ extra }) => cellOf(extra[name]))]);
  }
  for (const result of results) {
    if (result.kind !== 'limits') continue;
    for (const { name, perSecond, unit } of result.limits) {
      rows.push([`${name}: ${unit}`, ...results.map((one) => (one === result ? formatNumber(perSecond) : ''))]);
    }
  }
  const common = rows.length === 0 ? [] : [renderTable(['', ...results.map(({ scenario }) => scenario)], rows)];
  return [...common, ...results.flatMap(ownTable)].join('\n\n');
}

/** Figures that share no row with those of loads have a table of their own. */
function ownTable(result: ScenarioResult): string[] {
  if (result.kind === 'layers') return [layersTable(result.costs)];
  if (result.kind === 'paired') return [pairedTable(result.comparison)];
  if (result.kind === 'consoles') return [consolesTable(result)];
  if (result.kind === 'neighbours') return result.cases.map(neighboursTable);
  if (result.kind === 'rebuild') return [rebuildTable(result)];
  return [];
}

const columns = (results: readonly ScenarioResult[], cell: Cell): string[] =>
  results.map((result) => (result.kind === 'load' ? cell(result) : ''));

const extraNames = (loads: readonly LoadFigures[]): string[] => [
  ...new Set(loads.flatMap(({ extra }) => Object.keys(extra))),
];

const cellOf = (value: number | string | undefined): string =>
  typeof value === 'number' ? formatNumber(value) : (value ?? '');

/** What stands below the table: what the figures depend on, and what is wrong. */
export function reportNotes(report: Report): string {
  const { machine, results, goals } = report;
  const { cpu, cores, memoryGib, os, versions } = machine;
  const pairs = (facts: Readonly<Record<string, string | number>>): string =>
    Object.entries(facts)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ');
  const lines = [
    `${report.startedAt}${report.commit === null ? '' : `, commit ${report.commit}`}`,
    `machine: ${cpu}, ${cores} cores, ${memoryGib} GiB, ${os}; load generator on it too: ${report.loadGenerator}`,
    `load average before the run: ${report.loadAverageBefore.toFixed(2)}`,
    `versions: ${pairs(versions)}`,
    `durability: ${pairs(machine.durability)}`,
    `settings: ${pairs(machine.settings)}; warm-up ${report.warmUpSeconds} s`,
    'CPU µs each: per accepted purchase; sold-out, flash, attack, tokens and cancel-loop: per answer',
  ];
  for (const result of results) {
    if (result.kind === 'load') {
      const early = result.ranOutOfBuyers ? '; ended early: no buyer was left' : '';
      lines.push(`${result.scenario}: ${result.about}${early}`);
    }
    if (result.kind === 'neighbours') {
      lines.push(...result.cases.map(({ title, about }) => `${result.scenario}: ${title}: ${about}`));
    }
    if (result.kind === 'rebuild') {
      const { orders, others, fillSeconds, rebuilt } = result;
      const filled = `${formatNumber(orders)} orders among ${formatNumber(others)}, filled in ${formatNumber(fillSeconds)} s`;
      lines.push(`${result.scenario}: ${filled}`);
      lines.push(...rebuilt.map(({ title, steps }) => `${result.scenario}: ${title}: steps, s: ${steps}`));
    }
    for (const problem of problemsIn(result)) lines.push(`${result.scenario}: FAILED: ${problem}`);
  }
  for (const { goal, measured, met } of goals) {
    lines.push(`goal: ${goal}: ${met ? 'met' : 'NOT met'} (${formatNumber(measured)})`);
  }
  return lines.join('\n');
}

/** Three digits: a layer that is off costs nanoseconds. */
const micros = (value: number | null): string => (value === null ? '' : value.toFixed(3));

/** What each layer costs per request. */
function layersTable(costs: readonly LayerCost[]): string {
  const rows = costs.map(({ name, offUs, inUs, refusedUs, redisUs }) => {
    return [name, micros(offUs), micros(inUs), micros(refusedUs), micros(redisUs)];
  });
  return renderTable(['CPU µs per request', 'off', 'let in', 'refused', 'Redis, let in'], rows);
}

/** Pair by pair, and the ratios. */
function pairedTable({ against, pairs, ratio }: Comparison): string {
  const cells = ({ apiMicros, loadMicros, accepted }: Slice): string[] => [
    apiMicros.toFixed(2),
    loadMicros.toFixed(2),
    formatNumber(accepted),
  ];
  const rows = pairs.map((pair, index) => [
    `pair ${index + 1}`,
    ...cells(pair.here),
    ...cells(pair.there),
    ratioOf(pair).toFixed(4),
  ]);
  const { min, median, max } = ratio;
  const summary = [
    ['ratio, least', '', '', '', '', '', '', min.toFixed(4)],
    ['ratio, median', '', '', '', '', '', '', median.toFixed(4)],
    ['ratio, most', '', '', '', '', '', '', max.toFixed(4)],
  ];
  const head = ['CPU µs each', 'api here', 'load', 'accepted', `api ${against}`, 'load', 'accepted', 'ratio'];
  return renderTable(head, [...rows, ...summary]);
}

/** CPU of the api, pair by pair, and what the consoles add. */
function consolesTable({ consoles, pairs, addedPercent }: ConsolesFigures): string {
  const rows = pairs.map(({ withoutPercent, withPercent, snapshotsPerSecond, requestsPerSecond }, index) => [
    `pair ${index + 1}`,
    withoutPercent.toFixed(2),
    withPercent.toFixed(2),
    (withPercent - withoutPercent).toFixed(2),
    snapshotsPerSecond.toFixed(2),
    requestsPerSecond.toFixed(2),
  ]);
  const head = [
    'api CPU, % of a core',
    'no console',
    `${consoles} consoles`,
    'added',
    'snapshots/s each',
    'requests/s of all',
  ];
  return renderTable(head, [...rows, ['added, median', '', '', addedPercent.toFixed(2), '', '']]);
}

/** Seconds of each rebuild: how long buyers would get 503, and the CPU that it took. */
function rebuildTable({ rebuilt }: RebuildFigures): string {
  const rows = rebuilt.map(({ title, lockedSeconds, cpu }) =>
    [title, ...[lockedSeconds, cpu.keeper, cpu.redis, cpu.mariadb].map((value) => formatNumber(value))].map(String),
  );
  return renderTable(['rebuild, s', 'locked', 'CPU keeper', 'CPU Redis', 'CPU MariaDB'], rows);
}

/** How the other sales sold before, during and after. */
function neighboursTable({ title, phases }: Case): string {
  const rows = phases.map((phase) => {
    const { perSecond, landedPerSecond, refused, p50, p99, max, clientP99 } = phase;
    return [
      `${phase.name}, ${phase.seconds.toFixed(1)} s`,
      ...[perSecond, landedPerSecond, refused, p50, p99, max, clientP99].map(formatNumber),
    ];
  });
  const head = ['accepted/s', 'landed/s', 'not accepted', 'p50, ms', 'p99, ms', 'max, ms', 'p99 of the client'];
  return renderTable([title, ...head], rows);
}

/** 12,345 for large figures, 12.3 and 0.71 for small ones. */
function formatNumber(value: number): string {
  const digits = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** What the project promises on this machine class. */
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
/** Of the stock that is left for them: behind a crowd that fetches purchase tokens and never buys, or beside accounts that buy and cancel. */
const HONEST_STOCK_SHARE = 0.95;
/** CPU per purchase, with every layer off, of what it was before. */
const PAIRED_RATIO = 1.02;
/** What 50 open consoles may take of one core of the api. */
const CONSOLES_PERCENT = 2;
/** Of the heap, last third to first third of a minute of `win`. */
const HEAP_GROWTH = 1.2;

/** A sale of a million orders among twenty million others is locked no longer, s. */
const REBUILD = { orders: 1_000_000, lockedSecondsMax: 20 };
/** By so much one sale, or one server, may disturb the others. */
const BESIDE = 0.1;

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
  const stockShare = find('tokens')?.extra[HONEST_STOCK_ROW];
  if (typeof stockShare === 'number') {
    goals.push(atLeast('tokens, share of the stock that honest buyers got', stockShare, HONEST_STOCK_SHARE));
  }
  const loop = find('cancel-loop')?.extra;
  const [leftShare, rows] = [loop?.[LEFT_SHARE_ROW], loop?.[ROWS_EACH_ROW]];
  if (typeof leftShare === 'number' && typeof rows === 'number') {
    goals.push(atLeast('cancel-loop, share of what was left that honest buyers got', leftShare, HONEST_STOCK_SHARE));
    goals.push({
      goal: `cancel-loop, orders of an account ≤ ${ROWS_EACH_MAX}`,
      measured: rows,
      met: rows <= ROWS_EACH_MAX,
    });
  }
  return [
    ...goals,
    ...attackGoals(find('attack')?.extra),
    ...pairedGoals(results),
    ...consolesGoals(results),
    ...neighboursGoals(results),
    ...rebuildGoals(results),
  ];
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

function consolesGoals(results: readonly ScenarioResult[]): Goal[] {
  return results.flatMap((result) => {
    if (result.kind !== 'consoles') return [];
    const { consoles, mix, addedPercent: measured } = result;
    const goal = `${consoles} open consoles (${mix}), % of a core that they cost the api ≤ ${CONSOLES_PERCENT}`;
    return [{ goal, measured, met: measured <= CONSOLES_PERCENT }];
  });
}

function neighboursGoals(results: readonly ScenarioResult[]): Goal[] {
  return results.flatMap((result) => {
    if (result.kind !== 'neighbours') return [];
    return result.cases.flatMap((one) => {
      const { rate, landed, p99 } = sharesOf(one);
      const what = (figure: string): string => `neighbours while ${one.title}, ${figure} of that before`;
      return [
        atLeast(what('rate'), rate, 1 - BESIDE),
        atLeast(what('landed/s'), landed, 1 - BESIDE),
        { goal: `${what('p99')} ≤ ${1 + BESIDE}`, measured: p99, met: p99 <= 1 + BESIDE },
      ];
    });
  });
}

function rebuildGoals(results: readonly ScenarioResult[]): Goal[] {
  return results.flatMap((result) => {
    if (result.kind !== 'rebuild' || result.orders < REBUILD.orders) return [];
    return result.rebuilt.map(({ title, lockedSeconds: measured }) => {
      const goal = `rebuild ${title}, s that the sale is locked ≤ ${REBUILD.lockedSecondsMax}`;
      return { goal, measured, met: measured <= REBUILD.lockedSecondsMax };
    });
  });
}

const atLeast = (what: string, measured: number, limit: number): Goal => ({
  goal: `${what} ≥ ${limit.toLocaleString('en')}`,
  measured,
  met: measured >= limit,
});
