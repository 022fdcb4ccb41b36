import { z } from 'zod';
import { ConfigError } from '../core/config/load.js';
import type { Section } from '../core/config/schema.js';
import { assertNever } from '../core/errors.js';
import { isPaymentId } from '../core/ids.js';
import type { Log } from '../core/ports/log.js';
import type { FoundCharge, Payments, RefundOutcome } from '../core/ports/payment-provider.js';

// Your payment service over plain HTTP (docs/payments.md): three calls, and a webhook in our format. Also an example of
// a provider in one file.

/** Less than PROVIDER_CALL_MAX_MS, so that a late call ends itself and its reason is logged. */
const CALL_MAX_MS = 15_000;
const ANSWER_BYTES_MAX = 16_384;

const charge = z.discriminatedUnion('status', [
  z.object({
    status: z.literal('succeeded'),
    paymentId: z.string().refine(isPaymentId),
    amountCents: z.int().min(0),
    currency: z.string().regex(/^[A-Z]{3}$/),
  }),
  z.object({ status: z.enum(['declined', 'not_found', 'pending']) }),
  z.object({ status: z.literal('action_needed'), clientSecret: z.string().min(1) }),
]);
const refund = z.discriminatedUnion('status', [
  z.object({ status: z.enum(['refunded', 'pending']) }),
  z.object({ status: z.literal('refused'), detail: z.string() }),
]);

/** Only an answer with 200 and a known status counts, because a proxy in between answers with its own errors. */
class NoAnswer extends Error {
  readonly status: number | null;

  constructor(message: string, status: number | null = null) {
    super(message);
    this.status = status;
  }
}

/** Starts even if the service does not answer. @throws ConfigError if the service refuses our key */
export async function openHttpProvider(
  { apiKey, apiUrl }: Pick<Section<'payment'>, 'apiKey' | 'apiUrl'>,
  log: Log,
): Promise<Payments> {
  const base = apiUrl.replace(/\/+$/, '');
  const ask = async (path: string, key?: string, body?: object): Promise<unknown> => {
    const response = await fetch(`${base}${path}`, {
      headers: {
        authorization: `Bearer ${apiKey}`,
        accept: 'application/json',
        ...(key === undefined ? {} : { 'idempotency-key': key }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      redirect: 'error', // the target of a redirect would learn our key
      signal: AbortSignal.timeout(CALL_MAX_MS),
    });
    const text = await textOf(response);
    if (response.status !== 200) throw new NoAnswer(`the answer has status ${response.status}`, response.status);
    return JSON.parse(text);
  };
  /** Logs any error and answers `unknown`, which says nothing about the money. */
  const orUnknown = async <Answer>(facts: object, call: Promise<Answer>) => {
    try {
      return await call;
    } catch (error) {
      log.warn({ ...facts, detail: sentenceOf(error) }, 'the payment service gave no answer');
      return { outcome: 'unknown' } as const;
    }
  };
  const chargePath = (orderId: string, key: string): string => `/charges/${orderId}/${key}`;

  try {
    await ask(chargePath('1', 'start'));
  } catch (error) {
    const status = error instanceof NoAnswer ? error.status : null;
    if (status === 401 || status === 403) {
      throw new ConfigError([`PAYMENT_API_KEY is refused by PAYMENT_API_URL (${status}): set the key of that service`]);
    }
    log.warn({ detail: sentenceOf(error) }, 'the payment service does not answer; nobody can pay until it answers');
  }

  return {
    webhook: null,
    provider: {
      needsMethod: false,

      async charge(orderId, price, key, method) {
        const body = { orderId, key, ...price, ...(method === undefined ? {} : { paymentMethod: method }) };
        const answer = await orUnknown({ orderId, key }, ask('/charges', `${orderId}-${key}`, body).then(chargeIn));
        return answer.outcome === 'not_found' ? { outcome: 'unknown' } : answer;
      },

      lookUp(orderId, _price, key, giveUp = false) {
        const path = `${chargePath(orderId, key)}${giveUp ? '?giveUp=true' : ''}`;
        return orUnknown({ orderId, key }, ask(path).then(chargeIn));
      },

      refund: (paymentId, amountCents, key, part) =>
        orUnknown({ paymentId }, ask('/refunds', `refund-${key}`, { paymentId, amountCents, ...part }).then(refundIn)),
    },
  };
}

/** @throws ZodError if the answer is not a known one */
function chargeIn(value: unknown): FoundCharge {
  const answer = charge.parse(value);
  switch (answer.status) {
    case 'succeeded': {
      const { paymentId, amountCents, currency } = answer;
      return { outcome: 'succeeded', payment: { paymentId, amountCents, currency } };
    }
    case 'action_needed':
      return { outcome: 'action_needed', clientSecret: answer.clientSecret };
    case 'pending':
      return { outcome: 'unknown' };
    case 'declined':
    case 'not_found':
      return { outcome: answer.status };
    default:
      return assertNever(answer);
  }
}

/** @throws ZodError if the answer is not a known one */
function refundIn(value: unknown): RefundOutcome {
  const answer = refund.parse(value);
  if (answer.status === 'refused') return { outcome: 'refused', detail: answer.detail };
  return { outcome: answer.status === 'pending' ? 'unknown' : 'refunded' };
}

/** @throws NoAnswer if the answer is too long */
async function textOf({ body }: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body ?? []) {
    bytes += part.byteLength;
    if (bytes > ANSWER_BYTES_MAX) throw new NoAnswer(`the answer has more than ${ANSWER_BYTES_MAX} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

/** Describes an error without the text of the answer, which may contain anything. */
function sentenceOf(error: unknown): string {
  if (error instanceof NoAnswer) return error.message;
  if (error instanceof SyntaxError || error instanceof z.ZodError) return 'the answer is not valid';
  const { cause } = error as { readonly cause?: { readonly code?: string } };
  return cause?.code ?? (error as Error).name;
}
