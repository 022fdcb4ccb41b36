import { Option } from 'commander';
import { existsSync } from 'node:fs';
import { withoutUndefined } from '../../../src/core/without-undefined.js';
import { StackError } from './stack-error.js';

/**
 * The servers that the stack can run, by the word that chooses each. The first of a list is the default.
 * docs/servers.md says what each is, where it comes from and what was tested with it.
 */
export const VERSIONS = {
  mysql: ['mariadb-11.4', '8.0', '9.7'],
  redis: ['6.2', '7', 'valkey'],
  rocketmq: ['5.4', '5.3'],
} as const;

export type VersionedServer = keyof typeof VERSIONS;
export const VERSIONED_SERVERS = Object.keys(VERSIONS) as VersionedServer[];

/** Stands for the version of a server that a setting of `OWN_SERVERS` names. */
export const OWN = 'own';

/** The servers of an instance. */
export type Versions = { readonly [S in VersionedServer]: (typeof VERSIONS)[S][number] | typeof OWN };

/** Settings that choose a version instead of a command option. */
export const VERSION_SETTINGS: Readonly<Record<VersionedServer, string>> = {
  mysql: 'SECKILL_MYSQL',
  redis: 'SECKILL_REDIS',
  rocketmq: 'SECKILL_ROCKETMQ',
};

/** Settings that name a custom server: a program, or the folder of the jars for RocketMQ. */
export const OWN_SERVERS: Readonly<Record<VersionedServer, string>> = {
  mysql: 'SECKILL_MYSQLD',
  redis: 'SECKILL_REDIS_SERVER',
  rocketmq: 'SECKILL_ROCKETMQ_LIB',
};

export const DEFAULT_VERSIONS: Versions = { mysql: 'mariadb-11.4', redis: '6.2', rocketmq: '5.4' };

/** Names for people. */
const NAMES: Readonly<Record<VersionedServer, string>> = { mysql: 'MySQL', redis: 'Redis', rocketmq: 'RocketMQ' };

/** Returns the command options that choose versions, each named after its server. */
export function versionOptions(): Option[] {
  return VERSIONED_SERVERS.map((server) => {
    const versions = `${NAMES[server]} at the first start of a folder (default: ${DEFAULT_VERSIONS[server]})`;
    return new Option(`--${server} <version>`, versions).choices(VERSIONS[server]);
  });
}

/** Returns the values of those options. */
export const chosenIn = ({ mysql, redis, rocketmq }: Partial<Versions>): Partial<Versions> =>
  withoutUndefined({ mysql, redis, rocketmq });

/**
 * Returns what command options and the environment ask for, possibly nothing. An option takes precedence over a custom
 * server, which takes precedence over a version setting.
 * @throws StackError for an unknown version
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

/** Returns only the custom servers. */
export const ownVersions = (env: NodeJS.ProcessEnv): Partial<Versions> =>
  Object.fromEntries(VERSIONED_SERVERS.filter((server) => env[OWN_SERVERS[server]]).map((server) => [server, OWN]));

/** Returns the requested versions with defaults. @throws StackError */
export const versionsIn = (env: NodeJS.ProcessEnv): Versions => ({ ...DEFAULT_VERSIONS, ...wantedVersions({}, env) });

/**
 * @param remembered the servers that wrote the data of an instance, or null without data
 * @throws StackError when another server is requested, because no server can be trusted with the data of another
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

/** Returns the server that a setting names. @throws StackError when the setting is empty or its file does not exist */
export function ownServer(server: VersionedServer, env: NodeJS.ProcessEnv): string {
  const setting = OWN_SERVERS[server];
  const path = env[setting];
  if (!path) throw new StackError(`This folder was made with your own ${NAMES[server]}; set ${setting} to its path.`);
  if (!existsSync(path)) throw new StackError(`${setting} names ${path}, which does not exist; correct or unset it.`);
  return path;
}
