import { z } from 'zod';
import { assertNever } from '../../core/errors.js';
import { fieldErrors, plainError } from '../../core/field-errors.js';
import { parseJson } from '../../core/parse-json.js';
import { PAYMENT_CLAIMS, type PaymentClaims, type PaymentReport } from '../../core/ports/payment-provider.js';
import type { OrderTransitions } from '../../core/ports/order-transitions.js';
import { json, problem } from '../answer.js';
import { defineRoute, type RouteServices } from '../route.js';
import { count, currency, orderId, paymentId, text } from '../schemas.js';

/** The one event of our own format that moves an order. Others are acknowledged and ignored. */
const PAYMENT_SUCCEEDED = 'payment.succeeded';
/** The header of our own format. */
export const PAYMENT_SIGNATURE = 'payment-signature';
/** A provider sends whole objects: Stripe some 4 kB, with notes of a shop more. */
const REPORT_BYTES_MAX = 65_536;

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
      required: false,
      description:
        't: Unix seconds, at most 300 from now; v1: hex of HMAC-SHA-256 over "<t>.<body>". Needed unless PAYMENT_PROVIDER is stripe',
      schema: z.string().regex(/^t=[0-9]{1,12}, *v1=[0-9a-fA-F]{64}$/),
    },
    {
      name: 'Stripe-Signature',
      required: false,
      description: 'the same, as Stripe signs its events. Needed where PAYMENT_PROVIDER is stripe',
      schema: text,
    },
  ],
  body: {
    schema: z
      .object({
        type: text.meta({ description: '`payment.succeeded`, or an event of Stripe, whose fields are its own' }),
        paymentId: paymentId.optional(),
        orderId: orderId.optional(),
        amountCents: count.optional(),
        currency: currency.optional(),
        live: z.boolean().optional().meta({ description: 'real money; false for a trial mode of the provider' }),
      })
      .meta({ id: 'PaymentEvent' }),
    required: true,
    bytesMax: REPORT_BYTES_MAX,
    read: (text) => ({ value: text }), // the signature is over the text, so it is checked first
  },
  answers: {
    200: {
      description:
        'recorded: the order is paid, or the money is owed back; `noted`: looked after; `ignored`: nothing that concerns an order',
      schema: z.object({
        outcome: z.enum(['paid', 'refund_due', 'noted', 'ignored']),
        orderId: text.optional(),
        paymentId: text.optional(),
      }),
    },
  },
  problems: ['bad_signature', 'order_not_found', 'payment_conflict', 'wrong_payment_mode', 'payment_not_configured'],
  early: (_call, { webhook }) => (webhook === null ? problem('payment_not_configured') : null),
  async handle({ body, req }, { webhook, log }) {
    if (webhook === null) return problem('payment_not_configured');
    const verdict = webhook.verifier.verify(req.headers[webhook.header], body);
    if (verdict === 'invalid') return problem('bad_signature', { detail: headerShape(webhook.header) });
    if (verdict === 'stale') {
      return problem('bad_signature', { detail: 'The time of the signature is too far from now.' });
    }
    const report = webhook.read(body);
    if (report.type === 'other') return json(200, 'ignored', { outcome: 'ignored' });
    if (report.type === 'unreadable') {
      log.error({ ...report.claims, outcome: report.type, detail: report.detail }, LOST);
      return problem('bad_request', { detail: report.detail });
    }
    if (report.live !== (webhook.mode === 'live')) return refuseMode(report, log);
    switch (report.type) {
      case 'succeeded':
        return recorded(report, await webhook.pay(report.orderId, report.payment), log);
      case 'changed':
        await webhook.resolve(report.orderId);
        return json(200, 'noted', { outcome: 'noted', orderId: report.orderId });
      case 'refund_failed': {
        const { paymentId, detail } = report;
        if (!(await webhook.isRefund(paymentId))) {
          log.warn({ paymentId, detail }, 'a refund that did not arrive is none of this system');
          return json(200, 'ignored', { outcome: 'ignored' });
        }
        log.error({ paymentId, detail }, 'a refund that was made did not arrive: pay the buyer by hand');
        return json(200, 'noted', { outcome: 'noted', paymentId });
      }
      default:
        return assertNever(report);
    }
  },
});

type Log = RouteServices['log'];
type ReportOf<T extends PaymentReport['type']> = Extract<PaymentReport, { readonly type: T }>;

function recorded(
  { orderId, payment }: ReportOf<'succeeded'>,
  outcome: Awaited<ReturnType<OrderTransitions['pay']>>,
  log: Log,
) {
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
}

/** Real money that came to a trial system is lost unless somebody sees it. */
function refuseMode(report: ReportOf<'succeeded' | 'changed' | 'refund_failed'>, log: Log) {
  const { type, ...rest } = report;
  const fields = report.type === 'succeeded' ? { orderId: report.orderId, ...report.payment, live: report.live } : rest;
  const noted = { ...fields, outcome: 'wrong_payment_mode' };
  if (type === 'succeeded' && report.live) log.error(noted, LOST);
  else log.warn(noted, WRONG_MODE);
  return problem('wrong_payment_mode');
}

const headerShape = (header: string): string => {
  const name = header.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
  return `A valid header ${name} is needed: t=<unix seconds>,v1=<hex>.`;
};
const WRONG_MODE = 'a payment provider reports something of its other mode (live or test) here: nothing was recorded';
const LOST = 'money was taken that cannot be recorded: ask the provider';

const typed = z.object({ type: z.string().min(1).max(64) });
const succeeded = z.object({ paymentId, orderId, amountCents: z.int().min(0), currency, live: z.boolean() });

/** Reads a body in the format of ours. Fields that it does not know are fine. Never throws. */
export function readPaymentEvent(text: string): PaymentReport {
  const parsed = parseJson(text, 'The body');
  if ('error' in parsed) return { type: 'unreadable', detail: parsed.error, claims: {} };
  const raw = parsed.value;
  const known = typed.safeParse(raw);
  if (!known.success) return unreadable('The body must be an object with a type.', raw, text);
  if (known.data.type !== PAYMENT_SUCCEEDED) return { type: 'other' };
  const read = succeeded.safeParse(raw, { error: plainError });
  if (!read.success) {
    const sentences = fieldErrors(read.error).map(({ message }) => message);
    return unreadable(sentences.join(' '), raw, text);
  }
  const { orderId, live, ...payment } = read.data;
  return { type: 'succeeded', orderId, payment, live };
}

function unreadable(detail: string, raw: unknown, text: string): PaymentReport {
  const claimed = (raw ?? {}) as PaymentClaims;
  const claims = PAYMENT_CLAIMS.map((name) => {
    const value = claimed[name];
    return [name, name.endsWith('Id') && typeof value === 'number' ? digitsOf(name, text) : value] as const;
  });
  return { type: 'unreadable', detail, claims: Object.fromEntries(claims) };
}

/** An id that came as a number, with all its digits: JavaScript rounds it when it reads it. */
const digitsOf = (name: string, text: string): string | undefined =>
  new RegExp(`"${name}"\\s*:\\s*([-+.\\deE]+)`).exec(text)?.[1];
