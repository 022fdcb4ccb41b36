import { renderTable } from '../test/helpers/render-table.js';
import type { CpuUser } from './measure.js';
import { problemsIn, type LoadFigures, type ScenarioResult } from './results.js';
import type { FleetFigures } from './scenarios/fleet.js';
import { ratioOf, type PairedFigures, type Slice } from './scenarios/paired.js';
import type { Machine } from './session/machine.js';

/** The result of a run. --json prints it, and the table is built from it. */
export interface Report {
  /** ISO 8601. */
  readonly startedAt: string;
  /** Commit of the checkout, or null without git. */
  readonly commit: string | null;
  readonly warmUpSeconds: number;
  readonly machine: Machine;
  /** Average number of runnable programs in the minute before the run. Above 0.1, other programs used the machine. */
  readonly loadAverageBefore: number;
  readonly results: readonly ScenarioResult[];
  readonly goals: readonly Goal[];
}

type Cell = (figures: LoadFigures) => string;

const CPU_USERS: readonly CpuUser[] = ['api', 'worker', 'keeper', 'redis', 'mariadb', 'broker', 'load generator'];

/** Rows that every scenario with a load has. */
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

/** Returns a table with a row per figure and a column per scenario, and further tables for other results. */
export function reportTable(results: readonly ScenarioResult[]): string {
  const loads = results.filter((result) => result.kind === 'load');
  const rows = loads.length === 0 ? [] : ROWS.map(([name, cell]) => [name, ...columns(results, cell)]);
  for (const name of extraNames(loads)) {
    rows.push([name, ...columns(results, ({ extra }) => cellOf(extra[name]))]);
  }
  for (const result of results) {
    if (result.kind !== 'limits') continue;
    const add = (name: string, value: number): void =>
      void rows.push([name, ...results.map((one) => (one === result ? formatNumber(value) : ''))]);
    for (const { name, perSecond, unit, micros } of result.limits) {
      add(`${name}: ${unit}`, perSecond);
      for (const [user, value] of Object.entries(micros ?? {})) add(`${name}: CPU µs each: ${user}`, value);
    }
  }
  const common = rows.length === 0 ? [] : [renderTable(['', ...results.map(({ scenario }) => scenario)], rows)];
  return [...common, ...results.flatMap(ownTable)].join('\n\n');
}

/** Returns the table of a result that shares no row with the loads. */
function ownTable(result: ScenarioResult): string[] {
  if (result.kind === 'paired') return [pairedTable(result)];
  if (result.kind === 'fleet') return [fleetTable(result)];
  return [];
}

const columns = (results: readonly ScenarioResult[], cell: Cell): string[] =>
  results.map((result) => (result.kind === 'load' ? cell(result) : ''));

const extraNames = (loads: readonly LoadFigures[]): string[] => [
  ...new Set(loads.flatMap(({ extra }) => Object.keys(extra))),
];

const cellOf = (value: number | string | undefined): string =>
  typeof value === 'number' ? formatNumber(value) : (value ?? '');

/** Returns the lines below the table: machine, settings, problems and goals. */
export function reportNotes(report: Report): string {
  const { machine, results, goals } = report;
  const { cpu, cores, memoryGib, os, versions } = machine;
  const pairs = (facts: Readonly<Record<string, string | number>>): string =>
    Object.entries(facts)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ');
  const lines = [
    `${report.startedAt}${report.commit === null ? '' : `, commit ${report.commit}`}`,
    `machine: ${cpu}, ${cores} cores, ${memoryGib} GiB, ${os}; the load generator runs on it too`,
    `load average before the run: ${report.loadAverageBefore.toFixed(2)}`,
    `versions: ${pairs(versions)}`,
    `durability: ${pairs(machine.durability)}`,
    `settings: ${pairs(machine.settings)}; warm-up ${report.warmUpSeconds} s`,
    'CPU µs each: per accepted purchase; sold-out and flash: per answer',
  ];
  for (const result of results) {
    if (result.kind === 'load') {
      const early = result.ranOutOfBuyers ? '; ended early: no buyer was left' : '';
      lines.push(`${result.scenario}: ${result.about}${early}`);
    }
    for (const problem of problemsIn(result)) lines.push(`${result.scenario}: FAILED: ${problem}`);
  }
  for (const { goal, measured, met } of goals) {
    lines.push(`goal: ${goal}: ${met ? 'met' : 'NOT met'} (${formatNumber(measured)})`);
  }
  return lines.join('\n');
}

/** Returns a table of all pairs and their ratios. */
function pairedTable({ against, pairs, ratio }: PairedFigures): string {
  const cells = ({ apiMicros, accepted }: Slice): string[] => [apiMicros.toFixed(2), formatNumber(accepted)];
  const rows = pairs.map((pair, index) => [
    `pair ${index + 1}`,
    ...cells(pair.here),
    ...cells(pair.there),
    ratioOf(pair).toFixed(4),
  ]);
  const summary = Object.entries(ratio).map(([name, value]) => [`ratio, ${name}`, '', '', '', '', value.toFixed(4)]);
  const head = ['CPU µs each', 'api here', 'accepted', `api ${against}`, 'accepted', 'ratio'];
  return renderTable(head, [...rows, ...summary]);
}

function fleetTable({ scenario, rows }: FleetFigures): string {
  const users = Object.keys(rows[0]?.cpuMicros ?? {});
  const cells = rows.map(({ title, landedPerSecond, batchSizeMean, cpuMicros }) => {
    const micros = Object.values(cpuMicros);
    const all = micros.reduce((sum, one) => sum + one, 0);
    return [title, ...[landedPerSecond, batchSizeMean, all, ...micros].map(formatNumber)];
  });
  return renderTable([scenario, 'landed/s', 'batch size', 'CPU µs each', ...users], cells);
}

/** Formats large figures like 12,345 and small figures like 12.3 and 0.71. */
function formatNumber(value: number): string {
  const digits = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** A goal of the project on two cores. */
export interface Goal {
  readonly goal: string;
  readonly measured: number;
  readonly met: boolean;
}

const LANDED_PER_SECOND = 10_000;
const TIMES_NO_GROUP_COMMIT = 7;
const SHARE_OF_BARE_HTTP = 0.7;
const SHARE_OF_BARE_HTTP_BEHIND_ADMISSION = 0.5;
/** CPU per purchase with every layer off, compared with another build. */
const PAIRED_RATIO = 1.02;
/** Growth of the heap from the first to the last third of a minute of `win`. */
const HEAP_GROWTH = 1.2;

/** Judges the goals of the scenarios that ran. Goals are only shown and fail nothing, because machines differ. */
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
  for (const result of results) {
    if (result.kind !== 'paired') continue;
    const measured = result.ratio.median;
    const goal = `paired, CPU per purchase of that of ${result.against} ≤ ${PAIRED_RATIO}`;
    goals.push({ goal, measured, met: measured <= PAIRED_RATIO });
  }
  return goals;
}

const atLeast = (what: string, measured: number, limit: number): Goal => ({
  goal: `${what} ≥ ${limit.toLocaleString('en')}`,
  measured,
  met: measured >= limit,
});
