import { readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { askRemoting, REQUEST } from '../../src/rocketmq/admin/remoting.js';
import type { StackHands } from './harness/stack-controls.js';
import { addFigures, NO_FIGURES, type RowFigures, type RowResult } from './scenario.js';

/** All runs of one row. */
export interface RowSummary {
  readonly row: string;
  readonly title: string;
  readonly seeds: number;
  /** Of the runs whose books could be read. */
  readonly figures: RowFigures;
  /** Runs whose books could not be read. */
  readonly unread: number;
  /** Of the slowest seed; null when one never came to rest. */
  readonly recoveryMs: number | null;
  readonly red: readonly RowResult[];
  /** Null when it ran. */
  readonly skipped: string | null;
}

export const HEADER = [
  ...['row', 'seeds', 'requests', '202s', 'orders', 'failed rows', 'oversold', 'duplicates', 'lost', 'recovery s'],
] as const;

/** In the order in which the rows are given. */
export function summarize(rows: readonly string[], results: readonly RowResult[]): RowSummary[] {
  return rows.flatMap((row) => {
    const runs = results.filter((result) => result.row === row);
    const [first] = runs;
    if (first === undefined) return [];
    const ran = runs.filter(({ outcome }) => outcome !== 'skipped');
    const recoveries = ran.map(({ recoveryMs }) => recoveryMs);
    const recovered = recoveries.every((recoveryMs) => recoveryMs !== null) && recoveries.length > 0;
    return {
      row,
      title: first.title,
      seeds: ran.length,
      figures: ran.reduce((sum, { figures }) => addFigures(sum, figures ?? NO_FIGURES), NO_FIGURES),
      unread: ran.filter(({ figures }) => figures === null).length,
      recoveryMs: recovered ? Math.max(...recoveries.map((recoveryMs) => recoveryMs ?? 0)) : null,
      red: ran.filter(({ outcome }) => outcome === 'red'),
      skipped: ran.length === 0 ? first.reason : null,
    };
  });
}

/** The cells under HEADER. Counts of which a part could not be read are not told. */
export function cellsOf({ row, seeds, figures, unread, recoveryMs, red }: RowSummary): string[] {
  const { requests, accepted, orders, failedRows, oversold, duplicates, lost } = figures;
  const counts = [requests, accepted, orders, failedRows, oversold, duplicates, lost];
  const recovery = recoveryMs === null ? '–' : (recoveryMs / 1000).toFixed(1);
  const name = red.length === 0 ? row : `${row} RED`;
  return [name, String(seeds), ...counts.map((count) => (unread > 0 ? '–' : count.toLocaleString('en'))), recovery];
}

/** `0 oversold, 0 duplicate, 0 lost in 14 faults × 3 seeds`, and what went wrong beyond that. */
export function totalLine(summaries: readonly RowSummary[], seeds: number): string {
  const { oversold, duplicates, lost } = summaries.reduce((sum, one) => addFigures(sum, one.figures), NO_FIGURES);
  const ran = summaries.filter(({ skipped }) => skipped === null).length;
  const red = summaries.filter((one) => one.red.length > 0).length;
  const unread = summaries.filter((one) => one.unread > 0).length;
  const skipped = summaries.length - ran;
  const seedsTold = `${seeds} ${seeds === 1 ? 'seed' : 'seeds'}`;
  return (
    `${oversold} oversold, ${duplicates} duplicate, ${lost} lost in ${ran} faults × ${seedsTold}` +
    (red > 0 ? `; ${red} RED` : '') +
    (unread > 0 ? `; books of ${unread} ${unread === 1 ? 'row' : 'rows'} could not be read` : '') +
    (skipped > 0 ? `; ${skipped} skipped` : '')
  );
}

export interface ReportParts {
  readonly summaries: readonly RowSummary[];
  readonly seeds: readonly number[];
  readonly facts: Facts;
  readonly date: string;
  readonly tookMs: number;
}

/** The page that a full run leaves. */
export function reportPage({ summaries, seeds, facts, date, tookMs }: ReportParts): string {
  const ran = summaries.filter(({ skipped }) => skipped === null);
  const skipped = summaries.filter((one) => one.skipped !== null);
  const red = summaries.flatMap((one) => one.red);
  const versions = Object.entries(facts.versions).map(([name, version]) => `${name} ${version}`);
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const lines = [
    '# Chaos report',
    '',
    `**${totalLine(summaries, seeds.length)}**`,
    '',
    `${date}, ${Math.round(tookMs / 1000)} s in all. ${versions.join(', ')}. ${facts.machine}.`,
    `Seeds: ${seeds.join(' ')}. Again: \`npm run chaos -- run --seed ${seeds[0]} --seeds ${seeds.length}\`.`,
    'What each column means: [docs/chaos.md](../docs/chaos.md#the-table).',
    '',
    line(HEADER),
    line(HEADER.map((_, column) => (column === 0 ? '---' : '---:'))),
    ...ran.map((one) => line(cellsOf(one))),
    '',
    '## What was broken',
    '',
    ...ran.map(({ row, title }) => `- **${row}** ${title}`),
    ...section(
      'Red',
      red.map(({ row, seed, reason }) => `- **${row}**, seed ${seed}: ${reason}`),
    ),
    ...section(
      'Skipped',
      skipped.map(({ row, skipped: reason }) => `- **${row}**: ${reason}`),
    ),
  ];
  return `${lines.join('\n')}\n`;
}

const section = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : ['', `## ${title}`, '', ...lines];

/** What a report says of the run besides its rows. */
export interface Facts {
  /** Name → version, as the running servers say it. */
  readonly versions: Readonly<Record<string, string>>;
  /** One sentence. */
  readonly machine: string;
}

export async function readFacts({ servers, redis, mysql }: StackHands): Promise<Facts> {
  const [database] = await mysql.query<{ version: string }>('SELECT VERSION() AS version');
  const runtime = JSON.parse(
    await askRemoting({ host: '127.0.0.1', port: servers.ports.broker }, REQUEST.brokerRuntimeInfo),
  ) as { table?: { brokerVersionDesc?: string } };
  const broker = runtime.table?.brokerVersionDesc ?? '?';
  return {
    versions: {
      Node: process.versions.node,
      Redis: /^redis_version:(\S+)/m.exec(await redis.redis.info('server'))?.[1] ?? '?',
      MariaDB: database?.version ?? '?',
      RocketMQ: broker.replace(/^V/, '').replaceAll('_', '.'),
    },
    machine: machine(),
  };
}

function machine(): string {
  const memoryGib = Math.round(totalmem() / 1024 ** 3);
  const model = cpus()[0]?.model.trim() ?? '?';
  return `${cpus().length} cores (${model}), ${memoryGib} GiB, ${osName()}, Linux ${release()}`;
}

function osName(): string {
  try {
    return /^PRETTY_NAME="(.*)"$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? process.platform;
  } catch {
    return process.platform;
  }
}
