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

/** MySQL would read 12x as 12. */
const CASE_ID = /^[1-9][0-9]{0,17}$/;

export type PaymentCaseStore = ReturnType<typeof createPaymentCaseStore>;

/** Methods throw OperationalError mysql. */
export const createPaymentCaseStore = (pool: MysqlPool) => ({
  /** Lists at most `max` cases after `afterCaseId`, oldest first. */
  async list(
    { state }: CaseFilter,
    { afterCaseId, max }: { readonly afterCaseId?: string; readonly max: number },
  ): Promise<PaymentCase[]> {
    const page = knex('payment_cases').select('*').where(withoutUndefined({ state }));
    if (afterCaseId !== undefined) {
      if (!CASE_ID.test(afterCaseId)) return [];
      void page.where('id', '>', afterCaseId);
    }
    return (await select(pool, page.orderBy('id').limit(max))).map(caseOf);
  },

  /** Closes an open case, with an audit entry. Safe to repeat. @returns null: no such case */
  async close(caseId: string, actor: string): Promise<PaymentCase | null> {
    if (!CASE_ID.test(caseId)) return null;
    const ofId = knex('payment_cases').select('*').where({ id: caseId });
    return pool.transaction(async (tx) => {
      const [row] = await select(tx, ofId.clone().forUpdate());
      if (row === undefined) return null;
      if (row.state === 'closed') return caseOf(row);
      await execute(tx, knex('payment_cases').where({ id: caseId }).update({ state: 'closed' }));
      const { kind, subject, detail } = row;
      const entry = { actor, action: 'payment_case.closed', subject: `payment_case:${caseId}` };
      const after = { state: 'closed', kind, subject, detail };
      await insertAudit(tx, { ...entry, before: { state: row.state }, after });
      const [closed] = await select(tx, ofId);
      return caseOf(closed ?? row);
    });
  },
});

const caseOf = (row: PaymentCaseRow): PaymentCase => ({
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
