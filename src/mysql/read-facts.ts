import { judgeWitness } from '../core/doctor/mysql-checks.js';
import type { MysqlFacts, MysqlStartFacts, ReplicationFacts, WitnessFacts } from '../core/doctor/mysql-checks.js';
import { MysqlError } from './errors.js';
import { nextEventOf } from './lost-tail.js';
import { MIGRATIONS } from './migrations.js';
import type { MysqlPool, Statements } from './pool.js';
import { TABLE_NAMES } from './tables.js';

// Only reads, and only data that every user may read. Written as SQL, because the builder knows neither SHOW nor the
// server's own tables.

type On = Statements;

export interface MysqlSays extends Omit<
  MysqlFacts,
  'reach' | 'disk' | 'programs' | 'published' | 'poolMax' | 'witness'
> {
  readonly dataDir: string;
}

const START_VARIABLES = [
  ...['transaction_isolation', 'tx_isolation', 'sql_mode', 'time_zone', 'max_allowed_packet'],
  ...['log_bin', 'binlog_format'],
];
const BINLOG_VARIABLES = [
  ...['binlog_format', 'binlog_row_image', 'binlog_row_metadata'],
  ...['binlog_transaction_compression', 'binlog_row_value_options'],
];
const VARIABLES = [
  ...START_VARIABLES,
  ...BINLOG_VARIABLES,
  ...['version', 'version_comment', 'read_only', 'innodb_flush_log_at_trx_commit', 'sync_binlog'],
  ...['max_connections', 'max_user_connections', 'datadir'],
  // names in MySQL, then in MariaDB and in MySQL before 8.0.26
  ...['rpl_semi_sync_source_enabled', 'rpl_semi_sync_source_wait_point'],
  ...['rpl_semi_sync_master_enabled', 'rpl_semi_sync_master_wait_point'],
];

/** Only our tables, because the user may have other tables in the same database. */
const OURS = 'table_schema = DATABASE() AND table_name IN (?)';
const LOOSE_COLLATIONS = `SELECT CONCAT(table_name, '.', column_name, ' ', collation_name) AS found
  FROM information_schema.columns WHERE ${OURS} AND RIGHT(collation_name, 4) <> '_bin' ORDER BY found`;
const OTHER_ENGINES = `SELECT CONCAT(table_name, ' ', engine) AS found
  FROM information_schema.tables WHERE ${OURS} AND engine <> 'InnoDB' ORDER BY found`;

/** Facts that a program checks before it writes orders. A database without tables has no flaws. @throws MysqlError */
export const readMysqlStartFacts = async (on: MysqlPool): Promise<MysqlStartFacts> =>
  startFactsOf(on, await variablesOf(on, START_VARIABLES));

/** All facts that may reveal a problem. @throws MysqlError */
export async function readMysqlFacts(on: MysqlPool): Promise<MysqlSays> {
  const variables = await variablesOf(on, VARIABLES);
  const [cipher] = await on.query<{ Value: string }>("SHOW SESSION STATUS LIKE 'Ssl_cipher'");
  return {
    ...(await startFactsOf(on, variables)),
    ...(await witnessFactsOf(on, variables)),
    version: variables.version ?? '',
    versionComment: variables.version_comment ?? '',
    cipher: cipher === undefined || cipher.Value === '' ? null : cipher.Value,
    skewMs: await skewOf(on),
    readOnly: isOn(variables.read_only),
    flushAtCommit: Number(variables.innodb_flush_log_at_trx_commit),
    syncBinlog: Number(variables.sync_binlog),
    replication: await replicationOf(on, variables),
    maxConnections: Number(variables.max_connections),
    maxUserConnections: Number(variables.max_user_connections),
    nextEvent: await nextEventOf(on),
    ...(await migrationsOf(on)),
    dataDir: variables.datadir ?? '',
  };
}

/** Says why the binary log cannot be followed, and what to do. Null if it can be followed. @throws MysqlError */
export async function binlogProblem(on: MysqlPool): Promise<string | null> {
  const judged = judgeWitness(await witnessFactsOf(on, await variablesOf(on, ['log_bin', ...BINLOG_VARIABLES])));
  return judged.verdict === 'wrong' ? `${judged.says} ${judged.todo}` : null;
}

type Variables = Readonly<Record<string, string | undefined>>;

async function startFactsOf(on: MysqlPool, variables: Variables): Promise<MysqlStartFacts> {
  return {
    isolation: variables.transaction_isolation ?? variables.tx_isolation ?? '',
    sqlMode: (variables.sql_mode ?? '').split(','),
    timeZone: variables.time_zone ?? '',
    maxAllowedPacket: Number(variables.max_allowed_packet),
    logBin: isOn(variables.log_bin),
    binlogFormat: variables.binlog_format ?? '',
    looseCollations: await foundBy(on, LOOSE_COLLATIONS),
    otherEngines: await foundBy(on, OTHER_ENGINES),
    skipsLocked: await skipsLocked(on),
  };
}

async function witnessFactsOf(on: MysqlPool, variables: Variables): Promise<WitnessFacts> {
  const [account] = await on.query<{ name: string }>('SELECT CURRENT_USER() AS name');
  return {
    logBin: isOn(variables.log_bin),
    binlog: Object.fromEntries(BINLOG_VARIABLES.map((name) => [name, variables[name]?.toUpperCase()])),
    user: account?.name ?? '',
    globalRights: await globalRightsOf(on),
  };
}

/** Locks a row of the migrations, which no program locks for long, and reads it in a second session. */
async function skipsLocked(pool: MysqlPool): Promise<boolean | null> {
  try {
    return await pool.transaction(async (tx) => {
      const [row] = await tx.query<{ id: number }>(`${MIGRATION_IDS} ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED`);
      if (row === undefined) return null; // no tables yet, or another program is running this check
      const again = await pool.query(`${MIGRATION_IDS} WHERE id = ? FOR UPDATE SKIP LOCKED`, [row.id]);
      return again.length === 0;
    });
  } catch (error) {
    if (error instanceof MysqlError) return null; // no table or second connection, or read-only: see other checks
    throw error;
  }
}

/** Reads variables of our session, and variables of the server that a session does not have. */
async function variablesOf(on: On, names: readonly string[]): Promise<Variables> {
  const sql = 'SHOW SESSION VARIABLES WHERE Variable_name IN (?)';
  const rows = await on.query<{ Variable_name: string; Value: string }>(sql, [names]);
  return Object.fromEntries(rows.map(({ Variable_name: name, Value: value }) => [name, value]));
}

const STATUS = `SHOW GLOBAL STATUS WHERE Variable_name IN
  ('Slaves_connected', 'Rpl_semi_sync_source_status', 'Rpl_semi_sync_source_clients',
   'Rpl_semi_sync_master_status', 'Rpl_semi_sync_master_clients')`;

/** Reads what every user may read. MySQL, unlike MariaDB, only shows them the number of semi-synchronous replicas. */
async function replicationOf(on: On, variables: Variables): Promise<ReplicationFacts> {
  const rows = await on.query<{ Variable_name: string; Value: string }>(STATUS);
  const status = new Map(rows.map(({ Variable_name: name, Value: value }) => [name.toLowerCase(), value]));
  const named = (end: string): string | undefined =>
    variables[`rpl_semi_sync_source_${end}`] ?? variables[`rpl_semi_sync_master_${end}`];
  const counted = (end: string): string | undefined =>
    status.get(`rpl_semi_sync_source_${end}`) ?? status.get(`rpl_semi_sync_master_${end}`);
  const connected = status.get('slaves_connected');
  return {
    replicas: isOn(variables.log_bin) ? (connected === undefined ? null : Number(connected)) : 0,
    semiSync: isOn(named('enabled'))
      ? {
          waitPoint: named('wait_point') ?? '',
          waitsNow: isOn(counted('status')),
          replicas: Number(counted('clients') ?? 0),
        }
      : null,
  };
}

const isOn = (value = 'OFF'): boolean => value !== 'OFF' && value !== '0';

const foundBy = async (on: On, sql: string): Promise<string[]> =>
  (await on.query<{ found: string }>(sql, [TABLE_NAMES])).map(({ found }) => found);

/** Returns our clock minus the clock of MySQL, ms. */
async function skewOf(on: On): Promise<number> {
  const startedMs = Date.now();
  const mysqlMs = await readMysqlClock(on);
  return Math.round((startedMs + Date.now()) / 2 - mysqlMs);
}

/** Reads the clock of MySQL, Unix ms. @throws MysqlError */
export async function readMysqlClock(on: On): Promise<number> {
  const [row] = await on.query<{ ms: string }>('SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED) AS ms');
  return Number(row?.ms);
}

/** The text after `TO` may contain the hash of a password. */
const GLOBAL_GRANT = /^GRANT (.+?) ON \*\.\* TO /;

async function globalRightsOf(on: On): Promise<string[]> {
  const grants = (await on.query<Readonly<Record<string, string>>>('SHOW GRANTS')).flatMap((row) => Object.values(row));
  const rights = grants.flatMap((grant) => GLOBAL_GRANT.exec(grant)?.[1]?.split(/, */) ?? []);
  return [...new Set(rights)].filter((right) => right !== 'USAGE');
}

const MIGRATION_IDS = 'SELECT id FROM knex_migrations';
const APPLIED = 'SELECT name FROM knex_migrations';

async function migrationsOf(on: On): Promise<Pick<MysqlFacts, 'missingMigrations' | 'unknownMigrations'>> {
  const applied = new Set(await appliedOn(on));
  const known = new Set(MIGRATIONS.map(({ name }) => name));
  return {
    missingMigrations: [...known].filter((name) => !applied.has(name)),
    unknownMigrations: [...applied].filter((name) => !known.has(name)),
  };
}

/** Reads the applied migrations. Before the first migration, the table does not exist. */
async function appliedOn(on: On): Promise<string[]> {
  try {
    return (await on.query<{ name: string }>(APPLIED)).map(({ name }) => name);
  } catch (error) {
    if (error instanceof MysqlError && error.kind === 'schema') return [];
    throw error;
  }
}
