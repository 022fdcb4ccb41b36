import type { CpuUser } from '../measure.js';
import type { LoadFigures, ScenarioResult } from '../results.js';
import type { Machine } from '../session/machine.js';
import type { Goal } from './goals.js';
import { layersTable, pairedTable } from './admission-tables.js';
import { formatNumber, renderTable } from './table.js';

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
  ['books: accepted', ({ books }) => formatNumber(books.accepted)],
  ['books: landed', ({ books }) => formatNumber(books.landed)],
  ['books: oversold', ({ books }) => formatNumber(books.oversold)],
  ['books: duplicate', ({ books }) => formatNumber(books.duplicates)],
  ['books: lost', ({ books }) => formatNumber(books.lost)],
  ['books: units unaccounted', ({ books }) => formatNumber(books.difference)],
  ['books', ({ books }) => (books.problems.length === 0 ? 'right' : 'WRONG')],
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
    'CPU µs each: per accepted purchase; sold-out, flash and attack: per answer',
  ];
  for (const result of results) {
    if (result.kind !== 'load') continue;
    lines.push(`${result.scenario}: ${result.about}${result.ranOutOfBuyers ? '; ended early: no buyer was left' : ''}`);
    for (const problem of result.books.problems) lines.push(`${result.scenario}: WRONG: ${problem}`);
  }
  for (const { goal, measured, met } of goals) {
    lines.push(`goal: ${goal}: ${met ? 'met' : 'NOT met'} (${formatNumber(measured)})`);
  }
  return lines.join('\n');
}
