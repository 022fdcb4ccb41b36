import { Option } from 'commander';
import { existsSync } from 'node:fs';
import { withoutUndefined } from '../../../src/core/without-undefined.js';
import { StackError } from './stack-error.js';

/**
 * The servers that the stack can run, by the word that chooses each; the first of a list is the default. What each is, where it
 * comes from and what was tried with it: docs/servers.md.
 */
export const VERSIONS = {
  mysql: ['mariadb-11.4', '8.0', '9.7'],
  redis: ['6.2', '7', 'valkey'],
  rocketmq: ['5.4', '5.3'],
} as const;

export type VersionedServer = keyof typeof VERSIONS;
export const VERSIONED_SERVERS = Object.keys(VERSIONS) as VersionedServer[];

/** In place of a version: the server that a setting of `OWN_SERVERS` names. */
export const OWN = 'own';

/** Which servers an instance has. */
export type Versions = { readonly [S in VersionedServer]: (typeof VERSIONS)[S][number] | typeof OWN };

/** Settings that choose a version, in place of an option of a command. */
export const VERSION_SETTINGS: Readonly<Record<VersionedServer, string>> = {
  mysql: 'SECKILL_MYSQL',
  redis: 'SECKILL_REDIS',
  rocketmq: 'SECKILL_ROCKETMQ',
};

/** Settings that name a server of one's own: a program, and for RocketMQ the folder of its jars. */
export const OWN_SERVERS: Readonly<Record<VersionedServer, string>> = {
  mysql: 'SECKILL_MYSQLD',
  redis: 'SECKILL_REDIS_SERVER',
  rocketmq: 'SECKILL_ROCKETMQ_LIB',
};

export const DEFAULT_VERSIONS: Versions = { mysql: 'mariadb-11.4', redis: '6.2', rocketmq: '5.4' };

/** For people. */
const NAMES: Readonly<Record<VersionedServer, string>> = { mysql: 'MySQL', redis: 'Redis', rocketmq: 'RocketMQ' };

/** The options of a command that choose versions, each named as its server. */
export function versionOptions(): Option[] {
  return VERSIONED_SERVERS.map((server) => {
    const versions = `${NAMES[server]} at the first start of a folder (default: ${DEFAULT_VERSIONS[server]})`;
    return new Option(`--${server} <version>`, versions).choices(VERSIONS[server]);
  });
}

/** What those options were given. */
export const chosenIn = ({ mysql, redis, rocketmq }: Partial<Versions>): Partial<Versions> =>
  withoutUndefined({ mysql, redis, rocketmq });

/**
 * What options of a command and the environment ask for, which may be nothing. An option comes first, then a server of one's
 * own, then the setting of a version.
 * @throws StackError for a version that there is not
 */
export function wantedVersions(options: Partial<Versions>, env: NodeJS.ProcessEnv): Partial<Versions> {
  const wanted = VERSIONED_SERVERS.flatMap((server) => {
    const word = options[server] ?? (env[OWN_SERVERS[server]] ? OWN : env[VERSION_SETTINGS[server]]);
    if (!word) return [];
    if (word !== OWN && !(VERSIONS[server] as readonly string[]).includes(word)) {
      const known = VERSIONS[server].join(', ');
      throw new StackError(`${VERSION_SETTINGS[server]} is ${word}; the stack can run ${known}.`);
    }
    return [[server, word] as const];
  });
  return Object.fromEntries(wanted) as Partial<Versions>;
}

/** Those of one's own alone. */
export const ownVersions = (env: NodeJS.ProcessEnv): Partial<Versions> =>
  Object.fromEntries(VERSIONED_SERVERS.filter((server) => env[OWN_SERVERS[server]]).map((server) => [server, OWN]));

/** The same, with the default of what nothing asks for. @throws StackError */
export const versionsIn = (env: NodeJS.ProcessEnv): Versions => ({ ...DEFAULT_VERSIONS, ...wantedVersions({}, env) });

/**
 * @param remembered what the data of an instance was written by; null when it has none
 * @throws StackError when another server is wanted: none can be trusted with the data of another
 */
export function assertSameServers(remembered: Versions | null, wanted: Partial<Versions>, dir: string): void {
  if (remembered === null) return;
  for (const server of VERSIONED_SERVERS) {
    const [has, wants] = [remembered[server], wanted[server]];
    if (wants === undefined || wants === has) continue;
    throw new StackError(
      `${dir} has data of ${NAMES[server]} ${has}, not of ${wants}; start an instance elsewhere: npm start -- --dir <folder> --free-ports --port 0.`,
    );
  }
}

/** The server that a setting names. @throws StackError when it names none, or nothing that exists */
export function ownServer(server: VersionedServer, env: NodeJS.ProcessEnv): string {
  const setting = OWN_SERVERS[server];
  const path = env[setting];
  if (!path) throw new StackError(`This folder was made with a ${NAMES[server]} of your own; name it with ${setting}.`);
  if (!existsSync(path)) throw new StackError(`${setting} names ${path}, which does not exist; correct or unset it.`);
  return path;
}
