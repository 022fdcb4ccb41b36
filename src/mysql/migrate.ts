import { createConnection, type Connection } from 'mysql2/promise';
import knexFactory, { type Knex } from 'knex';
import { OperationalError } from '../core/errors.js';
import { toMysqlError } from './errors.js';
import { MIGRATIONS, type NamedMigration } from './migrations.js';
import { connectFault, connectionOptions, type MysqlServer } from './server.js';

/** The user may create tables. */
export interface MigrateOptions extends MysqlServer {
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
  { lockWaitMs = LOCK_WAIT_MS_DEFAULT, ...server }: MigrateOptions,
  onProgress: (progress: MigrateProgress) => void = () => undefined,
): Promise<string[]> {
  let connection: Connection | undefined;
  try {
    connection = await connected(server);
    await lock(connection, lockWaitMs);
    return await applyMissing(server, onProgress);
  } catch (error) {
    throw error instanceof OperationalError ? error : toMysqlError(error);
  } finally {
    connection?.destroy();
  }
}

async function connected(server: MysqlServer): Promise<Connection> {
  try {
    return await createConnection({ ...connectionOptions(server), connectTimeout: CONNECT_TIMEOUT_MS });
  } catch (error) {
    throw connectFault(error, server);
  }
}

async function lock(connection: Connection, waitMs: number): Promise<void> {
  const name = "CONCAT('seckill.migrate.', MD5(DATABASE()))";
  const sql = `SELECT GET_LOCK(${name}, ${Math.ceil(waitMs / 1000)}) AS locked`;
  const [rows] = await connection.query(sql);
  if ((rows as { locked: unknown }[])[0]?.locked !== 1) {
    throw new OperationalError('mysql', `another migration did not end within ${waitMs} ms`, { retryable: true });
  }
}

async function applyMissing(server: MysqlServer, onProgress: (progress: MigrateProgress) => void): Promise<string[]> {
  const knex = openKnex(server);
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

function openKnex(server: MysqlServer): Knex {
  const silent = (): void => undefined;
  const migrationSource: Knex.MigrationSource<NamedMigration> = {
    getMigrations: () => Promise.resolve([...MIGRATIONS]),
    getMigrationName: ({ name }) => name,
    getMigration: ({ up }) => Promise.resolve({ up, down: refuseDown, config: { transaction: false } }),
  };
  return knexFactory({
    client: 'mysql2',
    // asked for with each connection, so that nothing of it is copied
    connection: () => ({ ...connectionOptions(server), timezone: 'Z', connectTimeout: CONNECT_TIMEOUT_MS }) as object,
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
