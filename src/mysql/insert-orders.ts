import { escape } from 'mysql2';
import { assert, Bug } from '../core/errors.js';
import { mintedAtMs } from '../core/order-id.js';
import type { NewOrder, SaleTerms, WritePlan } from '../core/ports/order-repository.js';
import type { Purchase } from '../core/purchase.js';
import { MysqlError } from './errors.js';
import type { Transaction } from './pool.js';

/** A row has about 150 bytes, so an INSERT stays far below the smallest common `max_allowed_packet` (16 MiB). */
const ROWS_PER_INSERT = 4000;
/** Maximum number of refused rows per transaction. If there are more, the table is at fault, not some purchases. */
const REFUSED_MAX = 16;

const COLUMNS = 'id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer';
/** A variable per payment window holds the deadline, and a default the state, so a row is little more than its ids. */
const deadlineOf = (windowMs: number): string => `@\`expires_in_${windowMs}\``;
const SET_DEADLINE = 'GREATEST(UTC_TIMESTAMP(3), CAST(? AS DATETIME(3))) + INTERVAL ? MICROSECOND';
const INSERT_LIVE = `INSERT INTO orders (${COLUMNS}, expires_at) VALUES `;
const INSERT_FAILED = `INSERT INTO orders (${COLUMNS}, state, reason) VALUES `;

/** Inserts rows, live rows first, then failed rows. @throws MysqlError */
export async function insertOrders(tx: Transaction, orders: readonly NewOrder[], plan: WritePlan): Promise<void> {
  const failed = orders.filter(({ failure }) => failure !== null);
  const live = failed.length === 0 ? orders : orders.filter(({ failure }) => failure === null);
  const newest = live.at(-1);
  if (newest !== undefined) {
    // Includes the worker's clock, because buyers would lose time to pay once a slow MySQL clock is corrected.
    const mintedAt = new Date(mintedAtMs(newest.orderId));
    const windows = [...new Set(live.map(({ batch }) => paymentWindowOf(plan, batch.saleId)))];
    const settings = windows.map((windowMs) => `${deadlineOf(windowMs)} = ${SET_DEADLINE}`);
    await tx.execute(
      `SET ${settings.join(', ')}`,
      windows.flatMap((windowMs) => [mintedAt, windowMs * 1000]),
    );
  }
  const written = (await insertRows(tx, INSERT_LIVE, live, plan)) + (await insertRows(tx, INSERT_FAILED, failed, plan));
  assert(written === orders.length, `${written} rows were written for ${orders.length} purchases`);
}

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

/** Builds SQL by hand, because the driver's placeholders cost several times as much per row. */
function insertSql(head: string, orders: readonly NewOrder[], plan: WritePlan): string {
  let sql = head;
  let separator = '(';
  for (const { orderId, batch, purchase, failure } of orders) {
    const terms = termsFor(plan, batch.saleId);
    const { userId, requestId, quantity } = purchase;
    const ids = `${numeric(orderId)},${numeric(batch.saleId)},${quoted(userId)},${quoted(requestId)}`;
    const rest = `${quoted(batch.batchId)},${quantity},${amountOf(purchase, terms)},${terms.limitPerBuyer === 1 ? 1 : 0}`;
    const end =
      failure === null ? deadlineOf(terms.paymentWindowMs ?? plan.paymentWindowMs) : `'failed',${quoted(failure)}`;
    sql += `${separator}${ids},${rest},${end})`;
    separator = ',(';
  }
  return sql;
}

/**
 * Inserts all rows except those with refused values, which become `failed`. Halves the rows repeatedly, each half
 * behind a savepoint, so one bad purchase among hundreds costs a dozen statements.
 * @returns the refused order ids. @throws MysqlError unchanged if too many rows or all are refused (the table's fault)
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

/** @throws Bug if the plan lacks the terms of a sale */
export function termsFor({ terms }: WritePlan, saleId: string): SaleTerms {
  const found = terms.get(saleId);
  if (found === undefined) throw new Bug(`a plan without the terms of sale ${saleId}`);
  return found;
}

/** Returns the amount of an order, in the smallest unit of the currency. */
export const amountOf = ({ quantity }: Purchase, { priceCents }: SaleTerms): number => quantity * priceCents;

/** Returns how long a buyer of this sale has to pay, ms. */
export const paymentWindowOf = (plan: WritePlan, saleId: string): number =>
  termsFor(plan, saleId).paymentWindowMs ?? plan.paymentWindowMs;

const PLAIN = /^[A-Za-z0-9_-]*$/;
const DIGITS = /^[0-9]{1,20}$/;
/** Ids need no escaping, and testing for that is much cheaper than escaping. */
export const quoted = (text: string): string => (PLAIN.test(text) ? `'${text}'` : escape(text));
export const numeric = (text: string): string => (DIGITS.test(text) ? text : escape(text));
