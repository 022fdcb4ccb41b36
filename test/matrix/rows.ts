import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import {
  DEFAULT_VERSIONS,
  OWN,
  OWN_SERVERS,
  VERSION_SETTINGS,
  VERSIONED_SERVERS,
  type Versions,
} from '../../deploy/local/stack/versions.js';
import type { NodeVersion } from './node-versions.js';

/** A row of the matrix: the servers, and the Node that runs tests and programs. */
export interface Row extends Versions {
  /** `this` means the Node that runs the command. */
  readonly node: NodeVersion | 'this';
}

const BASE: Row = { ...DEFAULT_VERSIONS, node: 'this' };

/**
 * The rows that run without a choice: the servers of `npm test`, then each other server in place of its default, then
 * the newest of all.
 */
export const ROWS: readonly Row[] = [
  BASE,
  { ...BASE, mysql: '8.0' },
  { ...BASE, mysql: '9.7' },
  { ...BASE, redis: '7' },
  { ...BASE, redis: 'valkey' },
  { ...BASE, rocketmq: '5.3' },
  { ...BASE, node: '20.19' },
  { ...BASE, node: '22' },
  { ...BASE, node: '24' },
  { ...BASE, mysql: '9.7', redis: 'valkey', node: '24' },
];

export const rowOf = (chosen: Partial<Row>): Row => ({ ...BASE, ...chosen });

export const nameOf = ({ mysql, redis, rocketmq, node }: Row): string =>
  `MySQL ${mysql}, Redis ${redis}, RocketMQ ${rocketmq}, Node ${node}`;

/** Settings for `npm test` that select the servers of a row. */
export function settingsOf(row: Row, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const settings = { ...env };
  for (const server of VERSIONED_SERVERS) {
    if (row[server] === OWN) continue;
    settings[VERSION_SETTINGS[server]] = row[server];
    delete settings[OWN_SERVERS[server]]; // otherwise it would be found first
  }
  return settings;
}

export const SUITES = ['unit', 'contract', 'lua', 'integration', 'scenario'] as const;
export type Suite = (typeof SUITES)[number];

/** A quick scenario for the death of each program, and for the death or silence of each server. */
const SCENARIOS = ['T3/after_deduct', 'M9', 'C3/outbox_after_publish', 'R1', 'D1', 'M1/sales'] as const;

/** The suites of a row. Unit tests, which use no server, run only for a chosen Node. */
export const suitesOf = ({ node }: Row): readonly Suite[] =>
  SUITES.filter((suite) => suite !== 'unit' || node !== 'this');

/** Returns the arguments of each call of `npm test`. */
export function runsOf(suites: readonly Suite[], isShort: boolean): string[][] {
  if (isShort) return [['contract', 'integration', '--files', ...mysqlContracts(), ONE_PURCHASE]];
  const together = suites.filter((suite) => suite !== 'scenario');
  const pattern = `\\[(${SCENARIOS.join('|')})[ \\]]`;
  return [
    ...(together.length > 0 ? [together] : []),
    ...(suites.includes('scenario') ? [['scenario', '--files', 'scenarios.test', '--grep', pattern]] : []),
  ];
}

/** The suites from which the short part is taken. */
export const SHORT_SUITES: readonly Suite[] = ['contract', 'integration'];

/** One purchase, from the request to the order, through the real programs. */
const ONE_PURCHASE = 'test/integration/one-purchase.test.ts';

/** The contracts that MySQL must fulfil: of all repositories, of the pool and of the schema. */
function mysqlContracts(): string[] {
  const folder = 'test/contract';
  return readdirSync(join(REPO_DIR, folder))
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `${folder}/${name}`)
    .filter((file) =>
      /src\/mysql\/|repository-worlds|transitions-worlds/.test(readFileSync(join(REPO_DIR, file), 'utf8')),
    );
}
