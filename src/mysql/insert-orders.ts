import { escape } from 'mysql2';
import { assert, Bug } from '../core/errors.js';
import { mintedAtMs } from '../core/order-id.js';
import type { NewOrder, SaleTerms, WritePlan } from '../core/ports/order-repository.js';
import { MysqlError } from './errors.js';
import type { Transaction } from './pool.js';

/** Rows of one INSERT. About 150 bytes each, so far below the smallest `max_allowed_packet` in use (16 MiB). */
const ROWS_PER_INSERT = 4000;
/** If more are refused in one transaction, the table is wrong and not some purchases. */
const REFUSED_MAX = 16;

const COLUMNS = 'id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer';
/** The state is the default of its column and the deadline a variable, so that a row is little more than its ids. */
const SET_DEADLINE = 'SET @expires_at = GREATEST(UTC_TIMESTAMP(3), CAST(? AS DATETIME(3))) + INTERVAL ? MICROSECOND';
const INSERT_LIVE = `INSERT INTO orders (${COLUMNS}, expires_at) VALUES `;
const INSERT_FAILED = `INSERT INTO orders (${COLUMNS}, state, reason) VALUES `;

/** Inserts rows, the failed ones behind the live ones. @throws MysqlError */
export async function insertOrders(tx: Transaction, orders: readonly NewOrder[], plan: WritePlan): Promise<void> {
  const failed = orders.filter(({ failure }) => failure !== null);
  const live = failed.length === 0 ? orders : orders.filter(({ failure }) => failure === null);
  const newest = live.at(-1);
  if (newest !== undefined) {
    // Also on the clock of the worker: a MySQL that is behind gives nobody less time to pay once its clock is set.
    const mintedAt = new Date(mintedAtMs(newest.orderId));
    await tx.execute(SET_DEADLINE, [mintedAt, plan.paymentWindowMs * 1000]);
  }
  const written = (await insertRows(tx, INSERT_LIVE, live, plan)) + (await insertRows(tx, INSERT_FAILED, failed, plan));
  assert(written === orders.length, `${written} rows were written for ${orders.length} purchases`);
}

/** @returns the number of rows that MySQL has written */
async function insertRows(
  tx: Transaction,
  head: string,
  orders: readonly NewOrder[],
  plan: WritePlan,
): Promise<number> {
  let written = 0;
  for (let from = 0; from < orders.length; from += ROWS_PER_INSERT) {
    const { affectedRows } = await tx.execute(insertSql(head, orders.slice(from, from + ROWS_PER_INSERT), plan));
    written += affectedRows;
  }
  return written;
}

/** Put together by hand, since this runs for every row: the driver's placeholders cost several times as much. */
function insertSql(head: string, orders: readonly NewOrder[], plan: WritePlan): string {
  let sql = head;
  let separator = '(';
  for (const { orderId, batch, purchase, failure } of orders) {
    const { priceCents, limitPerBuyer } = termsFor(plan, batch.saleId);
    const { userId, requestId, quantity } = purchase;
    const ids = `${numeric(orderId)},${numeric(batch.saleId)},${quoted(userId)},${quoted(requestId)}`;
    const rest = `${quoted(batch.batchId)},${quantity},${quantity * priceCents},${limitPerBuyer === 1 ? 1 : 0}`;
    sql += `${separator}${ids},${rest},${failure === null ? '@expires_at' : `'failed',${quoted(failure)}`})`;
    separator = ',(';
  }
  return sql;
}

/**
 * Inserts rows around the values that MySQL refuses, by halves, each behind a savepoint: a batch of hundreds with one such
 * purchase takes a dozen statements. What is refused alone is inserted as `failed`.
 * @returns the order ids of those
 * @throws MysqlError as it came, when too many are refused, when none stands beside them (nothing proves then that the
 *   table takes anything), or when the failed row is refused as well
 */
export async function insertAround(
  tx: Transaction,
  orders: readonly NewOrder[],
  plan: WritePlan,
): Promise<ReadonlySet<string>> {
  const refused = new Set<string>();
  const insertHalves = async (some: readonly NewOrder[]): Promise<void> => {
    await tx.execute('SAVEPOINT before_rows');
    try {
      await insertOrders(tx, some, plan);
    } catch (error) {
      if (!(error instanceof MysqlError) || error.kind !== 'bad_value') throw error;
      await tx.execute('ROLLBACK TO SAVEPOINT before_rows');
      const [only] = some;
      if (some.length > 1) {
        const half = some.length >> 1;
        await insertHalves(some.slice(0, half));
        await insertHalves(some.slice(half));
      } else if (only !== undefined) {
        refused.add(only.orderId);
        if (only.failure !== null || refused.size > REFUSED_MAX || refused.size === orders.length) throw error;
      }
    }
  };
  await insertHalves(orders);
  const rest = orders.filter(({ orderId }) => refused.has(orderId));
  await insertOrders(tx, rest.map(refusedByDatabase), plan);
  return refused;
}

export const refusedByDatabase = (order: NewOrder): NewOrder => ({ ...order, failure: 'refused_by_database' });

/** @throws Bug where the plan lacks the terms of one of its sales */
export function termsFor({ terms }: WritePlan, saleId: string): SaleTerms {
  const found = terms.get(saleId);
  if (found === undefined) throw new Bug(`a plan without the terms of sale ${saleId}`);
  return found;
}

const PLAIN = /^[A-Za-z0-9_-]*$/;
const DIGITS = /^[0-9]{1,20}$/;
/** Ids need no escaping, and the test is much cheaper than the escape; what is no id is escaped all the same. */
export const quoted = (text: string): string => (PLAIN.test(text) ? `'${text}'` : escape(text));
export const numeric = (text: string): string => (DIGITS.test(text) ? text : escape(text));
