import type { CaseFilter, FoundCase, PaymentCase, PaymentCases } from '../core/ports/payment-cases.js';
import { withoutUndefined } from '../core/without-undefined.js';
import { insertAudit } from './audit-log.js';
import { execute, knex, select } from './knex.js';
import type { MysqlPool } from './pool.js';
import type { PaymentCaseRow } from './tables.js';

const DETAIL_MAX = 1000;
/** The id of a case that a person may close. Checked because MySQL would read 12x as 12. */
const CASE_ID = /^[1-9][0-9]{0,17}$/;

/** Sets the state first, because it compares the old detail. */
const NOTE = `INSERT INTO payment_cases (kind, subject, payment_id, order_id, amount_cents, currency, detail, state)
  VALUES (:kind, :subject, :paymentId, :orderId, :amountCents, :currency, :detail, :state)
  ON DUPLICATE KEY UPDATE state = IF(detail = VALUES(detail), state, VALUES(state)),
    amount_cents = IF(detail = VALUES(detail), amount_cents, VALUES(amount_cents)), detail = VALUES(detail)`;

/** Payment cases in MySQL, which a person has to look after. */
export function createPaymentCases(pool: MysqlPool): PaymentCases {
  return {
    async note(found: FoundCase, state = 'open'): Promise<void> {
      const row = { ...found, detail: found.detail.slice(0, DETAIL_MAX), state };
      await execute(pool, knex.raw(NOTE, row));
    },
    async settle(kind, subject): Promise<void> {
      await execute(pool, knex('payment_cases').where({ kind, subject, state: 'open' }).update({ state: 'closed' }));
    },
    async orderOf(paymentId): Promise<string | null> {
      for (const table of ['payments', 'payments_archive'] as const) {
        const [row] = await select(pool, knex(table).select('order_id').where({ payment_id: paymentId }));
        if (row !== undefined) return row.order_id;
      }
      return null;
    },
    list: (filter, page) => list(pool, filter, page),
    close: (caseId, actor) => close(pool, caseId, actor),
  };
}

const COLUMNS = [
  'id',
  'kind',
  'subject',
  'payment_id',
  'order_id',
  'amount_cents',
  'currency',
  'detail',
  'state',
  'created_at',
  'updated_at',
] as const satisfies (keyof PaymentCaseRow)[];

async function list(
  pool: MysqlPool,
  { state }: CaseFilter,
  { afterCaseId, max }: { readonly afterCaseId?: string; readonly max: number },
): Promise<PaymentCase[]> {
  let page = knex('payment_cases')
    .select(...COLUMNS)
    .where(withoutUndefined({ state }));
  if (afterCaseId !== undefined) {
    if (!CASE_ID.test(afterCaseId)) return [];
    page = page.where('id', '>', afterCaseId);
  }
  return (await select(pool, page.orderBy('id').limit(max))).map(caseOf);
}

function close(pool: MysqlPool, caseId: string, actor: string): Promise<PaymentCase | null> {
  if (!CASE_ID.test(caseId)) return Promise.resolve(null);
  const ofId = knex('payment_cases')
    .select(...COLUMNS)
    .where({ id: caseId });
  return pool.transaction(async (tx) => {
    const [row] = await select(tx, ofId.clone().forUpdate());
    if (row === undefined) return null;
    if (row.state === 'closed') return caseOf(row);
    await execute(tx, knex('payment_cases').where({ id: caseId }).update({ state: 'closed' }));
    const { kind, subject, detail } = row;
    const after = { state: 'closed', kind, subject, detail };
    await insertAudit(tx, {
      actor,
      action: 'payment_case.closed',
      subject: `payment_case:${caseId}`,
      before: { state: row.state },
      after,
    });
    const [closed] = await select(tx, ofId);
    return caseOf(closed ?? row);
  });
}

const caseOf = (row: Pick<PaymentCaseRow, (typeof COLUMNS)[number]>): PaymentCase => ({
  caseId: row.id,
  kind: row.kind,
  subject: row.subject,
  paymentId: row.payment_id,
  orderId: row.order_id,
  amountCents: row.amount_cents === null ? null : Number(row.amount_cents),
  currency: row.currency,
  detail: row.detail,
  state: row.state,
  createdAtMs: row.created_at.getTime(),
  updatedAtMs: row.updated_at.getTime(),
});
