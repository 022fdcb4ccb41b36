import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { type CertificateFiles, certificateFiles } from '../certificates.js';
import { makeDataFolder, writeConf } from '../files.js';
import { runCommand } from '../run-command.js';
import { DATABASE, DATABASE_USER, ensureSecrets } from '../settings.js';
import { StackError } from '../stack-error.js';
import type { Instance, LaunchCommand } from './server-spec.js';

/** Makes the configuration and, at the first start, the data folder of a MariaDB. @returns the start command */
export async function prepareMariadb(
  { paths, ports, serverId, certificates = null }: Instance,
  mariadbd: string,
  signal?: AbortSignal,
): Promise<LaunchCommand> {
  const home = findHome(mariadbd, SYSTEM_TABLES);
  const confFile = paths.conf('mariadb.cnf');
  const initFile = paths.conf('mariadb-init.sql');
  writeConf('mariadb.cnf', confFile, {
    mysqlPort: ports.mysql,
    ...home,
    dataDir: paths.data('mariadb'),
    socket: paths.mysqlSocket,
    pidFile: paths.conf('mariadbd.pid'),
    tmpDir: paths.tmp('mysql'),
    tls: (certificates === null ? ['skip-ssl'] : tlsLines(certificates)).join('\n'),
    binlog: binlogLines(serverId).join('\n'),
  });
  writeFileSync(initFile, userSql(certificates) + followerSql(serverId));
  // MariaDB refuses to run as root without an explicit option
  const args = [`--defaults-file=${confFile}`, `--user=${userInfo().username}`];
  const password = ensureSecrets(paths.secretsFile).mysqlPassword;
  await makeDataFolder(paths.data('mariadb'), async (draft) => {
    const { exitCode, output } = await runCommand(
      mariadbd,
      [...args, `--datadir=${draft}`, '--bootstrap', '--skip-log-bin'],
      {
        timeoutMs: FIRST_START_MAX_MS,
        input: initialSql(home.shareDir, password, userInfo().username),
        signal,
      },
    );
    const logFile = paths.log('mariadb-init.log');
    writeFileSync(logFile, output);
    if (exitCode === 0) return;
    const reason = /\bERROR\]?:? (.*)/.exec(output)?.[1] ?? `exit code ${exitCode}`;
    throw new StackError(`MariaDB could not create its data folder (${reason}); see ${logFile}.`);
  });
  removeUnfinishedTcLog(paths.data('mariadb'));
  const changesUser = serverId !== undefined || certificates !== null || existsSync(certificateFiles(paths.dir).server);
  return { file: mariadbd, args: changesUser ? [...args, `--init-file=${initFile}`] : args };
}

/** Configuration of a server that only accepts TLS. MySQL uses the same names. */
export const tlsLines = ({ ca, server, serverKey }: CertificateFiles): string[] => [
  `ssl-ca = "${ca}"`,
  `ssl-cert = "${server}"`,
  `ssl-key = "${serverKey}"`,
  'require_secure_transport = ON',
];

/** Configuration of the binary log. MySQL uses the same names. */
export const binlogLines = (serverId: number | undefined): string[] =>
  serverId === undefined
    ? ['skip-log-bin']
    : [
        ...[`server-id = ${serverId}`, 'log-bin = binlog', 'sync_binlog = 1'],
        ...['binlog_format = ROW', 'binlog_row_metadata = FULL'],
      ];

/** Returns SQL that stores with our user whether it needs a certificate. Runs at each start. */
export const userSql = (certificates: CertificateFiles | null): string =>
  `ALTER USER '${DATABASE_USER}'@'127.0.0.1' REQUIRE ${certificates === null ? 'NONE' : 'X509'};\n`;

/** Returns SQL that lets our user follow the binary log. A replica of this server does not get it. */
export const followerSql = (serverId: number | undefined): string =>
  serverId === undefined
    ? ''
    : `SET SESSION sql_log_bin = 0;\nGRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '${DATABASE_USER}'@'127.0.0.1';\n`;

/** The first start takes a second or two, and many seconds on a slow disk under load. */
export const FIRST_START_MAX_MS = 120_000;

/** Location of a server's messages and of a MariaDB's SQL for a first start. */
interface ServerHome {
  readonly baseDir: string;
  readonly shareDir: string;
}

/** Distributions use /usr/share/mysql or /usr/share/mariadb, the bundled servers share. */
const SHARE_FOLDERS = ['share', 'share/mysql', 'share/mariadb', 'usr/share/mysql'];
/** MariaDB before 11 uses the second name. */
const SYSTEM_TABLES = ['mariadb_system_tables.sql', 'mysql_system_tables.sql'];

/**
 * @param files the folder must have one of these files
 * @throws StackError when the files of this program cannot be found
 */
export function findHome(program: string, files: readonly string[]): ServerHome {
  const root = dirname(dirname(realpathSync(program)));
  const share = SHARE_FOLDERS.find((folder) => files.some((file) => existsSync(join(root, folder, file))));
  if (share === undefined) {
    throw new StackError(
      `${program} has no ${files[0]} in ${root}/share; point SECKILL_MYSQLD at a whole installation of its server.`,
    );
  }
  return { baseDir: join(root, share.startsWith('usr/') ? 'usr' : ''), shareDir: join(root, share) };
}

/** Returns the statements of a first start, one per line, because bootstrap mode reads line by line. */
function initialSql(shareDir: string, password: string, osUser: string): string {
  const read = (part: string): string => {
    const file = [`mariadb_${part}.sql`, `mysql_${part}.sql`].map((name) => join(shareDir, name)).find(existsSync);
    return file === undefined ? '' : readFileSync(file, 'utf8');
  };
  return [
    'CREATE DATABASE mysql;',
    'USE mysql;',
    // the only administrator: the system user who runs the server, over the unix socket, without a password
    `SET @auth_root_socket = '${osUser}';`,
    'SET @skip_auth_anonymous = 1;',
    read('system_tables'),
    read('performance_tables'),
    read('system_tables_data'),
    `CREATE DATABASE ${DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;`,
    'FLUSH PRIVILEGES;',
    `CREATE USER '${DATABASE_USER}'@'127.0.0.1' IDENTIFIED BY '${password}';`,
    `GRANT ALL ON \`${DATABASE}\`.* TO '${DATABASE_USER}'@'127.0.0.1';`,
    // test databases, e.g. seckill_test_1
    `GRANT ALL ON \`${DATABASE}\\_%\`.* TO '${DATABASE_USER}'@'127.0.0.1';`,
    '',
  ].join('\n');
}

/** `log_tc_size` of MariaDB, which first grows the file to this size. */
const SIZE_MIN_BYTES = 24 * 1024;
/** `tc_log_magic` in sql/log.cc, written before the first entry. */
const MAGIC = Buffer.from([254, 0x23, 0x05, 0x74]);

/**
 * Removes an unfinished tc.log, which a full disk or a kill -9 leaves while the file is being made. MariaDB would
 * refuse to start forever, although such a file cannot hold an entry. Keeps a finished file, which recovery needs.
 */
export function removeUnfinishedTcLog(dataDir: string): void {
  const path = join(dataDir, 'tc.log');
  if (isUnfinished(path)) rmSync(path);
}

function isUnfinished(path: string): boolean {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch {
    return false; // no file: MariaDB shut down cleanly
  }
  try {
    const head = Buffer.alloc(MAGIC.length);
    readSync(file, head, 0, head.length, 0);
    return fstatSync(file).size < SIZE_MIN_BYTES || !head.equals(MAGIC);
  } finally {
    closeSync(file);
  }
}
