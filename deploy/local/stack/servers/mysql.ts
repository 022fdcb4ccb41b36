import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname } from 'node:path';
import { loadConfig } from '../../../../src/core/config/load.js';
import { makeDataFolder, writeConf } from '../files.js';
import { probeMysql } from '../probes.js';
import { runCommand, versionOf } from '../run-command.js';
import { DATABASE, DATABASE_USER, ensureSecrets, readSecrets, stackEnv } from '../settings.js';
import { StackError } from '../stack-error.js';
import { OWN } from '../versions.js';
import {
  binlogLines,
  findHome,
  FIRST_START_MAX_MS,
  followerSql,
  prepareMariadb,
  tlsLines,
  userSql,
} from './mariadb.js';
import type { Instance, LaunchCommand, ServerSpec } from './server-spec.js';

/** Describes the server of orders, MySQL or MariaDB, each with its own configuration and data folder. */
export function mysqlSpec(instance: Instance): ServerSpec {
  const { paths, ports, versions, certificates = null } = instance;
  return {
    name: 'mysql',
    label: isMariadbVersion(versions.mysql) ? 'MariaDB' : 'MySQL',
    portNames: ['mysql'],
    startTimeoutMs: 120_000,
    stopTimeoutMs: 30_000,
    prepare: async ({ artifacts: { mysqld } }, signal) => {
      mkdirSync(dirname(paths.mysqlSocket), { recursive: true });
      const isMariadb = versions.mysql === OWN ? await isMariadbProgram(mysqld) : isMariadbVersion(versions.mysql);
      return (isMariadb ? prepareMariadb : prepareMysql)(instance, mysqld, signal);
    },
    probe: async () => {
      const secrets = readSecrets(paths.secretsFile);
      if (secrets === null) return 'it was never started';
      return probeMysql(loadConfig(['mysql'], { ...stackEnv(ports, secrets, certificates) }).mysql);
    },
  };
}

const isMariadbVersion = (version: string): boolean => version.startsWith('mariadb');

async function isMariadbProgram(mysqld: string): Promise<boolean> {
  const version = await versionOf(mysqld, '--version');
  if (version?.exitCode === 0) return /mariadb/i.test(version.output);
  throw new StackError(`${mysqld} does not print its version; correct SECKILL_MYSQLD.`);
}

/** MySQL 8.0 and later has one of these message files. */
const MESSAGES = ['english/errmsg.sys', 'messages_to_clients.txt'];

async function prepareMysql(
  { paths, ports, serverId, certificates = null }: Instance,
  mysqld: string,
  signal?: AbortSignal,
): Promise<LaunchCommand> {
  const confFile = paths.conf('mysql.cnf');
  writeConf('mysql.cnf', confFile, {
    mysqlPort: ports.mysql,
    ...findHome(mysqld, MESSAGES),
    dataDir: paths.data('mysql'),
    socket: paths.mysqlSocket,
    pidFile: paths.conf('mysqld.pid'),
    tmpDir: paths.tmp('mysql'),
    tls: (certificates === null ? [] : tlsLines(certificates)).join('\n'),
    binlog: binlogLines(serverId).join('\n'),
  });
  // MySQL refuses to run as root without an explicit option
  const args = [`--defaults-file=${confFile}`, `--user=${userInfo().username}`];
  await makeDataFolder(paths.data('mysql'), async (draft) => {
    const { exitCode, output } = await runCommand(mysqld, [...args, `--datadir=${draft}`, '--initialize-insecure'], {
      timeoutMs: FIRST_START_MAX_MS,
      signal,
    });
    const logFile = paths.log('mysql-init.log');
    writeFileSync(logFile, output);
    if (exitCode === 0) return;
    const reason = /\[ERROR\] (.*)/.exec(output)?.[1] ?? `exit code ${exitCode}`;
    throw new StackError(`MySQL could not create its data folder (${reason}); see ${logFile}.`);
  });
  rmSync(`${paths.mysqlSocket}.lock`, { force: true }); // after a kill -9 the file names a pid that another process may have now
  const initFile = paths.conf('mysql-init.sql');
  const sql = startSql(ensureSecrets(paths.secretsFile).mysqlPassword) + userSql(certificates) + followerSql(serverId);
  writeFileSync(initFile, sql, { mode: 0o600 });
  return { file: mysqld, args: [...args, `--init-file=${initFile}`] };
}

/**
 * Returns the statements that MySQL runs at each start before it serves, one per line, because MySQL knows no users
 * while it makes its data folder. Before them, the administrator has no password. `localhost` is the socket, since
 * names are not resolved.
 */
const startSql = (password: string): string =>
  [
    `ALTER USER 'root'@'localhost' IDENTIFIED BY '${password}';`,
    `CREATE DATABASE IF NOT EXISTS ${DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;`,
    `CREATE USER IF NOT EXISTS '${DATABASE_USER}'@'127.0.0.1' IDENTIFIED BY '${password}';`,
    `GRANT ALL ON \`${DATABASE}\`.* TO '${DATABASE_USER}'@'127.0.0.1';`,
    // test databases, e.g. seckill_test_1
    `GRANT ALL ON \`${DATABASE}\\_%\`.* TO '${DATABASE_USER}'@'127.0.0.1';`,
    '',
  ].join('\n');
