import type { CaseState, FoundCase } from '../../core/ports/payment-cases.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { insertAudit } from '../../mysql/audit-log.js';
import { execute, knex, select } from '../../mysql/knex.js';
import type { MysqlPool } from '../../mysql/pool.js';
import type { PaymentCaseRow } from '../../mysql/tables.js';

/** Times are Unix ms on the clock of MySQL. */
export interface PaymentCase extends FoundCase {
  readonly caseId: string;
  readonly state: CaseState;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** Conditions that must all hold. An absent condition matches every case. */
export interface CaseFilter {
  readonly state?: CaseState;
}

export interface PaymentCaseStore {
  /** Lists at most `max` cases after `afterCaseId`, oldest first. @throws OperationalError mysql */
  list(filter: CaseFilter, page: { readonly afterCaseId?: string; readonly max: number }): Promise<PaymentCase[]>;
  /** Closes an open case, with an audit entry. @returns null: no such case. @throws OperationalError mysql; repeat */
  close(caseId: string, actor: string): Promise<PaymentCase | null>;
}

/** MySQL would read 12x as 12. */
const CASE_ID = /^[1-9][0-9]{0,17}$/;

export function createPaymentCaseStore(pool: MysqlPool): PaymentCaseStore {
  return { list: (filter, page) => list(pool, filter, page), close: (caseId, actor) => close(pool, caseId, actor) };
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
