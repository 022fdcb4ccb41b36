import createKnex, { type Knex } from 'knex';
import { jsonOrText } from '../core/parse-json.js';
import type { Statements, SqlValue } from './pool.js';
import type {} from './tables.js';

/**
 * Builds statements without a connection: `select` and `execute` send them through our pool, which handles time-outs,
 * errors and connections (docs/decisions/0020). Awaiting a builder fails at once. The hot path writes SQL by hand:
 * write-orders, insert-orders, order-repository, and `lease` and `markDone` of the outbox.
 */
export const knex: Knex = createKnex({ client: 'mysql2' });

type Statement = Knex.QueryBuilder | Knex.Raw;

/** @returns the rows, typed by the columns that the statement selects. @throws MysqlError */
export function select<S extends Statement>(on: Statements, statement: S): Promise<Awaited<S>> {
  const { sql, bindings } = statement.toSQL().toNative();
  return on.query(sql, bindings as readonly SqlValue[]) as Promise<Awaited<S>>;
}

/** @throws MysqlError */
export function execute(on: Statements, statement: Statement): ReturnType<Statements['execute']> {
  const { sql, bindings } = statement.toSQL().toNative();
  return on.execute(sql, bindings as readonly SqlValue[]);
}

/** A list of our own words for SQL that is written by hand. */
export const quoted = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(', ');

/** The time of MySQL, in UTC no matter how the session is set. */
export const now = (): Knex.Raw => knex.raw('UTC_TIMESTAMP(3)');
export const inMs = (ms: number): Knex.Raw =>
  knex.raw('UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND', [Math.round(ms * 1000)]);
export const msAgo = (ms: number): Knex.Raw =>
  knex.raw('UTC_TIMESTAMP(3) - INTERVAL ? MICROSECOND', [Math.round(ms * 1000)]);
export const PAUSE_MAX_MS = 900_000;
/** A statement that waited for a lock uses the time at which it began, so newer leases seem longer by the wait. */
export const WAIT_SLACK_MS = 60_000;
/** SQL for "the lease is over". A lease beyond the longest one predates a clock that was set back (decision 59). */
export const waitOver = (column: 'available_at' | 'leased_until', longestMs: number): string =>
  `(${column} <= UTC_TIMESTAMP(3) OR ${column} > UTC_TIMESTAMP(3) + INTERVAL ${Math.round((longestMs + WAIT_SLACK_MS) * 1000)} MICROSECOND)`;
/** Selects the number of microseconds since the time in a column, as `age_us`, in decimal. */
export const ageOf = (column: string): Knex.Raw =>
  knex.raw('TIMESTAMPDIFF(MICROSECOND, ??, UTC_TIMESTAMP(3)) AS age_us', [column]);

/** Makes an id compare by value. MySQL would compare a BIGINT with a text as floating point, and ids exceed 2^53. */
export const bigint = (id: string): Knex.Raw => knex.raw('CAST(? AS UNSIGNED)', [id]);

/** Parses JSON that we wrote. If someone wrote the row by hand and it is not JSON, returns its text. */
export const readJson = (text: string | null): unknown => (text === null ? null : jsonOrText(text));
