import { z } from 'zod';
import { isOrderId, isPaymentId } from '../core/ids.js';
import type { Payment } from '../core/ports/order-transitions.js';

/** The one event that moves an order. Others are taken and left: a provider sends what it likes. */
const PAYMENT_SUCCEEDED = 'payment.succeeded';

/**
 * What a provider tells. `unreadable`: it may speak of money, but nobody can book it; `detail` is a sentence, `claims`
 * what it says of the payment, unchecked, for a person.
 */
export type PaymentEvent =
  | { readonly type: typeof PAYMENT_SUCCEEDED; readonly orderId: string; readonly payment: Payment }
  | { readonly type: 'other' }
  | { readonly type: 'unreadable'; readonly detail: string; readonly claims: PaymentClaims };
type PaymentClaims = Readonly<Partial<Record<'orderId' | 'paymentId' | 'amountCents', unknown>>>;

const event = z.object({ type: z.string().min(1).max(64) });
const succeeded = z.object({
  paymentId: z.string().refine(isPaymentId),
  orderId: z.string().refine(isOrderId),
  amountCents: z.int().min(0),
});

/** Reads the body of the webhook. Fields that it does not know are fine. Never throws. */
export function readPaymentEvent(text: string): PaymentEvent {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    return { type: 'unreadable', detail: 'The body is not JSON.', claims: {} };
  }
  const known = event.safeParse(raw);
  if (!known.success) return unreadable('The body must be an object with a type.', raw);
  if (known.data.type !== PAYMENT_SUCCEEDED) return { type: 'other' };
  const read = succeeded.safeParse(raw);
  if (!read.success) {
    const fields = read.error.issues.map(({ path }) => path.join('.'));
    const needed = 'paymentId and orderId as texts, amountCents as a whole number';
    return unreadable(`Wrong: ${fields.join(', ')}. Needed: ${needed}.`, raw);
  }
  const { paymentId, orderId, amountCents } = read.data;
  return { type: PAYMENT_SUCCEEDED, orderId, payment: { paymentId, amountCents } };
}

function unreadable(detail: string, raw: unknown): PaymentEvent {
  const { orderId, paymentId, amountCents } = (raw ?? {}) as PaymentClaims;
  return { type: 'unreadable', detail, claims: { orderId, paymentId, amountCents } };
}
