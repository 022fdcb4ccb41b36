import { z } from 'zod';
import { assertNever } from '../../core/errors.js';
import { fieldErrors, plainError } from '../../core/field-errors.js';
import { parseJson } from '../../core/parse-json.js';
import type { Payment } from '../../core/ports/order-transitions.js';
import { json, problem } from '../answer.js';
import { BODY_BYTES_MAX } from '../body.js';
import { defineRoute } from '../route.js';
import { count, currency, orderId, paymentId, text } from '../schemas.js';

/** The one event that moves an order. Others are acknowledged and ignored: a provider sends what it likes. */
const PAYMENT_SUCCEEDED = 'payment.succeeded';

/**
 * Where the payment provider reports what it took. No token: the body is signed. A copy of a message, however late, is
 * the same payment and changes nothing; 2xx ends the retries of a provider, 503 asks for one. What is signed and cannot
 * be recorded has no row: it is logged as an error, each time, since money was taken.
 */
export const paymentWebhook = defineRoute({
  method: 'post',
  path: '/v1/payments/webhook',
  label: 'payment',
  operationId: 'reportPayment',
  summary: 'A payment provider reports what it took. Safe to repeat: a payment counts once, by its id.',
  access: 'none',
  endpoint: null,
  headers: [
    {
      name: 'Payment-Signature',
      required: true,
      description: 't: Unix seconds, at most 300 from now; v1: hex of HMAC-SHA-256 over "<t>.<body>"',
      schema: z.string().regex(/^t=[0-9]{1,12},v1=[0-9a-f]{64}$/),
    },
  ],
  body: {
    schema: z
      .object({
        type: text.meta({ description: '`payment.succeeded`' }),
        paymentId: paymentId.optional(),
        orderId: orderId.optional(),
        amountCents: count.optional(),
        currency: currency.optional(),
        live: z.boolean().optional().meta({ description: 'real money; false for a trial mode of the provider' }),
      })
      .meta({ id: 'PaymentEvent' }),
    required: true,
    bytesMax: BODY_BYTES_MAX,
    read: (text) => ({ value: text }), // the signature is over the text, so it is checked first
  },
  answers: {
    200: {
      description: 'recorded: the order is paid, or the money is owed back; `ignored` for other types',
      schema: z.object({
        outcome: z.enum(['paid', 'refund_due', 'ignored']),
        orderId: text.optional(),
        paymentId: text.optional(),
      }),
    },
  },
  problems: ['bad_signature', 'order_not_found', 'payment_conflict', 'wrong_payment_mode', 'payment_not_configured'],
  early: (_call, { webhook }) => (webhook === null ? problem('payment_not_configured') : null),
  async handle({ body, req }, { webhook, log }) {
    if (webhook === null) return problem('payment_not_configured');
    const verdict = webhook.verifier.verify(req.headers['payment-signature'], body);
    if (verdict === 'invalid') return problem('bad_signature', { detail: HEADER_SHAPE });
    if (verdict === 'stale') {
      return problem('bad_signature', { detail: 'The time of the signature is too far from now.' });
    }
    const event = readPaymentEvent(body);
    if (event.type === 'other') return json(200, 'ignored', { outcome: 'ignored' });
    if (event.type === 'unreadable') {
      log.error({ ...event.claims, outcome: event.type, detail: event.detail }, LOST);
      return problem('bad_request', { detail: event.detail });
    }
    const { orderId, payment, live } = event;
    if (live !== (webhook.mode === 'live')) {
      const fields = { orderId, ...payment, live, outcome: 'wrong_payment_mode' };
      if (live) log.error(fields, LOST);
      else log.warn(fields, TEST_PAYMENT);
      return problem('wrong_payment_mode');
    }
    const outcome = await webhook.pay(orderId, payment);
    if (outcome === 'not_found' || outcome === 'payment_conflict') log.error({ orderId, ...payment, outcome }, LOST);
    switch (outcome) {
      case 'paid':
      case 'refund_due':
        return json(200, outcome, { outcome, orderId, paymentId: payment.paymentId });
      case 'not_found':
        return problem('order_not_found', { detail: 'There is no such order.' });
      case 'payment_conflict':
        return problem(outcome);
      default:
        return assertNever(outcome);
    }
  },
});

const HEADER_SHAPE = 'A valid header Payment-Signature is needed: t=<unix seconds>,v1=<hex>.';
const TEST_PAYMENT = 'a payment of the trial mode of the provider was reported here: nothing was recorded';
const LOST = 'money was taken that cannot be recorded: ask the provider';

/**
 * What a provider reports. `unreadable`: it may be about money, but it cannot be recorded; `detail` is a sentence,
 * `claims` what it says of the payment, unchecked, for a person.
 */
type PaymentEvent =
  | {
      readonly type: typeof PAYMENT_SUCCEEDED;
      readonly orderId: string;
      readonly payment: Payment;
      readonly live: boolean;
    }
  | { readonly type: 'other' }
  | { readonly type: 'unreadable'; readonly detail: string; readonly claims: PaymentClaims };
const CLAIMS = ['orderId', 'paymentId', 'amountCents', 'currency', 'live'] as const;
type PaymentClaims = Readonly<Partial<Record<(typeof CLAIMS)[number], unknown>>>;

const typed = z.object({ type: z.string().min(1).max(64) });
const succeeded = z.object({ paymentId, orderId, amountCents: z.int().min(0), currency, live: z.boolean() });

/** Reads the body of the webhook. Fields that it does not know are fine. Never throws. */
export function readPaymentEvent(text: string): PaymentEvent {
  const parsed = parseJson(text, 'The body');
  if ('error' in parsed) return { type: 'unreadable', detail: parsed.error, claims: {} };
  const raw = parsed.value;
  const known = typed.safeParse(raw);
  if (!known.success) return unreadable('The body must be an object with a type.', raw);
  if (known.data.type !== PAYMENT_SUCCEEDED) return { type: 'other' };
  const read = succeeded.safeParse(raw, { error: plainError });
  if (!read.success) {
    const sentences = fieldErrors(read.error).map(({ message }) => message);
    return unreadable(sentences.join(' '), raw);
  }
  const { orderId, live, ...payment } = read.data;
  return { type: PAYMENT_SUCCEEDED, orderId, payment, live };
}

function unreadable(detail: string, raw: unknown): PaymentEvent {
  const claimed = (raw ?? {}) as PaymentClaims;
  return { type: 'unreadable', detail, claims: Object.fromEntries(CLAIMS.map((name) => [name, claimed[name]])) };
}
