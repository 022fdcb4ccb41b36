import { createPool, type Pool, type PoolConnection, type ResultSetHeader } from 'mysql2';
import { CELL_STEP } from '../core/cell.js';
import { MysqlError, type MysqlErrorKind, toMysqlError } from './errors.js';
import { connectFault, connectionOptions, type MysqlServer, passwordOf } from './server.js';

export interface MysqlOptions extends MysqlServer {
  /** Maximum number of connections of this process. If all are in use, callers wait. */
  readonly poolMax: number;
  /** Time limit of a statement. Must be longer than `lockWaitSeconds`. */
  readonly queryTimeoutMs: number;
  /** Default: 3000. */
  readonly connectTimeoutMs?: number;
  /** How long a caller waits for a free connection. Default: 5000. */
  readonly poolWaitMs?: number;
  /** How long a statement waits for a row that another transaction has locked. In whole seconds; default: 5. */
  readonly lockWaitSeconds?: number;
  /**
   * After this time the server drops a silent connection and frees its locks, so that a stopped process blocks no other
   * (M10). Unused connections close after half of it. In whole seconds. Default: 20.
   */
  readonly silentSeconds?: number;
  /** The cell whose sales this database holds. Default: 0, which means that there are no cells. */
  readonly cell?: number;
  /** If true, the server refuses every write of this pool. Default: false. */
  readonly isReadOnly?: boolean;
  /** Called once per new connection. Returns a sentence why this server is unfit, or null. */
  readonly flawOf?: (session: Statements) => Promise<string | null>;
  /** Called with the time that each caller waited for a connection, ms. */
  readonly onWait?: (waitedMs: number) => void;
}

export type SqlValue = string | number | boolean | null | Date | readonly string[] | readonly number[];

interface Written {
  /** Number of changed rows. A row that was found but stays the same does not count. */
  readonly affectedRows: number;
  /** The assigned AUTO_INCREMENT id, in decimal. */
  readonly insertId: string;
}

/** `?` is replaced by an escaped value. BIGINT comes back as a string, DATETIME as a Date. */
export interface Statements {
  /** @throws MysqlError */
  query<Row>(sql: string, values?: readonly SqlValue[]): Promise<Row[]>;
  /** @throws MysqlError */
  execute(sql: string, values?: readonly SqlValue[]): Promise<Written>;
}

export interface Transaction extends Statements {
  /** Undoes everything. The work may return afterwards, but nothing is committed. */
  rollback(): Promise<void>;
}

export interface MysqlPool extends Statements {
  /** Runs in READ COMMITTED. @throws MysqlError; an error of COMMIT proves nothing, because the rows may be there */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** Resolves if the server answers. @throws MysqlError */
  probe(): Promise<void>;
  /** Returns why the server recently refused a write, as a sentence, or null. Such a server may still answer reads. */
  writeRefusal(): string | null;
  /** Waits for statements under way, then closes every connection. */
  close(): Promise<void>;
}

type Result = ResultSetHeader | unknown[];

/** The first statement opens the first connection. */
export function openMysqlPool(options: MysqlOptions): MysqlPool {
  return new Connections(options);
}

class Connections implements MysqlPool {
  readonly #pool: Pool;
  readonly #server: MysqlServer;
  readonly #queryTimeoutMs: number;
  readonly #poolWaitMs: number;
  readonly #onWait: (waitedMs: number) => void;
  readonly #flawOf: NonNullable<MysqlOptions['flawOf']>;
  readonly #sessionSql: readonly string[];
  #refused: { readonly why: string; readonly atMs: number } | null = null;
  readonly #ready = new WeakSet<PoolConnection>();

  constructor(options: MysqlOptions) {
    const { poolMax, queryTimeoutMs, poolWaitMs = 5000, connectTimeoutMs = 3000, silentSeconds = 20 } = options;
    this.#server = options;
    this.#queryTimeoutMs = queryTimeoutMs;
    this.#poolWaitMs = poolWaitMs;
    this.#onWait = options.onWait ?? (() => undefined);
    this.#flawOf = options.flawOf ?? (() => Promise.resolve(null));
    this.#sessionSql = [
      ...sessionSql(options.lockWaitSeconds ?? 5, silentSeconds, options.cell ?? 0),
      ...(options.isReadOnly === true ? ['SET SESSION TRANSACTION READ ONLY'] : []),
    ];
    this.#pool = createPool({
      ...connectionOptions(options),
      connectionLimit: poolMax,
      connectTimeout: connectTimeoutMs,
      // Closes idle connections before the server does. The driver checks them only if `maxIdle` is below the limit.
      maxIdle: Math.max(1, poolMax - 1),
      idleTimeout: silentSeconds * 750, // longer than the pauses of an idle keeper, which would open them again and again
      // FOUND_ROWS would count a row that an UPDATE found but did not change, and so defeat the guard of `sales`.
      flags: ['-FOUND_ROWS', '-LOCAL_FILES'],
      charset: 'utf8mb4',
      timezone: 'Z',
      supportBigNumbers: true,
      bigNumberStrings: true,
      multipleStatements: false,
    });
    readPasswordAgain(this.#pool, options);
  }

  query<Row>(sql: string, values?: readonly SqlValue[]): Promise<Row[]> {
    return this.#withConnection(async (connection) => rowsOf<Row>(await this.#send(connection, sql, values)));
  }

  execute(sql: string, values?: readonly SqlValue[]): Promise<Written> {
    return this.#withConnection(async (connection) => writtenOf(await this.#send(connection, sql, values)));
  }

  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#withConnection(async (connection) => {
      await this.#send(connection, 'START TRANSACTION');
      let open = true;
      const rollback = async (): Promise<void> => {
        open = false;
        await this.#send(connection, 'ROLLBACK');
      };
      const tx: Transaction = { ...this.#on(connection), rollback };
      try {
        const value = await work(tx);
        if (open) await this.#send(connection, 'COMMIT');
        return value;
      } catch (error) {
        // Explicit even if the server has rolled back: after a lock wait (1205), it has undone only the statement.
        if (open && isUsableAfter(error)) await rollback();
        throw error;
      }
    });
  }

  #on(connection: PoolConnection): Statements {
    return {
      query: async <Row>(sql: string, values?: readonly SqlValue[]) =>
        rowsOf<Row>(await this.#send(connection, sql, values)),
      execute: async (sql, values) => writtenOf(await this.#send(connection, sql, values)),
    };
  }

  async probe(): Promise<void> {
    await this.query('SELECT 1');
  }

  writeRefusal(): string | null {
    const isRecent = this.#refused !== null && performance.now() - this.#refused.atMs < REFUSAL_COUNTS_MS;
    return isRecent ? (this.#refused?.why ?? null) : null;
  }

  close(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#pool.end((error) => (error ? reject(toMysqlError(error)) : resolve()));
    });
  }

  async #withConnection<T>(work: (connection: PoolConnection) => Promise<T>): Promise<T> {
    const connection = await this.#acquire();
    let usable = false;
    try {
      if (!this.#ready.has(connection)) {
        for (const sql of this.#sessionSql) await this.#send(connection, sql);
        const flaw = await this.#flawOf(this.#on(connection));
        if (flaw !== null) throw this.#noted(new MysqlError('unfit', flaw, null, undefined));
        this.#ready.add(connection);
      }
      const value = await work(connection);
      usable = true;
      return value;
    } catch (error) {
      usable = isUsableAfter(error);
      throw error;
    } finally {
      if (usable) connection.release();
      else connection.destroy(); // the server rolls back the open transaction of this connection
    }
  }

  /** Takes a connection within a time limit, which the driver's own queue lacks. */
  #acquire(): Promise<PoolConnection> {
    return new Promise((resolve, reject) => {
      let late = false;
      const startedMs = performance.now();
      const timer = setTimeout(() => {
        late = true;
        this.#onWait(this.#poolWaitMs);
        const message = `no free connection within ${this.#poolWaitMs} ms`;
        reject(toMysqlError(Object.assign(new Error(message), { code: 'POOL_WAIT_TIMEOUT' })));
      }, this.#poolWaitMs);
      this.#pool.getConnection((error, connection) => {
        clearTimeout(timer);
        if (late) return connection?.release();
        this.#onWait(performance.now() - startedMs);
        if (error) reject(connectFault(error, this.#server));
        else resolve(connection);
      });
    });
  }

  #noted(error: MysqlError, sql = ''): MysqlError {
    const hangs = error.kind === 'timed_out' && !/^select/i.test(sql);
    const why = hangs ? WRITES_HANG : REFUSALS[error.kind];
    if (why !== undefined) this.#refused = { why: `${why} (${error.message})`, atMs: performance.now() };
    return error;
  }

  #send(connection: PoolConnection, sql: string, values?: readonly SqlValue[]): Promise<Result> {
    return new Promise((resolve, reject) => {
      // Null rather than absent: without a list, the driver still searches the whole text for placeholders.
      const query = { sql, timeout: this.#queryTimeoutMs, values: (values as unknown[] | undefined) ?? null };
      connection.query(query, (error, result) => {
        if (error) reject(this.#noted(toMysqlError(error), sql));
        else resolve(result as Result);
      });
    });
  }
}

/** Makes the driver read the password for each connection. It copies its options, and getters become values. */
function readPasswordAgain(pool: Pool, server: MysqlServer): void {
  if (server.password === undefined) return;
  const { config } = pool as unknown as { readonly config: { readonly connectionConfig: object } };
  Object.defineProperty(config.connectionConfig, 'password', { get: () => passwordOf(server), enumerable: true });
}

/** Longer than a worker's pause (18 s) plus a refused statement, so that refusals overlap. A write proves nothing. */
const REFUSAL_COUNTS_MS = 30_000;
const REFUSALS: Partial<Record<MysqlErrorKind, string>> = {
  disk_full: 'MySQL refuses writes because it has no space. Check its disk.',
  read_only: 'MySQL is read-only.',
};
/** With a binary log, MariaDB waits for space instead of refusing. */
const WRITES_HANG = 'MySQL does not finish writes. Check its disk.';

/** Settings that every session relies on, regardless of the defaults of the server. */
function sessionSql(lockWaitSeconds: number, silentSeconds: number, cell: number): readonly string[] {
  return [
    'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
    // Strict mode, because MySQL would cut values. NO_BACKSLASH_ESCAPES would break escaping.
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'," +
      " time_zone = '+00:00'," +
      ` innodb_lock_wait_timeout = ${lockWaitSeconds}, wait_timeout = ${silentSeconds}` +
      (cell === 0 ? '' : `, auto_increment_increment = ${CELL_STEP}, auto_increment_offset = ${cell}`) +
      // MySQL caches statistics of tables for a day. MariaDB has neither the cache nor this setting.
      ' /*!80000 , information_schema_stats_expiry = 0 */',
  ];
}

const isUsableAfter = (error: unknown): boolean => !(error instanceof MysqlError) || error.connectionUsable;
const rowsOf = <Row>(result: Result): Row[] => (Array.isArray(result) ? (result as Row[]) : []);

function writtenOf(result: Result): Written {
  if (Array.isArray(result)) return { affectedRows: 0, insertId: '0' };
  return { affectedRows: result.affectedRows, insertId: String(result.insertId) };
}
