import type { Facts } from '../report.js';
import { median, type Verdict } from './flatness.js';
import type { YearFault } from './faults.js';
import { HOT_TABLES } from './sizes.js';
import type { YearResult } from './long-run.js';

export const YEAR_HEADER = ['figure', 'value'] as const;

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

/** The figures of a year, one per line. */
export function yearLines(year: YearResult): Line[] {
  const { start, end, peak, restart, verdicts, orders } = year;
  const growth = (100 * (end.redisBytes - start.redisBytes)) / start.redisBytes;
  const perSecond = Math.round((1000 * sum(orders)) / Math.max(1, year.sellingMs));
  return [
    ['sales (of them large)', `${count(year.sales)} (${count(year.largeSales)})`],
    ['buyers', count(year.buyers)],
    ['requests', count(year.requests)],
    ['202s', count(year.accepted)],
    ['orders', `${count(sum(orders))}: ${list(orders)}`],
    ['failed orders, by reason', list(year.failed)],
    ['paid, cancelled by their buyers', `${count(year.paid)}, ${count(year.cancelled)}`],
    ['sold in', `${minutes(year.sellingMs)} minutes, ${count(perSecond)} orders a second`],
    ['from the first sale to the last check', `${minutes(year.tookMs)} minutes`],
    [
      'sales whose books were right, of them compared with Redis',
      `${count(year.checked)}, ${count(year.checkedWithRedis)}`,
    ],
    ['sales retired', count(year.retired)],
    [
      'Redis memory at the start, at most, at the end',
      `${mebibytes(start.redisBytes)}, ${mebibytes(peak.redisBytes)}, ${mebibytes(end.redisBytes)} (${growth.toFixed(1)} %)`,
    ],
    ['Redis keys at the end', list(year.keysLeft)],
    ...HOT_TABLES.map((table): Line => [
      `rows of ${table} at most, at the end`,
      `${count(peak.rows[table] ?? 0)}, ${count(year.rowsLeft[table] ?? 0)}`,
    ]),
    ...(restart === null
      ? []
      : ([
          [
            'Redis and all programs killed: sales closed at that time, of them retired',
            `${count(restart.closedSales + restart.retiredSales)}, ${count(restart.retiredSales)}`,
          ],
          [
            'Redis up, every program ready, a purchase accepted after',
            `${seconds(restart.redisMs)}, ${seconds(restart.readyMs)}, ${seconds(restart.acceptedMs)} s`,
          ],
        ] satisfies Line[])),
    ['CPU µs per order', list(microsPerOrder(year))],
    ['faults', count(year.faults.length)],
    ...faultLines(year.faults),
    ...verdicts.map(verdictLine),
  ];
}

function microsPerOrder({ cpuSeconds, orders }: YearResult): Record<string, number> {
  const made = Math.max(1, sum(orders));
  const micros = Object.entries(cpuSeconds).map(([who, used]) => [who, Math.round((1e6 * used) / made)] as const);
  return Object.fromEntries(micros);
}

function faultLines(faults: readonly YearFault[]): Line[] {
  const kinds = [...new Set(faults.map(({ kind }) => kind))];
  return kinds.map((kind): Line => {
    const some = faults.filter((fault) => fault.kind === kind);
    const times = (of: readonly number[]): string => `${seconds(median(of))}, worst ${seconds(Math.max(...of))} s`;
    return [
      `  ${kind} × ${some.length}`,
      `accepted again ${times(some.map((fault) => fault.acceptedMs))}; orders again ${times(some.map((fault) => fault.orderedMs))}`,
    ];
  });
}

function verdictLine({ what, unit, first, last, flat }: Verdict): Line {
  const grown = flat ? '' : '  NOT FLAT';
  return unit === 'bytes'
    ? [what, `${(first / MIB).toFixed(1)} → ${(last / MIB).toFixed(1)} MiB${grown}`]
    : [what, `${first} → ${last}${grown}`];
}

/** `3,000 sales and 5,001,234 orders, 12 faults: books right …`, or why it is red. */
export function yearSentence({ sales, orders, faults, problems }: YearResult): string {
  const ran = `${count(sales)} sales, ${count(sum(orders))} orders, ${count(faults.length)} faults`;
  if (problems.length > 0) return `RED, ${ran}: ${problems.slice(0, 3).join('; ')}`;
  return `${ran}: the books are right, nothing grew, nothing stalled`;
}

interface YearPageParts {
  readonly year: YearResult;
  readonly facts: Facts;
  readonly date: string;
  /** The command that repeats it. */
  readonly again: string;
}

/** The page that `--report` writes. */
export function yearPage({ year, facts, date, again }: YearPageParts): string {
  const versions = Object.entries(facts.versions).map(([name, version]) => `${name} ${version}`);
  const lines = [
    '# Year report',
    '',
    `**${yearSentence(year)}**`,
    '',
    `${date}. ${versions.join(', ')}. ${facts.machine}.`,
    `The same sizes and faults again: \`${again}\`. What each figure means: [docs/chaos.md](../docs/chaos.md#year).`,
    '',
    '| figure | value |',
    '| --- | ---: |',
    ...yearLines(year).map(([figure, value]) => `| ${figure.trim()} | ${value} |`),
    '',
    '## Faults, in their order',
    '',
    '| s | fault | accepted again after s | orders again after s | open sales rebuilt, after s |',
    '| ---: | --- | ---: | ---: | ---: |',
    ...year.faults.map((fault) => `| ${faultCells(fault).join(' | ')} |`),
    ...(year.problems.length === 0 ? [] : ['', '## What is wrong', '', ...year.problems.map((one) => `- ${one}`)]),
  ];
  return `${lines.join('\n')}\n`;
}

function faultCells({ kind, atMs, acceptedMs, orderedMs, rebuilt }: YearFault): string[] {
  const sales = rebuilt === null ? '–' : `${rebuilt.sales}, ${seconds(rebuilt.ms)}`;
  return [String(Math.round(atMs / 1000)), kind, seconds(acceptedMs), seconds(orderedMs), sales];
}
