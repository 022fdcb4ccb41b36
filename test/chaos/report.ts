import { readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { adminPortOf } from '../helpers/broker.js';
import { askRemoting, REQUEST } from '../../src/rocketmq/admin/remoting.js';
import type { StackControls } from './harness/stack-controls.js';
import type { ScenarioResult } from './run-scenario.js';
import { addFigures, NO_FIGURES, type ScenarioFigures } from './scenario-sales.js';

export interface ScenarioSummary {
  readonly scenario: string;
  readonly title: string;
  readonly seeds: number;
  /** Sum over the runs whose figures could be read. */
  readonly figures: ScenarioFigures;
  /** Runs whose figures could not be read. */
  readonly unread: number;
  /** Recovery of the slowest seed. Null if a seed never came to rest. */
  readonly recoveryMs: number | null;
  readonly red: readonly ScenarioResult[];
  /** Null if it ran. */
  readonly skipped: string | null;
}

export const HEADER = [
  'scenario',
  'seeds',
  'requests',
  '202s',
  'orders',
  'failed rows',
  'oversold',
  'duplicates',
  'lost',
  'recovery s',
] as const;

/** @param scenarios names in the order of the summaries */
export function summarize(scenarios: readonly string[], results: readonly ScenarioResult[]): ScenarioSummary[] {
  return scenarios.flatMap((scenario) => {
    const runs = results.filter((result) => result.scenario === scenario);
    const [first] = runs;
    if (first === undefined) return [];
    const ran = runs.filter(({ outcome }) => outcome !== 'skipped');
    const recoveries = ran.map(({ recoveryMs }) => recoveryMs);
    const recovered = recoveries.every((recoveryMs) => recoveryMs !== null) && recoveries.length > 0;
    return {
      scenario,
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

/** The cells below HEADER. A count is omitted if one run could not be read. */
export function cellsOf({ scenario, seeds, figures, unread, recoveryMs, red }: ScenarioSummary): string[] {
  const { requests, accepted, orders, failedRows, oversold, duplicates, lost } = figures;
  const counts = [requests, accepted, orders, failedRows, oversold, duplicates, lost];
  const recovery = recoveryMs === null ? '–' : (recoveryMs / 1000).toFixed(1);
  const name = red.length === 0 ? scenario : `${scenario} RED`;
  return [name, String(seeds), ...counts.map((count) => (unread > 0 ? '–' : count.toLocaleString('en'))), recovery];
}

/** Returns `0 oversold, 0 duplicate, 0 lost in 14 faults × 3 seeds`, and other failures. */
export function totalLine(summaries: readonly ScenarioSummary[], seeds: number): string {
  const { oversold, duplicates, lost } = summaries.reduce((sum, one) => addFigures(sum, one.figures), NO_FIGURES);
  const ran = summaries.filter(({ skipped }) => skipped === null).length;
  const red = summaries.filter((one) => one.red.length > 0).length;
  const unread = summaries.filter((one) => one.unread > 0).length;
  const skipped = summaries.length - ran;
  const ofSeeds = `${seeds} ${seeds === 1 ? 'seed' : 'seeds'}`;
  return (
    `${oversold} oversold, ${duplicates} duplicate, ${lost} lost in ${ran} faults × ${ofSeeds}` +
    (red > 0 ? `; ${red} RED` : '') +
    (unread > 0 ? `; figures of ${unread} ${unread === 1 ? 'scenario' : 'scenarios'} could not be read` : '') +
    (skipped > 0 ? `; ${skipped} skipped` : '')
  );
}

/** The page that a full run writes. */
export function reportPage(
  summaries: readonly ScenarioSummary[],
  seeds: readonly number[],
  { facts, date, tookMs }: { readonly facts: Facts; readonly date: string; readonly tookMs: number },
): string {
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
    ...ran.map(({ scenario, title }) => `- **${scenario}** ${title}`),
    ...section(
      'Red',
      red.map(({ scenario, seed, reason }) => `- **${scenario}**, seed ${seed}: ${reason}`),
    ),
    ...section(
      'Skipped',
      skipped.map(({ scenario, skipped: reason }) => `- **${scenario}**: ${reason}`),
    ),
  ];
  return `${lines.join('\n')}\n`;
}

const section = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : ['', `## ${title}`, '', ...lines];

/** Facts of a run other than its scenarios. */
export interface Facts {
  /** Name → version, as the running servers report it. */
  readonly versions: Readonly<Record<string, string>>;
  /** One sentence. */
  readonly machine: string;
}

export async function readFacts({ servers, redis, mysql }: StackControls): Promise<Facts> {
  const [database] = await mysql.query<{ version: string }>('SELECT VERSION() AS version');
  const runtime = JSON.parse(await askRemoting(adminPortOf(servers), REQUEST.brokerRuntimeInfo)) as {
    table?: { brokerVersionDesc?: string };
  };
  const broker = runtime.table?.brokerVersionDesc ?? '?';
  const server = await redis.redis.info('server');
  const isMariadb = database?.version.includes('MariaDB');
  return {
    versions: {
      Node: process.versions.node,
      ...redisVersion(server),
      [isMariadb ? 'MariaDB' : 'MySQL']: database?.version ?? '?',
      RocketMQ: broker.replace(/^V/, '').replaceAll('_', '.'),
    },
    machine: machine(),
  };
}

/** Valkey reports the Redis version that it imitates, and its own version. */
function redisVersion(info: string): Record<string, string> {
  const [, valkey] = /^valkey_version:(\S+)/m.exec(info) ?? [];
  if (valkey !== undefined) return { Valkey: valkey };
  return { Redis: /^redis_version:(\S+)/m.exec(info)?.[1] ?? '?' };
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
