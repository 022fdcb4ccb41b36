import { createHash } from 'node:crypto';
import { z } from 'zod';
import { amount, currency, orderId, paymentId, text } from '../../contract/fields.js';
import { amountText } from '../../core/amount-text.js';
import { otherCell } from '../../core/cell.js';
import { assertNever } from '../../core/errors.js';
import { isPaymentId } from '../../core/ids.js';
import { fieldErrors, plainError } from '../../core/field-errors.js';
import { parseJson } from '../../core/parse-json.js';
import { PAYMENT_CLAIMS, type PaymentClaims, type PaymentReport } from '../../core/ports/payment-provider.js';
import type { Payment } from '../../core/ports/order-transitions.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { json, problem } from '../answer.js';
import { defineRoute, type RouteServices } from '../route.js';

/** The signature header of our own format. */
export const PAYMENT_SIGNATURE = 'payment-signature';
/** A provider sends whole objects. Stripe sends about 4 kB, and more if the shop adds notes. */
const REPORT_BYTES_MAX = 65_536;

/**
 * Receives the reports of the payment provider. The body is signed, so no token is needed. A repeated message, however
 * late, names the same payment and changes nothing. A 2xx ends the provider's retries, a 503 asks for another. A signed
 * message that cannot be recorded as a payment becomes a case for an operator before it is answered.
 */
export const paymentWebhook = defineRoute({
  method: 'post',
  path: '/v1/payments/webhook',
  label: 'payment',
  operationId: 'reportPayment',
  summary: 'Receives payments that the provider reports. A payment id counts once. Safe to repeat.',
  access: 'none',
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
      description: 'the signature of a Stripe event. Required if PAYMENT_PROVIDER is stripe',
      schema: text,
    },
  ],
  body: {
    schema: z
      .object({
        type: text.meta({
          description:
            '`payment.succeeded`, `payment.refunded`, `payment.disputed` or `refund.failed`; or an event of Stripe, whose fields are its own',
        }),
        paymentId: paymentId.optional(),
        orderId: orderId.optional(),
        amountCents: amount.optional(),
        currency: currency.optional(),
        live: z
          .boolean()
          .optional()
          .meta({ description: 'true for real money, false for the test mode of the provider' }),
      })
      .meta({ id: 'PaymentEvent' }),
    required: true,
    bytesMax: REPORT_BYTES_MAX,
    read: (text) => ({ value: text }), // the signature covers the text, so it is checked before the JSON is parsed
  },
  answers: {
    200: {
      description:
        'recorded: the order is paid, or the money is owed back; `noted`: stored as a case for an operator; `ignored`: does not concern an order',
      schema: z.object({
        outcome: z.enum(['paid', 'refund_due', 'noted', 'ignored']),
        orderId: text.optional(),
        paymentId: text.optional(),
      }),
    },
  },
  problems: ['bad_signature', 'order_not_found', 'payment_conflict', 'wrong_payment_mode', 'payment_not_configured'],
  early({ req }, { webhook }) {
    if (webhook === null) return problem('payment_not_configured');
    return webhook.verifier.refuses(req.headers[webhook.header]) ? badSignature(webhook.header) : null;
  },
  async handle({ body, req }, { webhook, log, cell }) {
    if (webhook === null) return problem('payment_not_configured');
    const verdict = webhook.verifier.verify(req.headers[webhook.header], body);
    if (verdict === 'invalid') return badSignature(webhook.header);
    if (verdict === 'stale') {
      return problem('bad_signature', { detail: 'The time of the signature is too far from now.' });
    }
    const report = webhook.read(body);
    // A provider sends each report to all cells.
    if (report.type === 'other' || ('orderId' in report && otherCell(cell, report) !== null)) {
      return json(200, 'ignored', { outcome: 'ignored' });
    }
    if (report.type === 'unreadable') {
      await noteUnrecorded(report.claims, body, `unreadable: ${report.detail}`, webhook);
      log.error({ ...report.claims, outcome: report.type, detail: report.detail }, LOST);
      return problem('bad_request', { detail: report.detail });
    }
    if (report.live !== (webhook.mode === 'live')) return refuseMode(report, body, { webhook, log });
    switch (report.type) {
      case 'succeeded':
        return recorded(report, body, { webhook, log });
      case 'changed':
        await webhook.resolve(report.orderId);
        return json(200, 'noted', { outcome: 'noted', orderId: report.orderId });
      case 'refund_failed':
      case 'refunded':
      case 'disputed':
        return noted(report, { webhook, log });
      default:
        return assertNever(report);
    }
  },
});

type Log = RouteServices['log'];
type ReportOf<T extends PaymentReport['type']> = Extract<PaymentReport, { readonly type: T }>;

interface Ports {
  readonly webhook: NonNullable<RouteServices['webhook']>;
  readonly log: Log;
}

async function recorded(report: ReportOf<'succeeded'>, body: string, { webhook, log }: Ports) {
  const { orderId, payment } = report;
  const { paymentId } = payment;
  const outcome = await webhook.pay(orderId, payment);
  switch (outcome) {
    case 'paid':
    case 'refund_due':
      await webhook.cases.settle('unrecorded', paymentId);
      return json(200, outcome, { outcome, orderId, paymentId });
    case 'not_found':
    case 'payment_conflict':
    case 'coupon_missing': {
      const why = outcome === 'coupon_missing' ? `${outcome}: ${COUPON_MISSING}` : outcome;
      await noteUnrecorded({ orderId, ...payment, live: report.live }, body, why, webhook);
      log.error({ orderId, ...payment, outcome }, LOST);
      if (outcome === 'not_found') return problem('order_not_found', { detail: 'There is no such order.' });
      return problem('payment_conflict', outcome === 'coupon_missing' ? { detail: COUPON_MISSING } : {});
    }
    default:
      return assertNever(outcome);
  }
}

/**
 * Moves the order whose money went back or is disputed. Records a case if a person must act. Ignores payments that
 * other programs made with the provider's account.
 */
async function noted(report: ReportOf<'refund_failed' | 'refunded' | 'disputed'>, { webhook, log }: Ports) {
  const { cases, money } = webhook;
  const payment: Partial<Payment> & Pick<Payment, 'paymentId'> =
    report.type === 'refund_failed' ? report : report.payment;
  const { paymentId, amountCents = null, currency = null } = payment;
  const orderId = await cases.orderOf(paymentId);
  const isOurs = report.type === 'refunded' && (await webhook.isRefund(paymentId));
  if (orderId === null || isOurs) {
    if (orderId === null)
      log.warn({ paymentId, type: report.type }, 'a report of a payment that does not belong to this system');
    return json(200, 'ignored', { outcome: 'ignored' });
  }
  const found = { paymentId, orderId, amountCents, currency };
  switch (report.type) {
    case 'refund_failed':
      await money.cameBack(paymentId, report.ourId ?? report.refundId ?? '', report.detail);
      await cases.note({
        ...found,
        kind: 'refund_failed',
        subject: subjectOf(report.refundId ?? paymentId),
        detail: report.detail,
      });
      break;
    case 'refunded': {
      const { amountCents: back } = report.payment;
      const detail = `refunded at the provider: ${currency === null ? back : amountText(back, currency)}`;
      const refunded = { ...found, amountCents: back, kind: 'refunded_elsewhere', subject: paymentId, detail } as const;
      const recorded = await money.refundedElsewhere(refunded);
      if (recorded !== 'does_not_fit') return json(200, 'noted', { outcome: 'noted', paymentId });
      break;
    }
    case 'disputed': {
      const { disputeId, detail, isOver, isLost = false } = report;
      const word = isLost ? 'lost' : isOver ? 'won' : 'open';
      const { amountCents } = report.payment;
      const dispute = { ...found, amountCents, kind: 'disputed', subject: subjectOf(disputeId), detail } as const;
      await money.disputed(dispute, word, isOver ? 'closed' : 'open');
      break;
    }
    default:
      return assertNever(report);
  }
  log.error({ ...found, type: report.type }, 'a payment needs a person: run seckill payment-cases list');
  return json(200, 'noted', { outcome: 'noted', paymentId });
}

/**
 * Refuses a report of the wrong mode. Records a case if real money reached a test system, because it is lost unless an
 * operator sees it.
 */
async function refuseMode(
  report: Exclude<PaymentReport, ReportOf<'other' | 'unreadable'>>,
  body: string,
  { webhook, log }: Ports,
) {
  const { type, ...rest } = report;
  if (report.type === 'succeeded' && report.live) {
    const claims = { orderId: report.orderId, ...report.payment, live: report.live };
    await noteUnrecorded(claims, body, 'wrong_payment_mode', webhook);
    log.error({ ...claims, outcome: 'wrong_payment_mode' }, LOST);
  } else log.warn({ type, ...rest, outcome: 'wrong_payment_mode' }, WRONG_MODE);
  return problem('wrong_payment_mode');
}

/**
 * Records a case for a payment that could not be recorded. The fields of a report are unchecked, so a column gets a
 * field only if the format of the field is valid. The detail contains all fields.
 */
async function noteUnrecorded(
  claims: PaymentClaims,
  body: string,
  why: string,
  { cases, mode }: Ports['webhook'],
): Promise<void> {
  if (mode === 'live' && claims.live === false) return; // a test payment, so no money was taken
  const read = claimed.parse(claims);
  await cases.note({
    kind: 'unrecorded',
    subject: read.paymentId ?? hashOf(body),
    ...read,
    detail: `${why}; the report says ${JSON.stringify(claims)}`,
  });
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');
/** Returns the provider's id, or its hash if the id is not in our format. */
const subjectOf = (id: string): string => (isPaymentId(id) ? id : hashOf(id));

const claimed = z.object({
  paymentId: paymentId.nullable().catch(null),
  orderId: orderId.nullable().catch(null),
  amountCents: z.int().min(0).nullable().catch(null),
  currency: currency.nullable().catch(null),
});

function badSignature(header: string) {
  const name = header.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
  return problem('bad_signature', { detail: `Send a valid header ${name}: t=<unix seconds>,v1=<hex>.` });
}
const WRONG_MODE = 'the payment provider sent a report of the wrong mode (live or test); nothing was recorded';
const COUPON_MISSING = 'The order costs more, and its buyer has no coupon that leaves this amount.';
const LOST = 'money was taken that cannot be recorded; ask the provider';

const typed = z.object({ type: z.string().min(1).max(64) });
const detail = z.string().min(1).max(500);
const live = z.boolean();
const payment = { paymentId, amountCents: z.int().min(0), currency };
/** The events of our own format. Any other event is acknowledged and ignored. */
const EVENTS = {
  'payment.succeeded': z
    .object({ ...payment, orderId, live })
    .transform(({ orderId, live, ...payment }): PaymentReport => ({ type: 'succeeded', orderId, payment, live })),
  'payment.refunded': z
    .object({ ...payment, live })
    .transform(({ live, ...payment }): PaymentReport => ({ type: 'refunded', payment, live })),
  'payment.disputed': z
    .object({ ...payment, disputeId: paymentId, detail, isOver: z.boolean(), isLost: z.boolean().optional(), live })
    .transform(({ disputeId, detail, isOver, isLost, live, ...payment }): PaymentReport => ({
      type: 'disputed',
      disputeId,
      payment,
      detail,
      isOver,
      live,
      ...withoutUndefined({ isLost }),
    })),
  'refund.failed': z
    .object({ paymentId, refundId: paymentId.optional(), detail, live })
    .transform(({ paymentId, refundId, detail, live }): PaymentReport => ({
      type: 'refund_failed',
      paymentId,
      detail,
      live,
      ...withoutUndefined({ refundId }),
    })),
};
const isKnown = (type: string): type is keyof typeof EVENTS => Object.hasOwn(EVENTS, type);

/** Reads a body in our own format. Ignores unknown fields. Never throws. */
export function readPaymentEvent(text: string): PaymentReport {
  const parsed = parseJson(text, 'The body');
  if ('error' in parsed) return { type: 'unreadable', detail: parsed.error, claims: {} };
  const raw = parsed.value;
  const known = typed.safeParse(raw);
  if (!known.success) return unreadable('The body must be an object with a type.', raw, text);
  const { type } = known.data;
  if (!isKnown(type)) return { type: 'other' };
  const read = EVENTS[type].safeParse(raw, { error: plainError });
  if (read.success) return read.data;
  return unreadable(
    fieldErrors(read.error)
      .map(({ message }) => message)
      .join(' '),
    raw,
    text,
  );
}

function unreadable(detail: string, raw: unknown, text: string): PaymentReport {
  const claimed = (raw ?? {}) as PaymentClaims;
  const claims = PAYMENT_CLAIMS.map((name) => {
    const value = claimed[name];
    return [name, name.endsWith('Id') && typeof value === 'number' ? digitsOf(name, text) : value] as const;
  });
  return { type: 'unreadable', detail, claims: Object.fromEntries(claims) };
}

/** Returns all digits of an id that was sent as a number, because JavaScript rounds it when it parses the JSON. */
const digitsOf = (name: string, text: string): string | undefined =>
  new RegExp(`"${name}"\\s*:\\s*([-+.\\deE]+)`).exec(text)?.[1];
