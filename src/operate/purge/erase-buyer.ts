import { randomBytes } from 'node:crypto';
import type { Clock } from '../../core/ports/clock.js';
import { createAuditLog } from '../../mysql/audit-log.js';
import { execute, knex, select } from '../../mysql/knex.js';
import { idIn } from '../../mysql/move-orders.js';
import type { MysqlPool } from '../../mysql/pool.js';
import { retryConflicts } from '../../mysql/retry-conflicts.js';

// A random name replaces the buyer's id everywhere, and notes and trace ids are removed. Amounts, times and numbers
// stay, so the books remain correct.

interface ErasedRows {
  readonly what: string;
  /** Rows that were changed or removed or, in a dry run, would be. */
  readonly rows: number;
}

/** `erased`: under a new name that nothing links to the buyer. `open`: why not yet. `unknown`: no row names it. */
export type Erased =
  | { readonly outcome: 'erased' | 'unknown'; readonly name: string; readonly rows: readonly ErasedRows[] }
  | { readonly outcome: 'open'; readonly why: readonly string[] };

/** The data that is kept, and why. */
export const KEPT = [
  'order ids, quantities, amounts, times and request ids of the orders: the books need them',
  'payment ids in payments, refunds and payment cases: they name no buyer here, and your payment provider knows them',
  'actions that the same id took as an operator, and its revoked tokens: security needs them',
  'lists in admission rules: publish rules without the id',
  'access logs, traces, messages at the broker (72 h by default), backups, and the data of your own services',
] as const;

const ORDERS = ['orders', 'orders_archive'] as const;
const REASONS_SHOWN = 20;
/** Maximum number of rows that one statement reads or changes. */
const BATCH = 500;
/** Maximum number of rows with long texts that one statement reads. */
const TEXTS_PER_READ = 100;

/**
 * Requires that the buyer's sales have left Redis and that all money is settled. May be interrupted and repeated: the
 * orders come last, because they tell which requests the buyer made. @throws OperationalError mysql
 */
export async function eraseBuyer(
  { userId, dryRun, actor }: { readonly userId: string; readonly dryRun: boolean; readonly actor: string },
  { pool, clock }: { readonly pool: MysqlPool; readonly clock: Clock },
): Promise<Erased> {
  const why = await reasonsToWait(pool, userId);
  if (why.length > 0) return { outcome: 'open', why };
  const name = `erased-${randomBytes(12).toString('base64url')}`;
  const orders = await ordersOf(pool, userId);
  const swap = swapOf(userId, name, orders);
  const rows: ErasedRows[] = [];
  const note = (what: string, count: number): void => void (count > 0 && rows.push({ what, rows: count }));
  /** @param changes null to delete the rows */
  const change = async (table: string, changes: string | null): Promise<void> => {
    const of = `${table} WHERE user_id = ?`;
    const [row] = await pool.query<{ readonly n: string }>(`SELECT COUNT(*) AS n FROM ${of}`, [userId]);
    note(table, Number(row?.n ?? 0));
    const [sql, values] =
      changes === null
        ? [`DELETE FROM ${of}`, [userId]]
        : [`UPDATE ${table} SET ${changes} WHERE user_id = ?`, [name, userId]];
    for (let last = BATCH; last === BATCH && !dryRun;) {
      last = (await retryConflicts(clock, () => pool.execute(`${sql} LIMIT ${BATCH}`, values))).affectedRows;
    }
  };

  if (!dryRun) {
    const after = { orders: orders.length, name };
    await createAuditLog(pool).append({ actor, action: 'buyer.erased', subject: 'buyer', before: null, after });
  }
  note('dead_letters', await rewriteTexts(pool, 'dead_letters', ['body', 'detail', 'note'], userId, swap, dryRun));
  note('reconcile_runs', await rewriteTexts(pool, 'reconcile_runs', ['findings_json'], userId, swap, dryRun));
  const inAudit = await rewriteTexts(pool, 'audit_log', ['before_json', 'after_json'], userId, swap, dryRun);
  note('audit_log', inAudit);
  note('reasons in audit_log', await eraseReasons(pool, orders, dryRun));
  await change('compensation_jobs', null);
  await change('notifications', null);
  const changeOfOrders = async (table: string, statement: string): Promise<void> => {
    let changed = 0;
    for (let from = 0; from < orders.length; from += BATCH) {
      const some = orders.slice(from, from + BATCH).map(({ id }) => id);
      const where = `WHERE ${idIn(some, 'order_id')}`;
      const [row] = await pool.query<{ readonly n: string }>(`SELECT COUNT(*) AS n FROM ${table} ${where}`);
      changed += Number(row?.n ?? 0);
      if (!dryRun) await pool.execute(`${statement} ${where}`);
    }
    note(table, changed);
  };
  for (const table of ['order_metadata', 'order_metadata_archive', 'order_traces', 'order_traces_archive']) {
    await changeOfOrders(table, `DELETE FROM ${table}`);
  }
  await changeOfOrders('order_refunds', "UPDATE order_refunds SET reason = 'erased'"); // it may name the buyer
  for (const table of ['coupon_codes', 'coupons', 'coupons_archive', ...ORDERS]) await change(table, 'user_id = ?');
  return { outcome: rows.length > 0 ? 'erased' : 'unknown', name, rows };
}

interface OrderOfBuyer {
  readonly id: string;
  readonly request_id: string;
}

async function ordersOf(pool: MysqlPool, userId: string): Promise<readonly OrderOfBuyer[]> {
  const found: OrderOfBuyer[] = [];
  for (const table of ORDERS) {
    found.push(
      ...(await select(
        pool,
        knex(table as 'orders')
          .select('id', 'request_id')
          .where({ user_id: userId }),
      )),
    );
  }
  return found;
}

/** Lists what must end before the buyer can be erased. */
async function reasonsToWait(pool: MysqlPool, userId: string): Promise<string[]> {
  const sales = await pool.query<{ readonly id: string }>(
    `SELECT DISTINCT CAST(s.id AS CHAR) AS id FROM orders AS o JOIN sales AS s ON s.id = o.sale_id
      WHERE o.user_id = ? AND s.retirement IN ('none', 'begun') LIMIT ${REASONS_SHOWN}`,
    [userId],
  );
  const why = sales.map(({ id }) => `sale ${id} is not retired: Redis still has the buyer`);
  const open = async (sql: string, sentence: (id: string) => string): Promise<void> => {
    for (const table of ORDERS) {
      const found = await pool.query<{ readonly id: string }>(
        `SELECT CAST(o.id AS CHAR) AS id FROM ${table} AS o WHERE o.user_id = ? AND ${sql} LIMIT ${REASONS_SHOWN}`,
        [userId],
      );
      why.push(...found.map(({ id }) => sentence(id)));
    }
  };
  await open("o.state = 'pending_payment'", (id) => `order ${id} is unpaid`);
  await open(
    "EXISTS (SELECT 1 FROM payment_attempts AS a WHERE a.order_id = o.id AND a.state = 'open')",
    (id) => `a charge of order ${id} is open`,
  );
  for (const table of ['refunds', 'order_refunds']) {
    await open(
      `EXISTS (SELECT 1 FROM ${table} AS r WHERE r.order_id = o.id AND r.state = 'due')`,
      (id) => `a refund of order ${id} is due`,
    );
  }
  await open("o.after_paid = 'disputed'", (id) => `order ${id} is disputed`);
  await open(
    "EXISTS (SELECT 1 FROM payment_cases AS c WHERE c.order_id = o.id AND c.state = 'open')",
    (id) => `a payment case of order ${id} is open`,
  );
  const jobs = knex('compensation_jobs').select('id').where({ user_id: userId, state: 'pending' }).limit(REASONS_SHOWN);
  why.push(...(await select(pool, jobs)).map(({ id }) => `compensation job ${id} is pending`));
  const parked = await select(
    pool,
    knex('dead_letters')
      .select('id')
      .where({ state: 'parked' })
      .whereRaw('INSTR(body, ?) > 0', [inBatch(userId)]),
  );
  why.push(...parked.slice(0, REASONS_SHOWN).map(({ id }) => `dead letter ${id} is parked`));
  return why;
}

/** The encoded user id of a purchase: the first of its three values in the body of a batch. */
const inBatch = (userId: string): string => `[${JSON.stringify(userId)},"`;

/** Replaces the id only where it means the buyer: in `userId` or `user`, in a batch, and before a request id. */
function swapOf(userId: string, name: string, orders: readonly OrderOfBuyer[]): (text: string) => string {
  const json = JSON.stringify(userId);
  const pairs: [string, string][] = [
    [`"userId":${json}`, `"userId":"${name}"`],
    [`"user":${json}`, `"user":"${name}"`],
    [inBatch(userId), inBatch(name)],
  ];
  const inText = json.slice(1, -1);
  const requests = new Set(orders.map(({ request_id: requestId }) => requestId));
  return (text) => {
    let swapped = text;
    for (const [from, to] of pairs) swapped = swapped.replaceAll(from, to);
    for (const written of new Set([userId, inText])) {
      swapped = swapped.replaceAll(`${written}/`, (found, at: number, whole: string) => {
        const isStart = at === 0 || /[\s"'/]/.test(whole[at - 1] as string);
        const [requestId = ''] = /^[A-Za-z0-9_-]*/.exec(whole.slice(at + found.length)) ?? [];
        return isStart && requests.has(requestId) ? `${name}/` : found;
      });
    }
    return swapped;
  };
}

/** Operators may have named the buyer in audit reasons. @returns number of rows */
async function eraseReasons(pool: MysqlPool, orders: readonly OrderOfBuyer[], dryRun: boolean): Promise<number> {
  let erased = 0;
  for (let from = 0; from < orders.length; from += BATCH) {
    const subjects = orders.slice(from, from + BATCH).map(({ id }) => `order:${id}`);
    const entries = knex('audit_log').select('id', 'after_json').whereIn('subject', subjects);
    for (const { id, after_json: json } of await select(pool, entries)) {
      const after = json === null ? null : (JSON.parse(json) as { readonly reason?: unknown } | null);
      if (typeof after?.reason !== 'string' || after.reason === 'erased') continue;
      erased++;
      const change = { after_json: JSON.stringify({ ...after, reason: 'erased' }) };
      if (!dryRun) await execute(pool, knex('audit_log').where({ id }).update(change));
    }
  }
  return erased;
}

/** Rewrites texts that contain the buyer, page by page through the whole table. @returns number of rows */
async function rewriteTexts(
  pool: MysqlPool,
  table: 'dead_letters' | 'reconcile_runs' | 'audit_log',
  columns: readonly string[],
  userId: string,
  swap: (text: string) => string,
  dryRun: boolean,
): Promise<number> {
  const escaped = JSON.stringify(userId).slice(1, -1);
  const names = columns.map((column) => `INSTR(${column}, ?) > 0 OR INSTR(${column}, ?) > 0`).join(' OR ');
  const named = columns.flatMap(() => [userId, escaped]);
  let rewritten = 0;
  for (let after = '0'; ;) {
    // Limited by row numbers, because few rows match, and a statement must not read the whole table to find them.
    const [end] = await pool.query<{ readonly id: string }>(
      `SELECT CAST(id AS CHAR) AS id FROM ${table} WHERE id > CAST(? AS UNSIGNED) ORDER BY ${table}.id LIMIT 1 OFFSET ${TEXTS_PER_READ - 1}`,
      [after],
    );
    const upTo = end?.id ?? '18446744073709551615';
    const rows = await pool.query<{ readonly id: string } & Readonly<Record<string, string | null>>>(
      `SELECT CAST(id AS CHAR) AS id, ${columns.join(', ')} FROM ${table}
        WHERE id > CAST(? AS UNSIGNED) AND id <= CAST(? AS UNSIGNED) AND (${names})`,
      [after, upTo, ...named],
    );
    for (const row of rows) {
      const changed: Record<string, string> = {};
      for (const column of columns) {
        const text = row[column];
        if (typeof text === 'string' && swap(text) !== text) changed[column] = swap(text);
      }
      if (Object.keys(changed).length === 0) continue;
      rewritten++;
      if (!dryRun)
        await execute(
          pool,
          knex(table)
            .where({ id: row.id })
            .update(changed as never),
        );
    }
    if (end === undefined) return rewritten;
    after = end.id;
  }
}
