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

/** One line of the matrix: servers, and the Node that tests and programs run on. */
export interface Row extends Versions {
  /** `this`: the one that runs the command. */
  readonly node: NodeVersion | 'this';
}

const BASE: Row = { ...DEFAULT_VERSIONS, node: 'this' };

/** What is run where nothing is chosen: the servers of `npm test`, then each of the others in its place, then the newest of all. */
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

/** What `npm test` is started with, so that it runs on the servers of a row. */
export function settingsOf(row: Row, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const settings = { ...env };
  for (const server of VERSIONED_SERVERS) {
    if (row[server] === OWN) continue;
    settings[VERSION_SETTINGS[server]] = row[server];
    delete settings[OWN_SERVERS[server]]; // it would come first
  }
  return settings;
}

export const SUITES = ['unit', 'contract', 'lua', 'integration', 'scenario'] as const;
export type Suite = (typeof SUITES)[number];

/** One scenario of each program that dies at work, and one of each server: killed, or silent. All are quick ones. */
const SCENARIOS = ['T3/after_deduct', 'M9', 'C3/outbox_after_publish', 'R1', 'D1', 'M1/sales'] as const;

/** The suites of a row: unit tests meet no server, so they are run for a Node that was chosen. */
export const suitesOf = ({ node }: Row): readonly Suite[] =>
  SUITES.filter((suite) => suite !== 'unit' || node !== 'this');

/** Arguments of `npm test`, once for each run that the suites take. */
export function runsOf(suites: readonly Suite[], isShort: boolean): string[][] {
  if (isShort) return [['contract', 'integration', '--files', ...mysqlContracts(), ONE_PURCHASE]];
  const together = suites.filter((suite) => suite !== 'scenario');
  const pattern = `\\[(${SCENARIOS.join('|')})[ \\]]`;
  return [
    ...(together.length > 0 ? [together] : []),
    ...(suites.includes('scenario') ? [['scenario', '--files', 'scenarios.test', '--grep', pattern]] : []),
  ];
}

/** The suites that the short part is of. */
export const SHORT_SUITES: readonly Suite[] = ['contract', 'integration'];

/** From the click to the order that its buyer reads, with the programs. */
const ONE_PURCHASE = 'test/integration/one-purchase.test.ts';

/** The contracts that MySQL has to hold: of all repositories, of the pool and of the schema. */
function mysqlContracts(): string[] {
  const folder = 'test/contract';
  return readdirSync(join(REPO_DIR, folder))
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `${folder}/${name}`)
    .filter((file) =>
      /src\/mysql\/|repository-worlds|transitions-worlds/.test(readFileSync(join(REPO_DIR, file), 'utf8')),
    );
}
