import { signWebhook } from './sign-webhook.js';
import { StandInServer, type StandInAnswer, type StandInRequest } from './stand-in-server.js';

// Implements the PaymentIntents, refunds, idempotency keys and errors of Stripe that we use (docs.stripe.com/api).
// Models amounts, states and replays, but no rules of banks.

export const STRIPE_KEY = 'sk_test_of_the_stand_in';
export const STRIPE_SECRET = 'whsec_of_the_stand_in_of_forty_characters';

/** Cards, by the name of their payment method. */
export const CARD = { good: 'pm_card_visa', declined: 'pm_card_chargeDeclined', asks: 'pm_card_threeDSecure2Required' };

interface Intent {
  id: string;
  object: 'payment_intent';
  amount: number;
  amount_received: number;
  currency: string;
  status: string;
  client_secret: string;
  last_payment_error: object | null;
  livemode: boolean;
  metadata: Record<string, string>;
  created: number;
}
interface Refund {
  id: string;
  object: 'refund';
  payment_intent: string;
  amount: number;
  status: string;
  failure_reason?: string;
  metadata: Record<string, string>;
}

/**
 * - `slow`: does the work but never answers
 * - `reset`: does the work and breaks the connection
 * - `unheard`: does no work and does not answer
 * - `error`: 500, which the key replays
 * - `busy`: 429
 * - `away`: 503, before the key is checked
 * - `overtaken`: another request with the same key but different content came just before: for a confirmation, one with
 *   a card that needs the bank's confirmation; for any other request, one with the parameters of an earlier release
 */
export type Fault = 'slow' | 'reset' | 'unheard' | 'error' | 'busy' | 'away' | 'overtaken';

export class StripeStandIn {
  readonly intents = new Map<string, Intent>();
  readonly refunds = new Map<string, Refund>();
  /** Method and path of each request, with ids as `:id`. */
  readonly asked: string[] = [];
  /** Headers of the last request. */
  lastHeaders: Record<string, unknown> = {};
  /** Whether the search index is still empty. */
  isSearchLate = false;
  /** Whether our key was withdrawn in the dashboard. */
  isKeyWithdrawn = false;
  readonly #faults: { readonly path: RegExp; readonly fault: Fault }[] = [];
  #replays = new Map<string, { readonly sent: string; readonly answer: NonNullable<StandInAnswer> }>();
  #made = 0;
  readonly #server = new StandInServer((request) => this.#answer(request));

  start(): Promise<string> {
    return this.#server.start();
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }

  /** Injects this fault for the next request with this path. */
  break(path: RegExp, fault: Fault): void {
    this.#faults.push({ path, fault });
  }

  clearFaults(): void {
    this.#faults.length = 0;
  }

  /** Lets a day pass: Stripe forgets the keys. */
  forgetKeys(): void {
    this.#replays.clear();
  }

  /** Lets the buyer confirm or refuse at their bank. */
  finishAction(id: string, how: 'confirmed' | 'refused'): void {
    const intent = this.intents.get(id);
    if (intent?.status !== 'requires_action') throw new Error(`${id} is ${intent?.status}`);
    if (how === 'confirmed') this.#succeed(intent);
    else this.#refuse(intent, 'payment_intent_authentication_failure');
  }

  /** Returns the money taken and not refunded, in Stripe's amounts. */
  get taken(): number {
    const received = [...this.intents.values()].reduce((sum, { amount_received: amount }) => sum + amount, 0);
    return [...this.refunds.values()].reduce((sum, { amount }) => sum - amount, received);
  }

  /** Returns a signed event about an object, as Stripe posts it. */
  event(type: string, object: object, { live = false, atMs = Date.now() } = {}) {
    const body = JSON.stringify({ id: `evt_${++this.#made}`, object: 'event', type, livemode: live, data: { object } });
    // with the v0 that Stripe adds in test mode
    return { body, signature: `${signWebhook(STRIPE_SECRET, body, atMs)},v0=${'0'.repeat(64)}` };
  }

  #answer(request: StandInRequest): StandInAnswer | 'reset' {
    const { method, path, headers, text } = request;
    this.asked.push(`${method} ${path.replace(/pi_\w+/, ':id')}`);
    this.lastHeaders = headers;
    if (headers.authorization !== `Bearer ${STRIPE_KEY}` || this.isKeyWithdrawn) {
      const isPoor = String(headers.authorization).includes('_poor_');
      return isPoor
        ? errorOf(403, 'invalid_request_error', 'The provided key sk_test_*** does not have the required permissions.')
        : errorOf(401, 'invalid_request_error', 'Invalid API Key provided: sk_test_***tter');
    }
    const index = this.#faults.findIndex((one) => one.path.test(`${method} ${path}`));
    const fault = index < 0 ? null : (this.#faults.splice(index, 1)[0]?.fault ?? null);
    if (fault === 'unheard') return null;
    if (fault === 'busy') return errorOf(429, 'invalid_request_error', 'Too many requests', 'rate_limit');
    if (fault === 'away') return errorOf(503, 'api_error', 'Away');
    if (fault === 'overtaken') {
      const body = path.endsWith('/confirm') ? `payment_method=${CARD.asks}` : `${text}&description=before`;
      this.#withKey({ ...request, text: body }, () => this.#do(request, body));
    }
    const answer = this.#withKey(request, () =>
      fault === 'error' ? errorOf(500, 'api_error', 'A fault') : this.#do(request, text),
    );
    if (fault === 'slow') return null;
    return fault === 'reset' ? 'reset' : answer;
  }

  /**
   * Returns the first answer of a key for all its requests. A request with different content is an error. A failed
   * check is not stored.
   */
  #withKey(
    { method, path, headers, text }: StandInRequest,
    act: () => NonNullable<StandInAnswer>,
  ): NonNullable<StandInAnswer> {
    const key = headers['idempotency-key'];
    if (typeof key !== 'string') return act();
    const sent = `${method} ${path} ${text}`;
    const before = this.#replays.get(key);
    if (before === undefined) {
      const answer = act();
      if (answer.status !== 400 && answer.status !== 404)
        this.#replays.set(key, { sent, answer: structuredClone(answer) });
      return answer;
    }
    if (before.sent !== sent) {
      return errorOf(
        400,
        'idempotency_error',
        'Keys for idempotent requests can only be used with the same parameters.',
      );
    }
    return { ...structuredClone(before.answer), headers: { 'idempotent-replayed': 'true' } };
  }

  #do({ method, path, query }: StandInRequest, text: string): NonNullable<StandInAnswer> {
    const form = new URLSearchParams(text);
    const [, , object, id, verb] = path.split('/');
    if (object === 'refunds' && method === 'GET') return this.#refundsOf(query.get('payment_intent'));
    if (object === 'refunds') return this.#refund(form);
    if (object !== 'payment_intents') return errorOf(404, 'invalid_request_error', `Unrecognized request URL ${path}`);
    if (method === 'POST' && id === undefined) return this.#create(form);
    if (id === undefined) return ok({ object: 'list', data: [], has_more: false, url: path });
    if (id === 'search') return this.#search(query.get('query') ?? '');
    const intent = this.intents.get(id);
    if (intent === undefined)
      return errorOf(404, 'invalid_request_error', `No such payment_intent: '${id}'`, 'resource_missing');
    if (verb === undefined) return ok(intent);
    return verb === 'confirm' ? this.#confirm(intent, form) : this.#cancel(intent);
  }

  #create(form: URLSearchParams): NonNullable<StandInAnswer> {
    const amount = Number(form.get('amount'));
    if (amount < 50)
      return errorOf(400, 'invalid_request_error', 'Amount must be at least 50 cents', 'amount_too_small');
    const id = `pi_${++this.#made}standin`;
    const intent: Intent = {
      id,
      object: 'payment_intent',
      amount,
      amount_received: 0,
      currency: String(form.get('currency')),
      status: 'requires_payment_method',
      client_secret: `${id}_secret_${this.#made}`,
      last_payment_error: null,
      livemode: false,
      metadata: metadataIn(form),
      created: Math.floor(Date.now() / 1000),
    };
    this.intents.set(id, intent);
    return ok(intent);
  }

  #confirm(intent: Intent, form: URLSearchParams): NonNullable<StandInAnswer> {
    if (intent.status !== 'requires_payment_method' && intent.status !== 'requires_action') return unexpected(intent);
    const method = form.get('payment_method');
    switch (method) {
      case CARD.good:
        return ok(this.#succeed(intent));
      case CARD.asks:
        intent.status = 'requires_action';
        return ok(intent);
      case CARD.declined:
        return errorOf(
          402,
          'card_error',
          'Your card was declined.',
          'card_declined',
          this.#refuse(intent, 'card_declined'),
        );
      case null:
      default:
        return errorOf(400, 'invalid_request_error', `No such PaymentMethod: '${method}'`, 'resource_missing');
    }
  }

  #cancel(intent: Intent): NonNullable<StandInAnswer> {
    if (intent.status === 'succeeded' || intent.status === 'canceled') return unexpected(intent);
    intent.status = 'canceled';
    return ok(intent);
  }

  #succeed(intent: Intent): Intent {
    return Object.assign(intent, { status: 'succeeded', amount_received: intent.amount, last_payment_error: null });
  }

  #refuse(intent: Intent, code: string): Intent {
    return Object.assign(intent, {
      status: 'requires_payment_method',
      last_payment_error: { type: 'card_error', code },
    });
  }

  #search(query: string): NonNullable<StandInAnswer> {
    const wanted = [...query.matchAll(/metadata\['(\w+)'\]:'([^']*)'/g)].map(
      ([, name, value]) => [name as string, value] as const,
    );
    const all = this.isSearchLate ? [] : [...this.intents.values()];
    const data = all.filter(({ metadata }) => wanted.every(([name, value]) => metadata[name] === value));
    return ok({ object: 'search_result', data, has_more: false, url: '/v1/payment_intents/search' });
  }

  #refundsOf(paymentId: string | null): NonNullable<StandInAnswer> {
    const data = [...this.refunds.values()].filter(({ payment_intent: of }) => of === paymentId);
    return ok({ object: 'list', data, has_more: false, url: '/v1/refunds' });
  }

  #refund(form: URLSearchParams): NonNullable<StandInAnswer> {
    const id = String(form.get('payment_intent'));
    const intent = this.intents.get(id);
    if (intent === undefined)
      return errorOf(404, 'invalid_request_error', `No such payment_intent: '${id}'`, 'resource_missing');
    const back = [...this.refunds.values()].filter(({ payment_intent: of }) => of === id);
    const left = back.reduce((sum, { amount }) => sum - amount, intent.amount_received);
    if (back.length > 0 && left === 0)
      return errorOf(400, 'invalid_request_error', 'Charge has already been refunded.', 'charge_already_refunded');
    if (intent.status !== 'succeeded')
      return errorOf(400, 'invalid_request_error', 'It has no successful charge to refund.');
    const amount = Number(form.get('amount') ?? left);
    if (amount > left)
      return errorOf(400, 'invalid_request_error', `Refund amount is greater than unrefunded amount on charge.`);
    const refund: Refund = {
      id: `re_${++this.#made}`,
      object: 'refund',
      payment_intent: id,
      amount,
      status: 'succeeded',
      metadata: metadataIn(form),
    };
    this.refunds.set(refund.id, refund);
    return ok(refund);
  }
}

const ok = (body: object): NonNullable<StandInAnswer> => ({ status: 200, body: structuredClone(body) });

const unexpected = (intent: Intent): NonNullable<StandInAnswer> =>
  errorOf(
    400,
    'invalid_request_error',
    `This PaymentIntent's status is ${intent.status}.`,
    'payment_intent_unexpected_state',
    intent,
  );

function errorOf(
  status: number,
  type: string,
  message: string,
  code?: string,
  intent?: Intent,
): NonNullable<StandInAnswer> {
  return { status, body: { error: { type, message, code, payment_intent: structuredClone(intent) } } };
}

const metadataIn = (form: URLSearchParams): Record<string, string> =>
  Object.fromEntries(
    [...form].flatMap(([name, value]) => {
      const key = /^metadata\[(\w+)\]$/.exec(name)?.[1];
      return key === undefined ? [] : [[key, value]];
    }),
  );

/** Loads the module as programs do, because coverage counts a module that is loaded in two ways wrongly. */
export const loadStripe = () => import('../../src/payment/stripe.js');
