import { assertNever } from '../../core/errors.js';
import type { Log } from '../../core/ports/log.js';
import { collectBody } from '../body.js';
import { readPaymentEvent } from '../payment-event.js';
import { promisesJson } from '../purchase-request.js';
import type { HttpServices } from '../services.js';
import type { Exchange, Router } from './router.js';

/**
 * Where the payment provider tells what it took. Nobody signs in here: the body is signed. A copy of a message, however
 * late, is the same payment and changes nothing; 2xx ends the retries of a provider, 503 asks for one. What is signed and
 * cannot be booked has no row: it is told as an error, each time, since money was taken.
 */
export function mountPaymentWebhook(router: Router, { webhook, log }: HttpServices): void {
  router.mount('payment', '/v1/payments/webhook', {
    post: async (exchange) => {
      const { req, res, replies } = exchange;
      if (webhook === null) return replies.problem(req, res, 'payment_not_configured');
      if (!promisesJson(req.headers)) return replies.problem(req, res, 'unsupported_media_type');
      const body = await new Promise<string | null>((resolve) => collectBody(req, resolve));
      if (body === null) return replies.problem(req, res, 'payload_too_large');
      const verdict = webhook.verifier.verify(req.headers['payment-signature'], body);
      if (verdict === 'invalid') return replies.problem(req, res, 'bad_signature', { detail: HEADER_SHAPE });
      if (verdict === 'stale') {
        return replies.problem(req, res, 'bad_signature', { detail: 'The time of the signature is too far from now.' });
      }
      await tell(exchange, body, { pay: webhook.tell, log });
    },
  });
}

const HEADER_SHAPE = 'A valid header Payment-Signature is needed: t=<unix seconds>,v1=<hex>.';
const LOST = 'money was taken that cannot be booked: ask the provider';

async function tell(
  { req, res, replies }: Exchange,
  body: string,
  { pay, log }: { readonly pay: NonNullable<HttpServices['webhook']>['tell']; readonly log: Log },
): Promise<void> {
  const event = readPaymentEvent(body);
  if (event.type === 'other') return replies.json(req, res, 200, 'ignored', { outcome: 'ignored' });
  if (event.type === 'unreadable') {
    const { detail, claims } = event;
    log.error({ ...claims, outcome: event.type, detail }, LOST);
    return replies.problem(req, res, 'bad_request', { detail });
  }
  const { orderId, payment } = event;
  const outcome = await pay(orderId, payment);
  if (outcome === 'not_found' || outcome === 'payment_conflict') log.error({ orderId, ...payment, outcome }, LOST);
  switch (outcome) {
    case 'paid':
    case 'refund_due':
      return replies.json(req, res, 200, outcome, { outcome, orderId, paymentId: payment.paymentId });
    case 'not_found':
      return replies.problem(req, res, 'order_not_found', { detail: 'There is no such order.' });
    case 'payment_conflict':
      return replies.problem(req, res, outcome);
    default:
      return assertNever(outcome);
  }
}
