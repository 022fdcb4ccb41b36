import { z } from 'zod';
import { isId, isOrderId } from '../domain/ids.js';
import type { Payment } from '../ports/order-moves.js';

/** The one event that moves an order. Others are taken and left: a provider sends what it likes. */
export const PAYMENT_SUCCEEDED = 'payment.succeeded';

/** What a provider tells. */
export type PaymentEvent =
  | { readonly type: typeof PAYMENT_SUCCEEDED; readonly orderId: string; readonly payment: Payment }
  | { readonly type: 'other' };

const event = z.object({ type: z.string().min(1).max(64) });
const succeeded = z.object({
  paymentId: z.string().refine(isId),
  orderId: z.string().refine(isOrderId),
  amountCents: z.int().min(0),
});

/** Reads the body of the webhook, or says in a sentence what is wrong. Fields that it does not know are fine. */
export function readPaymentEvent(text: string): PaymentEvent | string {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    return 'The body is not JSON.';
  }
  const known = event.safeParse(raw);
  if (!known.success) return 'The body must be an object with a type.';
  if (known.data.type !== PAYMENT_SUCCEEDED) return { type: 'other' };
  const read = succeeded.safeParse(raw);
  if (!read.success) {
    const fields = read.error.issues.map(({ path }) => path.join('.'));
    return `Wrong: ${fields.join(', ')}. Needed: paymentId and orderId as texts, amountCents as a whole number.`;
  }
  const { paymentId, orderId, amountCents } = read.data;
  return { type: PAYMENT_SUCCEEDED, orderId, payment: { paymentId, amountCents } };
}
