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

/** Makes configuration and, at the first start, the data folder of a MariaDB. @returns how it is started */
export async function prepareMariadb(
  { paths, ports, certificates = null }: Instance,
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
  });
  writeFileSync(initFile, userSql(certificates));
  // it refuses to run as root unless an option says that this is meant
  const args = [`--defaults-file=${confFile}`, `--user=${userInfo().username}`];
  const password = ensureSecrets(paths.secretsFile).mysqlPassword;
  await makeDataFolder(paths.data('mariadb'), async (draft) => {
    const { exitCode, output } = await runCommand(mariadbd, [...args, `--datadir=${draft}`, '--bootstrap'], {
      timeoutMs: FIRST_START_MAX_MS,
      input: initialSql(home.shareDir, password, userInfo().username),
      signal,
    });
    const logFile = paths.log('mariadb-init.log');
    writeFileSync(logFile, output);
    if (exitCode === 0) return;
    const reason = /\bERROR\]?:? (.*)/.exec(output)?.[1] ?? `exit code ${exitCode}`;
    throw new StackError(`MariaDB could not make its data folder (${reason}); see ${logFile}.`);
  });
  removeUnfinishedTcLog(paths.data('mariadb'));
  const changesUser = certificates !== null || existsSync(certificateFiles(paths.dir).server);
  return { file: mariadbd, args: changesUser ? [...args, `--init-file=${initFile}`] : args };
}

/** Of a server that takes connections by TLS only; MySQL has the same names. */
export const tlsLines = ({ ca, server, serverKey }: CertificateFiles): string[] => [
  `ssl-ca = "${ca}"`,
  `ssl-cert = "${server}"`,
  `ssl-key = "${serverKey}"`,
  'require_secure_transport = ON',
];

/** Whether our user needs a certificate is stored with the user, so it is said at each start. */
export const userSql = (certificates: CertificateFiles | null): string =>
  `ALTER USER '${DATABASE_USER}'@'127.0.0.1' REQUIRE ${certificates === null ? 'NONE' : 'X509'};\n`;

/** Takes a second or two; a slow disk under load may need many. */
export const FIRST_START_MAX_MS = 120_000;

/** Where a server keeps its messages, and a MariaDB its SQL for a first start. */
interface ServerHome {
  readonly baseDir: string;
  readonly shareDir: string;
}

/** Distributions have them in /usr/share/mysql or /usr/share/mariadb, the bundled servers in share. */
const SHARE_FOLDERS = ['share', 'share/mysql', 'share/mariadb', 'usr/share/mysql'];
/** The second name is that of MariaDB before 11. */
const SYSTEM_TABLES = ['mariadb_system_tables.sql', 'mysql_system_tables.sql'];

/**
 * @param files of which the folder must have one
 * @throws StackError when the files around this program cannot be found
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

/** The statements of a first start, one a line: bootstrap mode reads line by line. */
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
    // databases of tests, e.g. seckill_test_1
    `GRANT ALL ON \`${DATABASE}\\_%\`.* TO '${DATABASE_USER}'@'127.0.0.1';`,
    '',
  ].join('\n');
}

/** `log_tc_size` of MariaDB, which grows the file to this size before anything else. */
const SIZE_MIN_BYTES = 24 * 1024;
/** `tc_log_magic` in sql/log.cc, written before the first entry. */
const MAGIC = Buffer.from([254, 0x23, 0x05, 0x74]);

/**
 * Removes a tc.log that was never finished: a disk that filled up, or a kill -9, in the instant of its making. MariaDB
 * would refuse to start for ever, though such a file cannot hold an entry. A finished one stays: recovery needs it.
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
    return false; // there is none: MariaDB ended in peace
  }
  try {
    const head = Buffer.alloc(MAGIC.length);
    readSync(file, head, 0, head.length, 0);
    return fstatSync(file).size < SIZE_MIN_BYTES || !head.equals(MAGIC);
  } finally {
    closeSync(file);
  }
}
