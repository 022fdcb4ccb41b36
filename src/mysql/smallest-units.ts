import type { Knex } from 'knex';
import { OperationalError } from '../core/errors.js';

// Earlier releases stored all amounts in hundredths. This step converts currencies without two digits to their smallest
// unit: 50000 for 500 JPY becomes 500.

/** Currencies without digits, as ISO 4217 listed them when this step was written. The list never changes. */
const NO_DIGITS =
  "'BIF','CLP','DJF','GNF','ISK','JPY','KMF','KRW','PYG','RWF','UGX','UYI','VND','VUV','XAF','XOF','XPF'";
const THREE_DIGITS = "'BHD','IQD','JOD','KWD','LYD','OMR','TND'";
const OTHERS = `s.currency IN (${NO_DIGITS},${THREE_DIGITS})`;
/** Written with the amounts, so that a killed migrator converts nothing twice. */
const DONE = 'sales.smallest_units';

const converted = (column: string): string =>
  `${column} = IF(s.currency IN (${NO_DIGITS}), ROUND(${column} / 100), ${column} * 10)`;

const STATEMENTS: readonly string[] = [
  `UPDATE sales s SET price_cents = IF(s.currency IN (${NO_DIGITS}), ROUND(price_cents / 100), LEAST(price_cents * 10, 4294967295))
    WHERE ${OTHERS}`,
  `UPDATE sales s JOIN order_ranges r ON r.sale_id = s.id
    JOIN orders o ON o.id BETWEEN r.first_id AND r.last_id AND o.sale_id = s.id
    SET ${converted('o.amount_cents')}, o.updated_at = o.updated_at WHERE ${OTHERS}`,
  `UPDATE sales s JOIN orders_archive o ON o.sale_id = s.id
    SET ${converted('o.amount_cents')}, o.updated_at = o.updated_at WHERE ${OTHERS}`,
  ...['payments', 'payments_archive', 'payment_attempts', 'refunds'].flatMap((table) =>
    ['orders', 'orders_archive'].map((orders) => {
      const keepsTime = table === 'refunds' ? ', m.updated_at = m.updated_at' : '';
      return `UPDATE ${table} m JOIN ${orders} o ON o.id = m.order_id JOIN sales s ON s.id = o.sale_id
        SET ${converted('m.amount_cents')}${keepsTime} WHERE ${OTHERS}`;
    }),
  ),
];

export const CONVERT = STATEMENTS.join(';\n');

/** @throws OperationalError while such an amount may be paid, because the previous release asks for a different one */
export async function convertAmounts(knex: Knex): Promise<void> {
  const rowsOf = async (sql: string): Promise<readonly { readonly id: string }[]> =>
    ((await knex.raw(sql)) as [{ id: string }[]])[0];
  const found = await rowsOf(`SELECT CAST(s.id AS CHAR) AS id FROM sales s WHERE ${OTHERS} LIMIT 1`);
  if (found.length === 0) return;
  const busy = await rowsOf(
    `SELECT CAST(s.id AS CHAR) AS id FROM sales s WHERE ${OTHERS} AND (s.state IN ('warm', 'open', 'paused')
      OR EXISTS (SELECT 1 FROM orders o WHERE o.state = 'pending_payment' AND o.sale_id = s.id)) LIMIT 20`,
  );
  if (busy.length > 0) {
    throw new OperationalError(
      'mysql',
      `this release stores amounts in the smallest unit of their currency, but sales in a currency without cents are live (${busy.map(({ id }) => id).join(', ')}): close them, wait until all of their orders are paid or have ended, and migrate again`,
      { retryable: false },
    );
  }
  await knex.transaction(async (trx) => {
    const [marks] = (await trx.raw('SELECT 1 FROM audit_log WHERE action = ? LIMIT 1', [DONE])) as [unknown[]];
    if (marks.length > 0) return;
    for (const statement of STATEMENTS) await trx.raw(statement);
    await trx.raw(`INSERT INTO audit_log (actor, action, subject) VALUES ('migrate', ?, 'sales')`, [DONE]);
  });
}
