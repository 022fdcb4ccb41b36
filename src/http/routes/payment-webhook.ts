import { assertNever } from '../../domain/errors.js';
import { collectBody } from '../body.js';
import { readPaymentEvent } from '../payment-event.js';
import { promisesJson } from '../purchase-request.js';
import type { HttpServices } from '../services.js';
import type { Exchange, Router } from './router.js';

/**
 * Where the payment provider tells what it took. Nobody signs in here: the body is signed. A copy of a message, however
 * late, is the same payment and changes nothing; 2xx ends the retries of a provider, 503 asks for one.
 */
export function mountPaymentWebhook(router: Router, { webhook }: HttpServices): void {
  router.mount('payment', '/v1/payments/webhook', {
    post: async (exchange) => {
      const { req, res, replies } = exchange;
      if (webhook === null) return replies.problem(req, res, 'payment_not_configured');
      if (!promisesJson(req.headers)) return replies.problem(req, res, 'unsupported_media_type');
      const body = await new Promise<string | null>((resolve) => collectBody(req, resolve));
      if (body === null) return replies.problem(req, res, 'payload_too_large');
      const verdict = webhook.verifier.verify(req.headers['payment-signature'], body);
      if (verdict === 'invalid') return replies.problem(req, res, 'bad_signature');
      if (verdict === 'stale') {
        return replies.problem(req, res, 'bad_signature', { detail: 'The time of the signature is too far from now.' });
      }
      await tell(exchange, body, webhook.tell);
    },
  });
}

async function tell(
  { req, res, replies }: Exchange,
  body: string,
  pay: NonNullable<HttpServices['webhook']>['tell'],
): Promise<void> {
  const event = readPaymentEvent(body);
  if (typeof event === 'string') return replies.problem(req, res, 'bad_request', { detail: event });
  if (event.type === 'other') return replies.json(req, res, 200, 'ignored', { outcome: 'ignored' });
  const { orderId, payment } = event;
  const outcome = await pay(orderId, payment);
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
