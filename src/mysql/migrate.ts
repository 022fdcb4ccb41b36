import { createHash } from 'node:crypto';
import { createConnection, type Connection } from 'mysql2/promise';
import knexFactory, { type Knex } from 'knex';
import { OperationalError } from '../core/errors.js';
import { toMysqlError } from './errors.js';
import { MIGRATIONS, type NamedMigration } from './migrations.js';
import { connectionOptions } from './pool.js';

export interface MigrateOptions {
  /** `mysql://user:password@host:port/database`; the user may create tables. */
  readonly url: string;
  /** How long to wait for another migrator. Default 60000. */
  readonly lockWaitMs?: number;
}

/** One migration has been applied, the `done`-th of `total` that were missing. */
export interface MigrateProgress {
  readonly name: string;
  readonly done: number;
  readonly total: number;
}

const CONNECT_TIMEOUT_MS = 5000;
const LOCK_WAIT_MS_DEFAULT = 60_000;

/**
 * Brings the schema up to date and says what it applied; nothing when it was. Two at once are safe: the second waits
 * and finds the work done. The lock is GET_LOCK, which dies with its connection, so a killed migrator blocks no other one;
 * the lock row of knex, which would outlive it, is freed by the holder of the real one.
 * @throws OperationalError mysql
 */
export async function migrate(
  { url, lockWaitMs = LOCK_WAIT_MS_DEFAULT }: MigrateOptions,
  onProgress: (progress: MigrateProgress) => void = () => undefined,
): Promise<string[]> {
  let connection: Connection | undefined;
  try {
    connection = await createConnection({ ...connectionOptions(url), connectTimeout: CONNECT_TIMEOUT_MS });
    await lock(connection, lockWaitMs);
    return await applyMissing(url, onProgress);
  } catch (error) {
    throw error instanceof OperationalError ? error : toMysqlError(error);
  } finally {
    connection?.destroy();
  }
}

async function lock(connection: Connection, waitMs: number): Promise<void> {
  const [databases] = await connection.query('SELECT DATABASE() AS name');
  const name = migrationLock((databases as { name: string }[])[0]?.name ?? '');
  const [rows] = await connection.query('SELECT GET_LOCK(?, ?) AS locked', [name, Math.ceil(waitMs / 1000)]);
  if ((rows as { locked: unknown }[])[0]?.locked !== 1) {
    throw new OperationalError('mysql', `another migration did not end within ${waitMs} ms`, { retryable: true });
  }
}

/**
 * A name of at most 64 characters, however long that of the database is. Earlier versions had the server hash it, so this is
 * the lock that a migrator of theirs takes; MySQL has no MD5() any more since 9.
 */
export const migrationLock = (database: string): string =>
  `seckill.migrate.${createHash('md5').update(database).digest('hex')}`;

async function applyMissing(url: string, onProgress: (progress: MigrateProgress) => void): Promise<string[]> {
  const knex = openKnex(url);
  try {
    await knex.migrate.forceFreeMigrationsLock();
    const [, missing] = (await knex.migrate.list()) as [unknown, NamedMigration[]];
    const applied: string[] = [];
    for (const { name } of missing) {
      await knex.migrate.up();
      applied.push(name);
      onProgress({ name, done: applied.length, total: missing.length });
    }
    return applied;
  } finally {
    await knex.destroy();
  }
}

/** Knex wants one; a table of orders is not dropped by a command. */
function refuseDown(): Promise<void> {
  return Promise.reject(new Error('the schema only goes forward; to go back, restore a backup'));
}

function openKnex(url: string): Knex {
  const silent = (): void => undefined;
  const migrationSource: Knex.MigrationSource<NamedMigration> = {
    getMigrations: () => Promise.resolve([...MIGRATIONS]),
    getMigrationName: ({ name }) => name,
    getMigration: ({ up }) => Promise.resolve({ up, down: refuseDown, config: { transaction: false } }),
  };
  return knexFactory({
    client: 'mysql2',
    connection: { ...connectionOptions(url), timezone: 'Z', connectTimeout: CONNECT_TIMEOUT_MS },
    pool: {
      min: 0,
      max: 1,
      afterCreate: (
        raw: { query: (sql: string, done: (error: unknown) => void) => void },
        done: (e: unknown) => void,
      ) => raw.query("SET SESSION time_zone = '+00:00'", done),
    },
    migrations: { migrationSource, disableTransactions: true },
    log: { warn: silent, error: silent, debug: silent, deprecate: silent },
  });
}
