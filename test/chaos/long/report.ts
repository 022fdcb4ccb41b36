import type { Facts } from '../report.js';
import type { FaultReport } from './faults.js';
import { median, type Verdict } from './flatness.js';
import type { LongRunResult } from './long-run.js';
import { HOT_TABLES } from './sizes.js';

export const HEADER = ['figure', 'value'] as const;

const MIB = 1024 * 1024;
const count = (value: number): string => value.toLocaleString('en');
const seconds = (ms: number): string => (ms / 1000).toFixed(1);
const minutes = (ms: number): string => (ms / 60_000).toFixed(1);
const mebibytes = (bytes: number): string => `${(bytes / MIB).toFixed(1)} MiB`;
const sum = (counts: Readonly<Record<string, number>>): number => Object.values(counts).reduce((a, b) => a + b, 0);
const list = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, value]) => `${name} ${count(value)}`)
    .join(', ') || 'none';

type Line = readonly [figure: string, value: string];

/** Returns the figures of a long run, one per line. */
export function resultLines(run: LongRunResult): Line[] {
  const { start, end, peak, restart, verdicts, orders } = run;
  const growth = (100 * (end.redisBytes - start.redisBytes)) / start.redisBytes;
  const perSecond = Math.round((1000 * sum(orders)) / Math.max(1, run.sellingMs));
  const restartLines: Line[] =
    restart === null
      ? []
      : [
          [
            'Redis and all programs killed: sales closed at that time, of them retired',
            `${count(restart.closedSales + restart.retiredSales)}, ${count(restart.retiredSales)}`,
          ],
          [
            'Redis up, every program ready, a purchase accepted after',
            `${seconds(restart.redisMs)}, ${seconds(restart.readyMs)}, ${seconds(restart.acceptedMs)} s`,
          ],
        ];
  return [
    ['sales (of them large)', `${count(run.sales)} (${count(run.largeSales)})`],
    ['buyers', count(run.buyers)],
    ['requests', count(run.requests)],
    ['202s', count(run.accepted)],
    ['orders', `${count(sum(orders))}: ${list(orders)}`],
    ['failed orders, by reason', list(run.failed)],
    ['paid, cancelled by their buyers', `${count(run.paid)}, ${count(run.cancelled)}`],
    ['accepted purchases sent again with the same key', count(run.repeated)],
    ['invalid requests', count(run.invalidRequests)],
    ['sold in', `${minutes(run.sellingMs)} minutes, ${count(perSecond)} orders a second`],
    ['from the first sale to the last check', `${minutes(run.tookMs)} minutes`],
    ['checked sales, of them compared with Redis', `${count(run.checked)}, ${count(run.checkedWithRedis)}`],
    ['sales retired', count(run.retired)],
    [
      'Redis memory at the start, at most, at the end',
      `${mebibytes(start.redisBytes)}, ${mebibytes(peak.redisBytes)}, ${mebibytes(end.redisBytes)} (${growth.toFixed(1)} %)`,
    ],
    ['Redis keys at the end', list(run.keysLeft)],
    ...HOT_TABLES.map((table): Line => [
      `rows of ${table} at most, at the end`,
      `${count(peak.rows[table] ?? 0)}, ${count(run.rowsLeft[table] ?? 0)}`,
    ]),
    ...restartLines,
    ['CPU µs per order', list(microsPerOrder(run))],
    ['faults', count(run.faults.length)],
    ...faultLines(run.faults),
    ...verdicts.map(verdictLine),
  ];
}

function microsPerOrder({ cpuSeconds, orders }: LongRunResult): Record<string, number> {
  const made = Math.max(1, sum(orders));
  const micros = Object.entries(cpuSeconds).map(([who, used]) => [who, Math.round((1e6 * used) / made)] as const);
  return Object.fromEntries(micros);
}

function faultLines(faults: readonly FaultReport[]): Line[] {
  const kinds = [...new Set(faults.map(({ kind }) => kind))];
  return kinds.map((kind): Line => {
    const some = faults.filter((fault) => fault.kind === kind);
    const times = (of: readonly number[]): string => `${seconds(median(of))}, worst ${seconds(Math.max(...of))} s`;
    const accepted = times(some.map(({ acceptedMs }) => acceptedMs));
    const orders = times(some.map(({ orderedMs }) => orderedMs));
    return [`  ${kind} × ${some.length}`, `accepted again ${accepted}; orders again ${orders}`];
  });
}

function verdictLine({ what, unit, first, last, flat }: Verdict): Line {
  const grown = flat ? '' : '  NOT FLAT';
  return unit === 'bytes'
    ? [what, `${(first / MIB).toFixed(1)} → ${(last / MIB).toFixed(1)} MiB${grown}`]
    : [what, `${first} → ${last}${grown}`];
}

/** Returns `3,000 sales, 5,001,234 orders, 12 faults: the books are right …`, or why the run is red. */
export function resultSentence({ sales, orders, faults, problems }: LongRunResult): string {
  const ran = `${count(sales)} sales, ${count(sum(orders))} orders, ${count(faults.length)} faults`;
  if (problems.length > 0) return `RED, ${ran}: ${problems.slice(0, 3).join('; ')}`;
  return `${ran}: Redis and MySQL match, nothing grew, nothing stalled`;
}

interface PageParts {
  readonly run: LongRunResult;
  readonly facts: Facts;
  readonly date: string;
  /** The command that repeats the run. */
  readonly again: string;
}

/** Returns the page that `--report` writes. */
export function resultPage({ run, facts, date, again }: PageParts): string {
  const versions = Object.entries(facts.versions).map(([name, version]) => `${name} ${version}`);
  const lines = [
    `# ${run.name === 'year' ? 'Year' : 'Soak'} report`,
    '',
    `**${resultSentence(run)}**`,
    '',
    `${date}. ${versions.join(', ')}. ${facts.machine}.`,
    `The same sizes and faults again: \`${again}\`.`,
    '',
    '| figure | value |',
    '| --- | ---: |',
    ...resultLines(run).map(([figure, value]) => `| ${figure.trim()} | ${value} |`),
    '',
    '## Faults, in their order',
    '',
    '| s | fault | accepted again after s | orders again after s | open sales rebuilt, after s |',
    '| ---: | --- | ---: | ---: | ---: |',
    ...run.faults.map((fault) => `| ${faultCells(fault).join(' | ')} |`),
    ...(run.problems.length === 0
      ? []
      : ['', '## What is wrong', '', ...run.problems.map((problem) => `- ${problem}`)]),
  ];
  return `${lines.join('\n')}\n`;
}

function faultCells({ kind, stallMs, atMs, acceptedMs, orderedMs, rebuilt }: FaultReport): string[] {
  const what = stallMs > 0 ? `${kind} (${seconds(stallMs)} s)` : kind;
  const sales = rebuilt === null ? '–' : `${rebuilt.sales}, ${seconds(rebuilt.ms)}`;
  return [String(Math.round(atMs / 1000)), what, seconds(acceptedMs), seconds(orderedMs), sales];
}

export function faultSentence(fault: FaultReport): string {
  const [at = '', what, accepted, orders] = faultCells(fault);
  const { rebuilt } = fault;
  const sales = rebuilt === null ? '' : `, ${rebuilt.sales} open sales rebuilt after ${seconds(rebuilt.ms)} s`;
  return `${at.padStart(5)} s  ${what}: accepted again after ${accepted} s, orders after ${orders} s${sales}`;
}

/** The figures of a line of progress. */
interface ProgressFigures {
  readonly atMs: number;
  /** Null if the time ends the run. */
  readonly sales: number | null;
  readonly sold: number;
  readonly selling: number;
  readonly waiting: number;
  readonly toCheck: number;
  readonly checked: number;
  readonly archived: number;
  readonly accepted: number;
  readonly perSecond: number;
  readonly connections: number;
  readonly late: readonly string[];
  readonly leftMs: number | null;
  readonly redisMiB: number;
  readonly rows: Readonly<Partial<Record<string, number>>>;
  readonly rss: Readonly<Record<string, number>>;
  readonly problems: number;
}

export function progressSentence(figures: ProgressFigures): string {
  const { sold, sales, selling, waiting, toCheck, checked, archived, late, leftMs, rows, problems } = figures;
  const memory = Object.entries(figures.rss).map(([name, mib]) => `${name.replace(/ \d+/, '')} ${mib}`);
  return [
    `${String(Math.round(figures.atMs / 1000)).padStart(5)} s  ` +
      (leftMs === null ? 'nothing sold yet' : `about ${Math.ceil(leftMs / 60_000)} min left`),
    `sold ${sold}${sales === null ? '' : `/${sales}`} (${selling} selling, ${waiting} ahead, ${toCheck} to check)` +
      `, checked ${checked}, archived ${archived}`,
    `orders ${count(figures.accepted)} (+${figures.perSecond}/s, ${figures.connections} at once` +
      `${late.length === 0 ? '' : `, late: ${late.join(' ')}`})`,
    `Redis ${figures.redisMiB} MiB, hot rows: orders ${rows.orders ?? 0}, outbox ${rows.outbox ?? 0}`,
    `MiB: ${memory.join(' ')}`,
    ...(problems === 0 ? [] : [`${problems} PROBLEMS`]),
  ].join('; ');
}
