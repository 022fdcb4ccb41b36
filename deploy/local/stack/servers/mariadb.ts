import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { userInfo } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { loadConfig } from '../../../../src/core/config/load.js';
import { type CertificateFiles, certificateFiles } from '../certificates.js';
import { writeConf } from '../files.js';
import { probeMariadb } from '../probes.js';
import { runCommand } from '../run-command.js';
import { DATABASE, DATABASE_USER, ensureSecrets, readSecrets, stackEnv } from '../settings.js';
import { StackError } from '../stack-error.js';
import type { Instance, ServerSpec } from './server-spec.js';

export function mariadbSpec({ paths, ports, certificates = null }: Instance): ServerSpec {
  return {
    name: 'mariadb',
    label: 'MariaDB',
    portNames: ['mariadb'],
    startTimeoutMs: 120_000,
    stopTimeoutMs: 30_000,
    prepare: async ({ artifacts }, signal) => {
      const mariadbd = artifacts.mariadbd;
      const home = findMariadbHome(mariadbd);
      const confFile = paths.conf('mariadb.cnf');
      const initFile = paths.conf('mariadb-init.sql');
      mkdirSync(dirname(paths.mariadbSocket), { recursive: true });
      writeConf('mariadb.cnf', confFile, {
        mariadbPort: ports.mariadb,
        ...home,
        dataDir: paths.data('mariadb'),
        socket: paths.mariadbSocket,
        pidFile: paths.conf('mariadbd.pid'),
        tmpDir: paths.tmp('mariadb'),
        tls: tlsLines(certificates, { initFile, instanceDir: paths.dir }).join('\n'),
      });
      const needed = certificates === null ? 'NONE' : 'X509';
      writeFileSync(initFile, `ALTER USER '${DATABASE_USER}'@'127.0.0.1' REQUIRE ${needed};\n`);
      // it refuses to run as root unless an option says that this is meant
      const args = [`--defaults-file=${confFile}`, `--user=${userInfo().username}`];
      await initialiseMariadb({
        mariadbd,
        args,
        shareDir: home.shareDir,
        dataDir: paths.data('mariadb'),
        password: ensureSecrets(paths.secretsFile).mysqlPassword,
        logFile: paths.log('mariadb-init.log'),
        signal,
      });
      removeUnfinishedTcLog(paths.data('mariadb'));
      return { file: mariadbd, args };
    },
    probe: async () => {
      const secrets = readSecrets(paths.secretsFile);
      if (secrets === null) return 'it was never started';
      return probeMariadb(loadConfig(['mysql'], { ...stackEnv(ports, secrets, certificates) }).mysql);
    },
  };
}

/** @param initFile statements of each start: whether our user needs a certificate is stored with the user */
function tlsLines(
  certificates: CertificateFiles | null,
  { initFile, instanceDir }: { readonly initFile: string; readonly instanceDir: string },
): string[] {
  if (certificates === null) {
    const hadSome = existsSync(certificateFiles(instanceDir).server);
    return ['skip-ssl', ...(hadSome ? [`init-file = "${initFile}"`] : [])];
  }
  const { ca, server, serverKey } = certificates;
  return [
    `ssl-ca = "${ca}"`,
    `ssl-cert = "${server}"`,
    `ssl-key = "${serverKey}"`,
    'require_secure_transport = ON',
    `init-file = "${initFile}"`,
  ];
}

/** Takes a second; a slow disk under load may need many. */
const INIT_TIMEOUT_MS = 120_000;

/** Where a mariadbd keeps its messages and its SQL for a first start. */
interface MariadbHome {
  readonly baseDir: string;
  readonly shareDir: string;
}

/** Distributions have them in /usr/share/mysql or /usr/share/mariadb, the bundled server in share. */
const SHARE_FOLDERS = ['share', 'share/mysql', 'share/mariadb'];
/** The second name is that of MariaDB before 11. */
const SYSTEM_TABLES = ['mariadb_system_tables.sql', 'mysql_system_tables.sql'];

/** @throws StackError when the files around this mariadbd cannot be found */
function findMariadbHome(mariadbd: string): MariadbHome {
  const baseDir = dirname(dirname(realpathSync(mariadbd)));
  const shareDir = SHARE_FOLDERS.map((folder) => join(baseDir, folder)).find((dir) =>
    SYSTEM_TABLES.some((file) => existsSync(join(dir, file))),
  );
  if (shareDir === undefined) {
    throw new StackError(
      `${mariadbd} has no ${SYSTEM_TABLES[0]} in ${baseDir}/share; point MARIADBD_BIN at a whole MariaDB installation.`,
    );
  }
  return { baseDir, shareDir };
}

/** The statements of a first start, one a line: bootstrap mode reads line by line. */
export function initialSql(shareDir: string, password: string, osUser: string): string {
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

interface InitialiseOptions {
  readonly mariadbd: string;
  readonly args: readonly string[];
  readonly shareDir: string;
  readonly dataDir: string;
  readonly password: string;
  readonly logFile: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Makes the data folder, with our database and user, unless it exists. It gets its name only when it is complete, so a
 * start that was cut off leaves nothing that could be taken for data.
 */
async function initialiseMariadb(options: InitialiseOptions): Promise<void> {
  const { mariadbd, args, dataDir, logFile, signal } = options;
  if (existsSync(dataDir)) return;
  const prefix = `${basename(dataDir)}.part-`;
  mkdirSync(dirname(dataDir), { recursive: true });
  for (const entry of readdirSync(dirname(dataDir)).filter((name) => name.startsWith(prefix))) {
    rmSync(join(dirname(dataDir), entry), { recursive: true, force: true });
  }
  const draft = join(dirname(dataDir), `${prefix}${process.pid}`);
  mkdirSync(draft);
  try {
    const { exitCode, output } = await runCommand(mariadbd, [...args, `--datadir=${draft}`, '--bootstrap'], {
      timeoutMs: INIT_TIMEOUT_MS,
      input: initialSql(options.shareDir, options.password, userInfo().username),
      signal,
    });
    writeFileSync(logFile, output);
    if (exitCode !== 0) {
      const reason = /\bERROR\]?:? (.*)/.exec(output)?.[1] ?? `exit code ${exitCode}`;
      throw new StackError(`MariaDB could not make its data folder (${reason}); see ${logFile}.`);
    }
    renameSync(draft, dataDir);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
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
