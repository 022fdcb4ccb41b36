import { createHash } from 'node:crypto';
import { createConnection, type Connection } from 'mysql2/promise';
import knexFactory, { type Knex } from 'knex';
import { OperationalError } from '../core/errors.js';
import { toMysqlError } from './errors.js';
import { MIGRATIONS, type NamedMigration } from './migrations.js';
import { AppliedChanges, PlannedChanges, type ChangeOptions, type PlannedStatement } from './schema-changes.js';
import { connectFault, connectionOptions, type MysqlServer } from './server.js';

/** Connects as a user who may create tables. */
export interface MigrateOptions extends ChangeOptions, MysqlServer {
  /** How long to wait for another migrator, ms. Default 60000. */
  readonly lockWaitMs?: number;
  /** How long one attempt to change a table waits for open transactions. Writers wait behind it. Default: 3. */
  readonly tableWaitSeconds?: number;
}

/** `done` of `total` missing migrations. */
export interface MigrateProgress {
  readonly name: string;
  readonly done: number;
  readonly total: number;
}

export interface MigrationPlan {
  /** Lists migrations in order. A migration that was killed half-way has only its remaining statements. */
  readonly missing: readonly { readonly name: string; readonly statements: readonly PlannedStatement[] }[];
  /** Migrations of a later release, left after the program was rolled back. This release can run on them. */
  readonly newer: readonly string[];
}

const CONNECT_TIMEOUT_MS = 5000;
const LOCK_WAIT_MS_DEFAULT = 60_000;
const TABLE_WAIT_SECONDS_DEFAULT = 3;
/** Reads current table sizes. MySQL 8.0 and later cache a size for a day. MariaDB ignores such a comment. */
const FRESH_SIZES = ' /*!80000 , SESSION information_schema_stats_expiry = 0 */';
const APPLIED_TABLE = 'knex_migrations';

/**
 * Applies missing migrations and returns them. A second migrator waits for GET_LOCK, which dies with its connection,
 * and then finds nothing to do. The lock row of knex would outlive a killed migrator, so the holder of GET_LOCK frees
 * it. @throws OperationalError mysql
 */
export async function migrate(
  options: MigrateOptions,
  onProgress: (progress: MigrateProgress) => void = () => undefined,
): Promise<string[]> {
  const { lockWaitMs = LOCK_WAIT_MS_DEFAULT } = options;
  let connection: Connection | undefined;
  try {
    connection = await connected(options);
    await lock(connection, lockWaitMs);
    return await applyMissing(options, onProgress);
  } catch (error) {
    throw error instanceof OperationalError ? error : toMysqlError(error);
  } finally {
    connection?.destroy();
  }
}

/** Lists missing migrations, their SQL and the queries they block. Changes nothing. @throws OperationalError mysql */
export async function planMigrations(options: MigrateOptions): Promise<MigrationPlan> {
  (await connected(options)).destroy(); // the builder says less about a server that it cannot reach
  const knex = openKnex(options);
  try {
    const applied = (await knex.schema.hasTable(APPLIED_TABLE))
      ? ((await knex(APPLIED_TABLE).select('name').orderBy('id')) as { readonly name: string }[])
      : [];
    const done = new Set(applied.map(({ name }) => name));
    const missing: { name: string; statements: readonly PlannedStatement[] }[] = [];
    for (const { name, up } of MIGRATIONS) {
      if (done.delete(name)) continue;
      const changes = new PlannedChanges(knex, options);
      await up(changes);
      missing.push({ name, statements: changes.statements });
    }
    return { missing, newer: [...done] };
  } catch (error) {
    throw error instanceof OperationalError ? error : toMysqlError(error);
  } finally {
    await knex.destroy();
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
  const [databases] = await connection.query('SELECT DATABASE() AS name');
  const name = migrationLock((databases as { name: string }[])[0]?.name ?? '');
  const [rows] = await connection.query('SELECT GET_LOCK(?, ?) AS locked', [name, Math.ceil(waitMs / 1000)]);
  if ((rows as { locked: unknown }[])[0]?.locked !== 1) {
    throw new OperationalError('mysql', `another migration did not end within ${waitMs} ms`, { retryable: true });
  }
}

/** The name has at most 64 characters. Earlier releases let the server compute this hash, but MySQL 9 has no MD5(). */
export const migrationLock = (database: string): string =>
  `seckill.migrate.${createHash('md5').update(database).digest('hex')}`;

async function applyMissing(
  options: MigrateOptions,
  onProgress: (progress: MigrateProgress) => void,
): Promise<string[]> {
  const knex = openKnex(options);
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

/** Knex requires a down step. No command drops a table of orders. */
function refuseDown(): Promise<void> {
  return Promise.reject(new Error('migrations cannot be reverted; restore a backup instead'));
}

function openKnex(options: MigrateOptions): Knex {
  const { tableWaitSeconds = TABLE_WAIT_SECONDS_DEFAULT } = options;
  const silent = (): void => undefined;
  const migrationSource: Knex.MigrationSource<NamedMigration> = {
    getMigrations: () => Promise.resolve([...MIGRATIONS]),
    getMigrationName: ({ name }) => name,
    getMigration: async ({ up }) => ({
      up: (knex) => up(new AppliedChanges(knex, options)),
      down: refuseDown,
      config: { transaction: false },
    }),
  };
  const session = `SET SESSION time_zone = '+00:00', SESSION lock_wait_timeout = ${tableWaitSeconds}${FRESH_SIZES}`;
  return knexFactory({
    client: 'mysql2',
    // called for each connection, so that nothing of it is copied
    connection: () => ({ ...connectionOptions(options), timezone: 'Z', connectTimeout: CONNECT_TIMEOUT_MS }) as object,
    pool: {
      min: 0,
      max: 1,
      afterCreate: (
        raw: { query: (sql: string, done: (error: unknown) => void) => void },
        done: (e: unknown) => void,
      ) => raw.query(session, done),
    },
    // accepts a database that a later release has migrated, because migrations only add
    migrations: { migrationSource, disableTransactions: true, disableMigrationsListValidation: true },
    log: { warn: silent, error: silent, debug: silent, deprecate: silent },
  });
}
