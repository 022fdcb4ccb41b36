import { pause } from '../core/after.js';
import type { Knex } from 'knex';
import { OperationalError } from '../core/errors.js';

/** The column or index that a statement adds last. If it exists, the statement has been carried out. */
type Added = { readonly column: string } | { readonly index: string };

/** Changes the database, or only plans for `--dry-run`. MySQL commits each statement, so every step may be repeated. */
export interface SchemaChanges {
  /** Runs statements of the form `CREATE TABLE IF NOT EXISTS …`, which block no program. */
  create(...statements: readonly string[]): Promise<void>;
  /** Runs one `ALTER TABLE …`, all or nothing. @param added absent if the statement may be repeated */
  alter(table: string, statement: string, added?: Added): Promise<void>;
  /** Writes rows of a small table, with one statement. */
  write(table: string, statement: string): Promise<void>;
  /** Fills a table that may be large, window by window. @param statement the statement of each window, for people */
  fill(table: string, statement: string, work: (knex: Knex) => Promise<void>): Promise<void>;
}

/** Copying a table of this size takes a second or two, for which its writers may wait. */
const SMALL_TABLE_BYTES = 32 * 1024 ** 2;

export interface ChangeOptions {
  /** Maximum size of a table, with its indexes, whose writers may be blocked if the server cannot change it online. */
  readonly smallBytes?: number;
  /** Allows blocking for larger tables too. */
  readonly allowLocks?: boolean;
}

/** New writers queue behind a waiting change, so it gives up after `lock_wait_timeout` and tries again. */
const TRIES = 20;
const PAUSE_MS = 1000;

const LOCK_WAIT_TIMEOUT = 1205;
/** ER_ALTER_OPERATION_NOT_SUPPORTED and MySQL's ER_INNODB_MAX_ROW_VERSION (too many instant changes). */
const NOT_SUPPORTED = [1845, 1846, 4092];

/** First tries not to touch any row, then not to block writers. */
const ONLINE = [', ALGORITHM=INSTANT', ', LOCK=NONE'];

const hasErrno = (error: unknown, ...numbers: readonly number[]): boolean =>
  numbers.includes((error as { errno?: number }).errno ?? 0);

/** Changes tables online. If the server cannot, blocks the writers of small tables only. */
export class AppliedChanges implements SchemaChanges {
  readonly #knex: Knex;
  readonly #options: Required<ChangeOptions>;
  readonly #pause: () => Promise<unknown>;

  constructor(
    knex: Knex,
    { smallBytes = SMALL_TABLE_BYTES, allowLocks = false }: ChangeOptions = {},
    wait: () => Promise<unknown> = () => pause(PAUSE_MS),
  ) {
    this.#knex = knex;
    this.#options = { smallBytes, allowLocks };
    this.#pause = wait;
  }

  async create(...statements: readonly string[]): Promise<void> {
    for (const statement of statements) await this.#send(statement);
  }

  async alter(table: string, statement: string, added?: Added): Promise<void> {
    if (added !== undefined && (await isThere(this.#knex, table, added))) return;
    if (saysHow(statement)) return this.#send(statement);
    for (const how of ONLINE) {
      try {
        return await this.#send(statement + how);
      } catch (error) {
        if (!hasErrno(error, ...NOT_SUPPORTED)) throw error;
      }
    }
    const { allowLocks, smallBytes } = this.#options;
    const bytes = (await sizeOf(this.#knex, table))?.bytes ?? 0;
    if (bytes > smallBytes && !allowLocks) {
      throw new OperationalError(
        'mysql',
        `this server must lock ${table} (${megabytes(bytes)}) to change it; migrate again with --allow-locks while no sale runs`,
        { retryable: false },
      );
    }
    await this.#send(statement);
  }

  write(_table: string, statement: string): Promise<void> {
    return this.#send(statement);
  }

  fill(_table: string, _statement: string, work: (knex: Knex) => Promise<void>): Promise<void> {
    return work(this.#knex);
  }

  async #send(statement: string): Promise<void> {
    for (let tried = 1; ; tried++) {
      try {
        return void (await this.#knex.raw(statement));
      } catch (cause) {
        if (!hasErrno(cause, LOCK_WAIT_TIMEOUT)) throw cause;
        if (tried === TRIES) throw new OperationalError('mysql', IN_USE, { retryable: true, cause });
      }
      await this.#pause();
    }
  }
}

const IN_USE =
  'a long transaction (a backup or a report, see SHOW FULL PROCESSLIST) kept a table in use; end it and migrate again';

/**
 * Which programs wait for a statement.
 * - `none`: creates a table
 * - `short`: small table; writers wait while it is copied, if needed
 * - `online`: large table; no program waits, or `migrate` refuses
 * - `rows`: writes rows in short transactions, locks no table
 */
type Locks = 'none' | 'short' | 'online' | 'rows';

export interface PlannedStatement {
  readonly statement: string;
  readonly table: string;
  readonly locks: Locks;
  /** Number of rows of the table, as the server estimates it, or null if the table does not exist yet. */
  readonly rows: number | null;
  /** Size of the table with its indexes. */
  readonly bytes: number | null;
}

/** Records the changes that a migration would make. Changes nothing. */
export class PlannedChanges implements SchemaChanges {
  readonly statements: PlannedStatement[] = [];
  readonly #knex: Knex;
  readonly #smallBytes: number;

  constructor(knex: Knex, { smallBytes = SMALL_TABLE_BYTES }: ChangeOptions = {}) {
    this.#knex = knex;
    this.#smallBytes = smallBytes;
  }

  async create(...statements: readonly string[]): Promise<void> {
    for (const statement of statements) {
      const table = /^CREATE TABLE IF NOT EXISTS (\w+)/.exec(statement)?.[1] ?? '';
      if ((await sizeOf(this.#knex, table)) === null) await this.#note(table, statement, () => 'none');
    }
  }

  async alter(table: string, statement: string, added?: Added): Promise<void> {
    if (added !== undefined && (await isThere(this.#knex, table, added))) return;
    await this.#note(table, statement, (bytes) =>
      saysHow(statement) || bytes > this.#smallBytes ? 'online' : 'short',
    );
  }

  write(table: string, statement: string): Promise<void> {
    return this.#note(table, statement, () => 'rows');
  }

  fill(table: string, statement: string): Promise<void> {
    return this.#note(table, statement, () => 'rows');
  }

  async #note(table: string, statement: string, locksOf: (bytes: number) => Locks): Promise<void> {
    const size = await sizeOf(this.#knex, table);
    const locks = size === null ? 'none' : locksOf(size.bytes);
    this.statements.push({ statement, table, locks, rows: size?.rows ?? null, bytes: size?.bytes ?? null });
  }
}

/** Whether the statement tells the server to refuse if writers would have to wait. */
const saysHow = (statement: string): boolean => statement.includes('LOCK=NONE');

export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

/** Whether a column or index exists. False if the table is missing. */
async function isThere(knex: Knex, table: string, added: Added): Promise<boolean> {
  const [view, column, name] =
    'column' in added ? ['columns', 'column_name', added.column] : ['statistics', 'index_name', added.index];
  const [found] = (await knex.raw(
    'SELECT 1 FROM information_schema.?? WHERE table_schema = DATABASE() AND table_name = ? AND ?? = ? LIMIT 1',
    [view as string, table, column as string, name as string],
  )) as [unknown[]];
  return found.length > 0;
}

/** @returns null if the table does not exist */
async function sizeOf(knex: Knex, table: string): Promise<{ readonly rows: number; readonly bytes: number } | null> {
  const [[size]] = (await knex.raw(
    'SELECT table_rows AS row_count, data_length + index_length AS bytes FROM information_schema.tables' +
      ' WHERE table_schema = DATABASE() AND table_name = ?',
    [table],
  )) as [{ readonly row_count: number | null; readonly bytes: number | null }[]];
  return size === undefined ? null : { rows: Number(size.row_count), bytes: Number(size.bytes) };
}
