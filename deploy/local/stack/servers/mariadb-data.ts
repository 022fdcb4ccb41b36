import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { userInfo } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { DATABASE, DATABASE_USER } from '../env.js';
import { runCommand } from '../run-command.js';
import { StackError } from '../stack-error.js';

/** Takes a second; a slow disk under load may need many. */
const INIT_TIMEOUT_MS = 120_000;

/** Where a mariadbd keeps its messages and its SQL for a first start. */
export interface MariadbHome {
  readonly baseDir: string;
  readonly shareDir: string;
}

/** Distributions have them in /usr/share/mysql or /usr/share/mariadb, the bundled server in share. */
const SHARE_FOLDERS = ['share', 'share/mysql', 'share/mariadb'];
/** The second name is that of MariaDB before 11. */
const SYSTEM_TABLES = ['mariadb_system_tables.sql', 'mysql_system_tables.sql'];

/** @throws StackError when the files around this mariadbd cannot be found */
export function findMariadbHome(mariadbd: string): MariadbHome {
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

export interface InitialiseOptions {
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
 * start that was cut off leaves nothing that looks like data.
 */
export async function initialiseMariadb(options: InitialiseOptions): Promise<void> {
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
