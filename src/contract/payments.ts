import { z } from 'zod';
import { CASE_KINDS, CASE_STATES } from '../core/ports/payment-cases.js';
import { ORDER_REFUND_STATES } from '../core/ports/order-refunds.js';
import { amount, count, currency, paymentId, rowId, text, time, type BodyOf } from './fields.js';

const refund = z
  .object({
    refundId: rowId
      .nullable()
      .meta({ description: 'of a refund that an operator ordered; null: owed for a payment that paid no order' }),
    paymentId,
    orderId: text,
    amountCents: amount,
    reason: text,
    state: z.enum(ORDER_REFUND_STATES),
    attempts: count,
    lastError: text.nullable(),
    followedBy: rowId.nullable().meta({ description: 'id of the refund that tries a failed refund again' }),
    createdAt: time,
    updatedAt: time,
  })
  .meta({ id: 'Refund' });
const listedRefund = refund
  .extend({
    currency: currency
      .nullable()
      .meta({ description: 'null if the payment was in a different currency from the order' }),
  })
  .meta({ id: 'ListedRefund' });
export const refundPage = z.object({ refunds: z.array(listedRefund), next: text.nullable() });
export const refundCounts = z.object({
  states: z.array(z.object({ state: z.enum(ORDER_REFUND_STATES), refunds: count, amountCents: amount })),
});
export const retriedRefund = z.object({ outcome: z.enum(['refunding', 'refunded']), refund });
export const takenRefund = z.object({ outcome: z.literal('done'), refund });

/** A money problem that a person has to solve. */
export const paymentCase = z
  .object({
    caseId: rowId,
    kind: z.enum(CASE_KINDS),
    subject: text.meta({ description: 'id of the refund, dispute or payment at the provider' }),
    paymentId: text.nullable(),
    orderId: text.nullable(),
    amountCents: amount.nullable(),
    currency: currency.nullable(),
    detail: text,
    state: z.enum(CASE_STATES),
    createdAt: time,
    updatedAt: time,
  })
  .meta({ id: 'PaymentCase' });
export const paymentCasePage = z.object({ cases: z.array(paymentCase), next: text.nullable() });

export type Refund = BodyOf<typeof refund>;
export type RefundCounts = BodyOf<typeof refundCounts>;
export type ListedRefund = BodyOf<typeof listedRefund>;
export type PaymentCase = BodyOf<typeof paymentCase>;
