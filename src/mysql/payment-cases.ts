import type { CaseState, FoundCase, PaymentCases } from '../core/ports/payment-cases.js';
import { execute, knex, select } from './knex.js';
import type { MysqlPool, Statements } from './pool.js';

const DETAIL_MAX = 1000;

/** A repeated report leaves a case as it is, unless it ends the case. Compares the old detail, so sets it last. */
const NOTE = `INSERT INTO payment_cases (kind, subject, payment_id, order_id, amount_cents, currency, detail, state)
  VALUES (:kind, :subject, :paymentId, :orderId, :amountCents, :currency, :detail, :state)
  ON DUPLICATE KEY UPDATE state = IF(detail = VALUES(detail) AND VALUES(state) = 'open', state, VALUES(state)),
    amount_cents = IF(detail = VALUES(detail), amount_cents, VALUES(amount_cents)), detail = VALUES(detail)`;

/** Stores a case, possibly within the transaction that moves its order. */
export async function noteCase(on: Statements, found: FoundCase, state: CaseState): Promise<void> {
  await execute(on, knex.raw(NOTE, { ...found, detail: found.detail.slice(0, DETAIL_MAX), state }));
}

export function createPaymentCases(pool: MysqlPool): PaymentCases {
  return {
    note: (found, state = 'open') => noteCase(pool, found, state),
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
  };
}
