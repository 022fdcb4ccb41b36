import Stripe from 'stripe';
import { z } from 'zod';
import { ConfigError } from '../core/config/load.js';
import type { Section } from '../core/config/schema.js';
import { isOrderId, isPaymentId } from '../core/ids.js';
import { withoutUndefined } from '../core/without-undefined.js';
import { parseJson } from '../core/parse-json.js';
import type { Log } from '../core/ports/log.js';
import type { Payment } from '../core/ports/order-transitions.js';
import type {
  ChargeOutcome,
  FoundCharge,
  PaymentProvider,
  PaymentReport,
  PaymentWebhook,
  Payments,
  Price,
  RefundOutcome,
  RefundPart,
} from '../core/ports/payment-provider.js';
import { fromStripeAmount, toStripeAmount } from './stripe-amount.js';

// Charges through PaymentIntents in two calls. The first creates an intent, with our key as Idempotency-Key, and moves
// no money. The second confirms it with the card. For a day, repeating the first call finds the intent without
// charging, and its current state is then read. After that, its metadata finds it (decision 48).

/** A charge takes at most three calls, and a keeper asks about it after half a minute. Our callers retry. */
const CALL_MAX_MS = 8_000;
/** An order and key have one intent, and a second if a program asked after more than a day. */
const FOUND_MAX = 10;

/** Starts even if Stripe does not answer. Payments are then unknown. @throws ConfigError if Stripe refuses the key */
export async function openStripe(config: Pick<Section<'payment'>, 'apiKey' | 'apiUrl'>, log: Log): Promise<Payments> {
  const stripe = clientOf(config);
  try {
    await stripe.paymentIntents.list({ limit: 1 });
  } catch (error) {
    if (error instanceof Stripe.errors.StripeAuthenticationError) throw new ConfigError([KEY_REFUSED]);
    if (error instanceof Stripe.errors.StripePermissionError) throw new ConfigError([KEY_MAY_NOT]);
    log.warn(factsOf(error), 'Stripe does not answer; nobody can pay until it answers');
  }
  return { provider: new StripeProvider(stripe, log), webhook: STRIPE_WEBHOOK };
}

const KEY_REFUSED =
  'Stripe refuses PAYMENT_API_KEY (401): copy the secret key from the Stripe dashboard, Developers, API keys';
const KEY_MAY_NOT =
  'PAYMENT_API_KEY may not read PaymentIntents (403): allow the restricted key to write PaymentIntents and Refunds, in the Stripe dashboard';

function clientOf({ apiKey, apiUrl }: Pick<Section<'payment'>, 'apiKey' | 'apiUrl'>): Stripe {
  const options = { maxNetworkRetries: 0, timeout: CALL_MAX_MS, telemetry: false };
  if (apiUrl === '') return new Stripe(apiKey, options);
  const { hostname: host, port, protocol } = new URL(apiUrl);
  const isPlain = protocol === 'http:';
  return new Stripe(apiKey, {
    ...options,
    host,
    port: port === '' ? (isPlain ? 80 : 443) : Number(port),
    protocol: isPlain ? 'http' : 'https',
  });
}

type Intent = Stripe.PaymentIntent;

class StripeProvider implements PaymentProvider {
  readonly needsMethod = true;
  readonly #stripe: Stripe;
  readonly #log: Log;

  constructor(stripe: Stripe, log: Log) {
    this.#stripe = stripe;
    this.#log = log;
  }

  async charge(orderId: string, price: Price, key: string, method?: string): Promise<ChargeOutcome> {
    const amount = toStripeAmount(price);
    if (amount === null) {
      this.#log.error(
        { orderId, ...price },
        'Stripe cannot charge a part of the smallest coin; change the price of the sale',
      );
      return { outcome: 'declined' };
    }
    const charged = this.#charge(orderId, price, key, amount, method);
    const answer = await this.#orUnknown('charge', { orderId, key }, charged);
    return answer.outcome === 'not_found' ? { outcome: 'unknown' } : answer;
  }

  lookUp(orderId: string, price: Price, key: string, giveUp = false): Promise<FoundCharge> {
    return this.#orUnknown('question', { orderId, key }, this.#lookUp(orderId, price, key, giveUp));
  }

  async refund(paymentId: string, amountCents: number, key: string, part?: RefundPart): Promise<RefundOutcome> {
    if (!paymentId.startsWith('pi_')) return { outcome: 'refused', detail: 'not a payment of Stripe' };
    const made =
      part === undefined ? this.#refund(paymentId, key) : this.#refundPart(paymentId, amountCents, key, part);
    return this.#orUnknown('refund', { paymentId }, made);
  }

  async #charge(orderId: string, price: Price, key: string, amount: number, method?: string): Promise<FoundCharge> {
    const made = await this.#begin(orderId, price, key, amount).catch((error: unknown) => {
      if (!isRefusal(error)) throw error;
      this.#log.error(
        { orderId, ...price, ...factsOf(error) },
        'Stripe refuses this price; change the price of the sale',
      );
      return null;
    });
    if (made === null) return { outcome: 'declined' };
    const now = made.isNew ? made.intent : await this.#stripe.paymentIntents.retrieve(made.intent.id);
    return isUntouched(now) ? this.#confirm(now, method, key) : this.#conclude(now, false);
  }

  /** Creates the intent of this order and key. If it was created before, returns it as it was then. */
  async #begin(orderId: string, price: Price, key: string, amount: number) {
    const made = await this.#stripe.paymentIntents.create(
      {
        amount,
        currency: price.currency.toLowerCase(),
        allowed_payment_method_types: ['card'], // other methods take days to settle, or lead to another page
        metadata: { order: orderId, attempt: key },
      },
      { idempotencyKey: `order-${orderId}-${key}` },
    );
    return { intent: made, isNew: made.lastResponse.headers['idempotent-replayed'] !== 'true' };
  }

  /** @param giveUp cancels the intent, unless it has ended or is about to be decided */
  async #conclude(intent: Intent, giveUp: boolean): Promise<FoundCharge> {
    switch (intent.status) {
      case 'succeeded': {
        const payment = paymentOf(intent);
        if (payment !== null) return { outcome: 'succeeded', payment };
        this.#log.error({ paymentId: intent.id }, 'a payment has an amount that was never requested; ask Stripe');
        return { outcome: 'unknown' };
      }
      case 'canceled':
        return { outcome: 'declined' };
      case 'requires_action':
        if (giveUp) return this.#cancel(intent);
        return intent.client_secret === null
          ? { outcome: 'unknown' }
          : { outcome: 'action_needed', clientSecret: intent.client_secret };
      case 'requires_confirmation':
      case 'requires_payment_method':
        // The buyer's page could try another card, so the intent is canceled before we answer `declined`.
        return giveUp || !isUntouched(intent) ? this.#cancel(intent) : { outcome: 'not_found' };
      case 'processing': // will be decided soon
      case 'requires_capture': // not created by us
      default: // from a later version of Stripe's API
        return { outcome: 'unknown' };
    }
  }

  async #cancel({ id }: Intent): Promise<FoundCharge> {
    try {
      await this.#stripe.paymentIntents.cancel(id);
      return { outcome: 'declined' };
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const now = await this.#stripe.paymentIntents.retrieve(id); // it has just ended, one way or the other
      return now.status === 'succeeded' || now.status === 'canceled'
        ? this.#conclude(now, false)
        : { outcome: 'unknown' };
    }
  }

  async #confirm(intent: Intent, method: string | undefined, key: string): Promise<FoundCharge> {
    try {
      const confirmed = await this.#stripe.paymentIntents.confirm(
        intent.id,
        { ...(method === undefined ? {} : { payment_method: method }), use_stripe_sdk: true },
        { idempotencyKey: `confirm-${intent.id}-${key}` },
      );
      return await this.#conclude(confirmed, false);
    } catch (error) {
      const isOvertaken = isKeyTaken(error); // another request with this key was faster
      if (!isOvertaken && !isRefusal(error)) throw error;
      // The card was refused or does not exist. The intent says which.
      if (!(error instanceof Stripe.errors.StripeCardError))
        this.#log.warn(factsOf(error), 'Stripe refuses to charge a card');
      const now = await this.#stripe.paymentIntents.retrieve(intent.id);
      return this.#conclude(now, !isOvertaken && now.status !== 'requires_action'); // the bank asks about an earlier card
    }
  }

  /** Finds another intent by metadata, preferring a tried card. The search misses intents of the last minute. */
  async #findBefore(orderId: string, key: string, except: string | undefined): Promise<Intent | undefined> {
    const query = `metadata['order']:'${orderId}' AND metadata['attempt']:'${key}'`;
    const { data } = await this.#stripe.paymentIntents.search({ query, limit: FOUND_MAX });
    const others = data.filter(({ id, status }) => id !== except && status !== 'canceled');
    const other = others.find((one) => !isUntouched(one)) ?? others[0];
    return other === undefined ? undefined : this.#stripe.paymentIntents.retrieve(other.id);
  }

  async #lookUp(orderId: string, price: Price, key: string, giveUp: boolean): Promise<FoundCharge> {
    const amount = toStripeAmount(price);
    if (amount === null) return { outcome: 'not_found' };
    let isThere = false;
    const made = await this.#begin(orderId, price, key, amount).catch((error: unknown) => {
      // A repeated old fault or a refused price may hide an older intent. A new fault proves nothing, nor does the
      // search, which lags behind: the caller asks again later.
      isThere = isKeyTaken(error);
      if (isThere || isRepeatedFault(error) || isRefusal(error)) return null;
      throw error;
    });
    const intent =
      made === null || made.isNew ? made?.intent : await this.#stripe.paymentIntents.retrieve(made.intent.id);
    if (intent !== undefined && !isUntouched(intent)) return this.#conclude(intent, giveUp);
    const before = await this.#findBefore(orderId, key, intent?.id);
    if (before !== undefined && (intent === undefined || !isUntouched(before))) return this.#conclude(before, giveUp);
    if (intent !== undefined) return this.#conclude(intent, giveUp);
    return { outcome: isThere ? 'unknown' : 'not_found' };
  }

  /** Looks for the refund first: after a day Stripe forgets the key, and would make a partial refund again. */
  async #refundPart(
    paymentId: string,
    amountCents: number,
    key: string,
    { refundId, currency }: RefundPart,
  ): Promise<RefundOutcome> {
    const amount = toStripeAmount({ amountCents, currency });
    if (amount === null) return { outcome: 'refused', detail: 'Stripe refunds no smaller part of this currency' };
    const { data } = await this.#stripe.refunds.list({ payment_intent: paymentId, limit: 100 });
    const before = data.find(({ metadata }) => metadata?.refund === refundId);
    if (before !== undefined) return refundOutcome(before);
    return this.#refund(paymentId, key, { amount, metadata: { refund_of: paymentId, refund: refundId } });
  }

  async #refund(
    paymentId: string,
    key: string,
    part: Stripe.RefundCreateParams = { metadata: { refund_of: paymentId } },
  ): Promise<RefundOutcome> {
    try {
      return refundOutcome(
        await this.#stripe.refunds.create({ payment_intent: paymentId, ...part }, { idempotencyKey: `refund-${key}` }),
      );
    } catch (error) {
      if (!isRefusal(error)) throw error;
      if (error.code === 'charge_already_refunded') return { outcome: 'refunded' };
      return { outcome: 'refused', detail: withoutSecrets(error.message) };
    }
  }

  /** Logs any error and answers `unknown`, which says nothing about the money. */
  async #orUnknown<Answer>(what: string, facts: object, call: Promise<Answer>) {
    try {
      return await call;
    } catch (error) {
      this.#log.warn({ ...facts, ...factsOf(error) }, `Stripe gave no answer to a ${what}`);
      return { outcome: 'unknown' } as const;
    }
  }
}

/** `pending` means that the money is on its way back. */
const refundOutcome = ({ status, failure_reason: reason }: Stripe.Refund): RefundOutcome =>
  status === 'failed' || status === 'canceled'
    ? { outcome: 'refused', detail: reason ?? status }
    : { outcome: 'refunded' };

/** Whether no card has been tried for the intent, as far as Stripe says at present. */
const isUntouched = ({ status, last_payment_error: error }: Intent): boolean =>
  status === 'requires_payment_method' && error === null;

type PaidIntent = Pick<Intent, 'id' | 'amount_received' | 'currency'>;

/** Reads the payment that arrived, in our smallest unit. Null if we cannot have asked for the amount. */
function paymentOf({ id, amount_received: received, currency }: PaidIntent): Payment | null {
  const amountCents = fromStripeAmount(received, currency.toUpperCase());
  return amountCents === null || !isPaymentId(id)
    ? null
    : { paymentId: id, amountCents, currency: currency.toUpperCase() };
}

/** Whether Stripe understood the call and refused it, so that the call had no effect. */
const isRefusal = (error: unknown): error is InstanceType<typeof Stripe.errors.StripeError> =>
  error instanceof Stripe.errors.StripeCardError || error instanceof Stripe.errors.StripeInvalidRequestError;

/** Whether an earlier request with this key asked for something else and was carried out. Its result is unknown. */
const isKeyTaken = (error: unknown): boolean => error instanceof Stripe.errors.StripeIdempotencyError;

/** Stripe repeats the fault of the first request with a key for a day, no matter what is asked. */
const isRepeatedFault = (error: unknown): boolean =>
  error instanceof Stripe.errors.StripeAPIError && error.headers?.['idempotent-replayed'] === 'true';

/** Returns the facts of an error that may be logged, because Stripe puts parts of keys into its sentences. */
function factsOf(error: unknown): object {
  if (!(error instanceof Stripe.errors.StripeError)) return { detail: withoutSecrets(String(error)) };
  const { type, code, statusCode, requestId, message } = error;
  return { type, code, statusCode, requestId, detail: withoutSecrets(message) };
}

const withoutSecrets = (text: string): string => text.replace(/\b(?:sk|rk|pk|whsec|pi_\w+?_secret)_[\w*]+/g, '…');

const CHANGES = ['payment_intent.payment_failed', 'payment_intent.canceled'];
const REFUND_CHANGES = ['refund.failed', 'refund.updated', 'charge.refund.updated'];
/** States of a dispute in which the money is ours. */
const DISPUTE_ENDS = ['won', 'warning_closed', 'prevented'];

const event = z.object({ type: z.string(), livemode: z.boolean(), data: z.object({ object: z.looseObject({}) }) });
const intentOfEvent = z.object({
  id: z.string(),
  amount_received: z.int().min(0),
  currency: z.string().regex(/^[a-z]{3}$/),
});
const ofUs = z.object({ metadata: z.object({ order: z.string(), attempt: z.string() }) });
const ID = z.string().refine(isPaymentId);
const failedRefund = z.object({
  id: ID,
  payment_intent: ID,
  status: z.enum(['failed', 'canceled']),
  failure_reason: z.string().nullish(),
  metadata: z.object({ refund: z.string().optional() }).nullish(),
});
const refundedCharge = z.object({ payment_intent: ID, amount_refunded: z.int().min(0), currency: z.string() });
const dispute = z.object({
  id: ID,
  payment_intent: ID,
  amount: z.int().min(0),
  currency: z.string(),
  reason: z.string(),
  status: z.string(),
});

/** Reads events of Stripe. Ignores payments that we did not create, and all other types of events. */
export const STRIPE_WEBHOOK: PaymentWebhook = {
  header: 'stripe-signature',
  read(body): PaymentReport {
    const parsed = parseJson(body, 'The body');
    if ('error' in parsed) return { type: 'unreadable', detail: parsed.error, claims: {} };
    const read = event.safeParse(parsed.value);
    if (!read.success) return { type: 'unreadable', detail: 'The body must be an event of Stripe.', claims: {} };
    const { type, livemode: live, data } = read.data;
    if (REFUND_CHANGES.includes(type)) {
      const refund = failedRefund.safeParse(data.object);
      if (!refund.success) return { type: 'other' };
      const { id: refundId, payment_intent: paymentId, status, failure_reason: reason, metadata } = refund.data;
      return {
        type: 'refund_failed',
        refundId,
        paymentId,
        detail: reason ?? status,
        live,
        ...withoutUndefined({ ourId: metadata?.refund }),
      };
    }
    if (type === 'charge.refunded') return refunded(data.object, live);
    if (type.startsWith('charge.dispute.')) return disputed(data.object, live);
    const owner = ofUs.safeParse(data.object);
    if (!owner.success || !isOrderId(owner.data.metadata.order)) return { type: 'other' };
    const { order: orderId } = owner.data.metadata;
    if (CHANGES.includes(type)) return { type: 'changed', orderId, live };
    return type === 'payment_intent.succeeded' ? succeeded(orderId, data.object, live) : { type: 'other' };
  },
};

/** A charge or dispute without a PaymentIntent is not ours. */
function refunded(object: object, live: boolean): PaymentReport {
  const read = refundedCharge.safeParse(object);
  const payment = read.success
    ? paymentOf({ ...read.data, id: read.data.payment_intent, amount_received: read.data.amount_refunded })
    : null;
  return payment === null ? { type: 'other' } : { type: 'refunded', payment, live };
}

function disputed(object: object, live: boolean): PaymentReport {
  const read = dispute.safeParse(object);
  if (!read.success) return { type: 'other' };
  const { id: disputeId, payment_intent: id, amount, currency, reason, status } = read.data;
  const payment = paymentOf({ id, amount_received: amount, currency });
  if (payment === null) return { type: 'other' };
  return {
    type: 'disputed',
    disputeId,
    payment,
    detail: `${reason}: ${status}`,
    isOver: DISPUTE_ENDS.includes(status),
    ...(status === 'lost' ? { isLost: true } : {}),
    live,
  };
}

function succeeded(orderId: string, object: Readonly<Record<string, unknown>>, live: boolean): PaymentReport {
  const read = intentOfEvent.safeParse(object);
  const payment = read.success ? paymentOf(read.data) : null;
  if (payment !== null) return { type: 'succeeded', orderId, payment, live };
  const { id: paymentId, amount_received: amountCents, currency } = object;
  const claims = { orderId, paymentId, amountCents, currency, live };
  return { type: 'unreadable', detail: 'The event names no payment that can be recorded.', claims };
}
