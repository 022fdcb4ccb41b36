import type { MysqlPool, SqlValue, Statements } from '../../src/mysql/pool.js';

/** A statement as the product sent it, and how much the server read for it. */
export interface SeenStatement {
  readonly sql: string;
  readonly values: readonly SqlValue[] | undefined;
  /** The method that sent the statement, as `repository.method`. */
  readonly from: string;
  /** Maximum number of rows and index entries that the storage engine returned in a call. */
  readonly rowsRead: number;
}

interface PlanRow {
  readonly select_type: string | null;
  readonly table: string | null;
  readonly type: string | null;
  readonly key: string | null;
  readonly rows: string | number | null;
  readonly Extra: string | null;
}

/**
 * Records every statement and the rows that the server read for it. Needs a pool of one connection, because the
 * counters belong to a session.
 */
export class RecordingPool implements MysqlPool {
  readonly #pool: MysqlPool;
  readonly #seen = new Map<string, SeenStatement>();
  /** The method whose statements follow. */
  from = '';

  constructor(pool: MysqlPool) {
    this.#pool = pool;
  }

  get seen(): SeenStatement[] {
    return [...this.#seen.values()];
  }

  query<Row>(sql: string, values?: readonly SqlValue[]): Promise<Row[]> {
    return this.#measured(this.#pool, sql, values, () => this.#pool.query<Row>(sql, values));
  }

  execute(sql: string, values?: readonly SqlValue[]): ReturnType<Statements['execute']> {
    return this.#measured(this.#pool, sql, values, () => this.#pool.execute(sql, values));
  }

  transaction: MysqlPool['transaction'] = (work) =>
    this.#pool.transaction((tx) =>
      work({
        query: (sql, values) => this.#measured(tx, sql, values, () => tx.query(sql, values)),
        execute: (sql, values) => this.#measured(tx, sql, values, () => tx.execute(sql, values)),
        rollback: () => tx.rollback(),
      }),
    );

  writeRefusal: MysqlPool['writeRefusal'] = () => this.#pool.writeRefusal();

  probe(): Promise<void> {
    return this.#pool.probe();
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  async #measured<T>(
    on: Statements,
    sql: string,
    values: readonly SqlValue[] | undefined,
    run: () => Promise<T>,
  ): Promise<T> {
    const before = await rowsReadOn(on);
    try {
      return await run();
    } finally {
      const rowsRead = (await rowsReadOn(on)) - before;
      const known = this.#seen.get(sql);
      if (known === undefined || known.rowsRead < rowsRead) {
        this.#seen.set(sql, { sql, values, from: this.from, rowsRead });
      }
    }
  }
}

/**
 * Returns the rows and index entries that a session has read so far. Reading the counters scans a table, which counts
 * as `Handler_read_rnd…`.
 */
export async function rowsReadOn(on: Statements): Promise<number> {
  const counters = await on.query<{ readonly Value: string }>(
    "SHOW SESSION STATUS WHERE Variable_name IN ('Handler_read_first', 'Handler_read_key', 'Handler_read_last'," +
      " 'Handler_read_next', 'Handler_read_prev')",
  );
  return counters.reduce((sum, { Value }) => sum + Number(Value), 0);
}

/**
 * Returns the faults of a statement's plan: full scans of a table or an index, and sorts of more than `sortedMax`
 * rows.
 */
export async function faultsOfPlan(
  on: Statements,
  { sql, values }: Pick<SeenStatement, 'sql' | 'values'>,
  smallTables: ReadonlySet<string>,
  sortedMax: number,
): Promise<string[]> {
  if (!/^\s*(SELECT|UPDATE|DELETE|INSERT .*\bSELECT\b)/is.test(sql)) return [];
  const plan = await on.query<PlanRow>(`EXPLAIN FORMAT=TRADITIONAL ${sql}`, values);
  return plan.flatMap(({ select_type: select, table, type, key, rows, Extra }) => {
    if (select === 'INSERT') return []; // MySQL lists the written table as a full scan
    if (table === null || table.startsWith('<') || smallTables.has(table)) return [];
    const faults: string[] = [];
    if (type === 'ALL') faults.push(`reads all of ${table}`);
    const endsEarly = Number(rows) <= sortedMax; // a LIMIT in index order
    if (type === 'index' && !endsEarly) faults.push(`reads ${rows} rows of all of the index ${key} of ${table}`);
    if (/Using filesort/.test(Extra ?? '') && Number(rows) > sortedMax) {
      faults.push(`sorts ${rows} rows of ${table} (key ${key})`);
    }
    return faults;
  });
}

/** Records the called methods of a repository, and tells the pool whose statements follow. */
export function tracked<T extends object>(name: string, repository: T, pool: RecordingPool, called: Set<string>): T {
  return new Proxy(repository, {
    get(target, key, receiver) {
      const value: unknown = Reflect.get(target, key, receiver);
      if (typeof value !== 'function') return value;
      const from = `${name}.${String(key)}`;
      called.add(from);
      return (...args: unknown[]): unknown => {
        pool.from = from;
        return (value as (...of: unknown[]) => unknown).apply(target, args);
      };
    },
  });
}
