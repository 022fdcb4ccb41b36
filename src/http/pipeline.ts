import type { IncomingMessage, ServerResponse } from 'node:http';
import { unavailableDetail } from '../contract/problem.js';
import type { Endpoint, Refused, Verdict } from '../admission/layer.js';
import { otherCell } from '../core/cell.js';
import { OperationalError } from '../core/errors.js';
import type { LoggedRequest } from './access-log.js';
import { includesRole } from '../core/roles.js';
import type { Span, SpanStart } from '../core/ports/tracing.js';
import {
  CROSS_SITE,
  NO_PASS,
  NO_TOKEN,
  CANNOT_CHECK,
  NOT_SIGNED,
  refusedAnswer,
  roleNeededAnswer,
  unauthorizedAnswer,
  unpaidPauseAnswer,
} from './admission-answers.js';
import { AnswersTogether, parentOf, problem, send, traceIdFor, type Answer, type AnswerCounter } from './answer.js';
import type { Denial, Principal } from './auth.js';
import { collectBody, type BodyFault } from './body.js';
import type { Call, RouteServices } from './route.js';

/**
 * Runs the steps of every request, including purchases, once its route is known. Cheap steps come first, and steps that
 * need the body or Redis come last. The first refusal ends the request. The `access` of a route determines its steps, and
 * its `endpoint` whether the admission layers apply. Requests for pages, and requests without a route, also pass step 2.
 *
 *   1  proof shown       whether the required proofs are present: a token,                       401
 *                        and for a purchase a purchase token                                     403
 *                        if a host app reads cookies: whether another site's page sends a write  403 denied
 *   2  address           requests of this address to this process, counted in its memory         429
 *   3  signature, head   the headers of a signed request, if the sale requires them              401 bad_signature
 *   4  anonymous layers  lists, limits, breaker, degradation, by address                         403, 429, 503
 *   5  token             the caller, and whether they have the role that the route requires      401, 403 role_needed
 *                        whether an operator is on the list of denied users                      403 denied
 *   6  head              parameters, query, headers and media type                               400, 415
 *                        whether the sale or the order belongs to this cell                      421
 *   7  queue pass        if the sale has a waiting room                                          403 queue_pass_needed
 *   8  early             an answer from memory, such as sold_out; counts against no limit        as the route says
 *   9  purchase token    whether we issued it, for this buyer                                    403
 *  10  buyer layers      the same layers as in 4, by user                                        403, 429, 503
 *  11  body              read up to its limit, then checked                                      413, 400, 500
 *  12  signature, body   whether it is valid, and was not used before                            401, 503
 *  13  unpaid orders     whether the buyer must wait because of unpaid orders                    429 unpaid_pause
 *  14  purchase token    whether it was redeemed for another purchase                            403, 503
 *  15  handler           the use case; its answer is counted and sent
 *
 * A missing proof is refused first, because looking for a header costs nothing. A forged token is refused later, because
 * its check costs an HMAC, or many times that for a public key; so the address is counted first (2, 4). For the same
 * reason the seal of a purchase token (an HMAC) is checked before the limits of a user, which need Redis, but after the
 * sold-out flag, which costs less than either.
 *
 * Steps 3, 4, 7, 9, 10, 12 and 14, and the purchase token in 1, are skipped while the admission rules are off. A refusal
 * up to step 10 leaves the body unread. Before step 11 nothing here awaits or allocates a closure, unless a layer must ask
 * another server, or the issuer must be asked for the key of a token.
 */
export class Pipeline {
  readonly #services: RouteServices;
  readonly #refusals: AnswersTogether;

  constructor(services: RouteServices) {
    this.#services = services;
    this.#refusals = new AnswersTogether(services.lifecycle);
  }

  /** Never throws. */
  run(call: Call): void {
    try {
      const refused = this.#refuseUnproven(call);
      if (refused !== null) return this.#refuse(call, refused);
      if (call.route.endpoint === null || !this.#services.admission.isOn) this.#identify(call);
      else this.#admitAnonymous(call, call.route.endpoint);
    } catch (error) {
      this.#fail(call, error);
    }
  }

  /** Runs steps 1 and 2. */
  #refuseUnproven(call: Call): Answer | null {
    const { auth, admission, tokens } = this.#services;
    const { route, req, requestId } = call;
    if (route.asks.token && auth.readsMoreThanHeader === true) {
      if (route.method !== 'get' && req.headers['sec-fetch-site'] === 'cross-site') return CROSS_SITE.answer(requestId);
    } else if (route.asks.token && req.headers.authorization === undefined) {
      return unauthorizedAnswer('missing', requestId);
    }
    if (route.asks.proofs && admission.isOn) {
      if (tokens.begin(call.saleId, req.headers[PURCHASE_TOKEN]) !== null) return NO_TOKEN.answer(requestId);
    }
    return this.isOneTooMany(req, route.endpoint ?? 'other') ? refusedAnswer(TOO_MANY_REQUESTS, requestId) : null;
  }

  /** Runs step 2, which counts requests by address. */
  isOneTooMany(req: IncomingMessage, endpoint: Endpoint | 'other' = 'other'): boolean {
    const { addressLimit, addressOf } = this.#services;
    return addressLimit.isOn && addressLimit.refuses(addressOf(req), endpoint);
  }

  /** Runs steps 3 and 4. */
  #admitAnonymous(call: Call, endpoint: NonNullable<Call['route']['endpoint']>): void {
    const { admission, signatures, addressOf } = this.#services;
    const { req } = call;
    if (call.route.asks.signed) {
      const head = signatures.begin(call.saleId, req.headers);
      if (head === 'bad_signature') return this.#refuse(call, NOT_SIGNED.answer(call.requestId));
      call.signature = head;
    }
    call.admitted = { endpoint, address: addressOf(req), agent: req.headers['user-agent'] ?? '' };
    this.#after(admission.anonymous(call.admitted), call, 'identify');
  }

  /** Continues if the layer accepts the request. Does so at once, unless the layer itself must ask another server. */
  #after(verdict: Verdict, call: Call, next: 'identify' | 'read'): void {
    if (verdict === null) return next === 'identify' ? this.#identify(call) : this.#read(call);
    if (!(verdict instanceof Promise)) return this.#refuse(call, refusedAnswer(verdict, call.requestId));
    verdict.then((late) => this.#after(late, call, next)).catch((error: unknown) => this.#fail(call, error));
  }

  /** Runs step 5. */
  #identify(call: Call): void {
    if (!call.route.asks.token) return this.#admitBuyer(call);
    const who = this.#services.auth.authenticate(call.req.headers.authorization, call.req);
    if (!(who instanceof Promise)) return this.#identified(call, who);
    who.then((late) => this.#identified(call, late)).catch((error: unknown) => this.#fail(call, error));
  }

  #identified(call: Call, who: Principal | Denial): void {
    const { admission } = this.#services;
    const { route, requestId } = call;
    if (typeof who === 'string') return this.#refuse(call, unauthorizedAnswer(who, requestId));
    call.userId = who.userId;
    call.roles = who.roles;
    if (route.access === 'purchase') this.#startSpan(call);
    const { role } = route.asks;
    if (role !== null) {
      if (!includesRole(who.roles, role)) return this.#refuse(call, roleNeededAnswer(role, requestId));
      call.expiresAtMs = who.expiresAtMs;
      const refused = admission.isOn ? admission.operator(who.userId) : null;
      if (refused !== null) return this.#refuse(call, refusedAnswer(refused, requestId));
    }
    this.#admitBuyer(call);
  }

  /**
   * Starts the span of a known caller. Unknown callers get none: the number of traces per second is limited, and a
   * flood of them would use up the budget of buyers.
   */
  #startSpan(call: Call): void {
    call.span = this.#services.tracing.startRequest(call.parent, PURCHASE_SPAN);
    if (call.span !== null) call.traceId = call.span.traceId;
  }

  /** Runs steps 6 to 10. */
  #admitBuyer(call: Call): void {
    const { admission, passes, tokens, cell } = this.#services;
    const { route, req, requestId, admitted } = call;
    const malformed = route.checkHead(call);
    if (malformed !== null) return this.#refuse(call, malformed);
    const other = otherCell(cell, call.params as object);
    if (other !== null) return this.#refuse(call, elsewhere(requestId, other));
    if (route.asks.proofs && admitted !== null) {
      const refused = passes.check(call.saleId, call.userId, req.headers['seckill-queue-pass']) !== null;
      if (refused) return this.#refuse(call, NO_PASS.answer(requestId));
    }
    const early = route.early === null ? null : route.early(call, this.#services);
    if (early !== null) return this.#refuse(call, early);
    if (route.asks.proofs && admitted !== null) {
      const endsAtMs = tokens.open(call.saleId, call.userId, req.headers[PURCHASE_TOKEN]);
      if (endsAtMs === 'forbidden') return this.#refuse(call, NO_TOKEN.answer(requestId));
      call.tokenEndsAtMs = endsAtMs;
    }
    if (admitted === null || !route.asks.token) return this.#read(call);
    call.isJudged = true;
    this.#after(admission.buyer(admitted, call.userId), call, 'read');
  }

  /** Runs step 11. A route without a body leaves the body unread, unless a signature covers it. */
  #read(call: Call): void {
    const { req, route } = call;
    if (route.body === undefined && call.signature === null) return void this.#finish(call, '');
    if (req.headers['content-length'] === undefined && req.headers['transfer-encoding'] === undefined) {
      return void this.#finish(call, '');
    }
    collectBody(
      req,
      (text) => void this.#finish(call, text),
      (fault) => this.#refuseBody(call, fault),
      route.body?.bytesMax,
    );
  }

  #refuseBody(call: Call, fault: BodyFault): void {
    const { requestId } = call;
    if (fault === 'too_large') return this.answer(call, problem('payload_too_large', { requestId }));
    if (fault === 'not_utf8') return this.answer(call, problem('bad_request', { requestId, detail: NOT_UTF8 }));
    this.#fail(call, new Error(SWALLOWED));
  }

  /** Runs steps 11 to 15. Never rejects. */
  async #finish(call: Call, text: string): Promise<void> {
    const { route, signature } = call;
    try {
      if (route.body !== undefined) {
        const read = route.body.read(text, this.#services);
        if ('wrong' in read) {
          return this.answer(call, problem('bad_request', { requestId: call.requestId, ...read.wrong }));
        }
        call.body = read.value;
      }
      if (signature !== null) {
        const { method = '', headers } = call.req;
        const path = sentAddress(call.req);
        const idempotencyKey = String(headers['idempotency-key'] ?? '');
        const sent = { method, path, body: text, userId: call.userId, idempotencyKey };
        const refused = await this.#services.signatures.finish(signature, sent);
        if (refused !== null) {
          return this.#refuse(call, (refused === 'unavailable' ? CANNOT_CHECK : NOT_SIGNED).answer(call.requestId));
        }
      }
      if (route.asks.proofs) {
        const paused = this.#pauseOf(call);
        const pauseMs = paused instanceof Promise ? await paused : paused;
        if (pauseMs !== null) return this.#refuse(call, unpaidPauseAnswer(pauseMs, call.requestId));
      }
      if (call.tokenEndsAtMs !== null && call.admitted !== null) {
        const refused = await this.#redeem(call, call.tokenEndsAtMs, call.admitted.address);
        if (refused !== null) return this.#refuse(call, refused);
      }
      const reply = route.handle(call, this.#services as never); // `apiOf` has checked that all of them are there
      const answer = reply instanceof Promise ? await reply : reply;
      if (answer !== null) this.answer(call, answer);
    } catch (error) {
      this.#fail(call, error);
    }
  }

  #pauseOf({ saleId, userId, requestId }: Call): null | Promise<number | null> {
    return this.#services.unpaidPause.check({ saleId, userId, requestId: requestId as string });
  }

  async #redeem({ saleId, userId, requestId }: Call, endsAtMs: number, address: string): Promise<Answer | null> {
    const purchase = { saleId, userId, requestId: requestId as string, address };
    const refused = await this.#services.tokens.redeem(purchase, endsAtMs);
    if (refused === null) return null;
    return (refused === 'unavailable' ? CANNOT_CHECK : NO_TOKEN).answer(requestId);
  }

  /** Counts and sends an answer. */
  answer(exchange: Exchange, answer: Answer): void {
    this.#note(exchange, answer);
    send(exchange.req, exchange.res, answer, exchange.traceId, this.#services.lifecycle);
  }

  /** Counts and sends the answer to a request without a route, and counts the address of the client. */
  answerUnrouted(exchange: Exchange, answer: Answer): void {
    const refused = this.isOneTooMany(exchange.req);
    this.answer(exchange, refused ? refusedAnswer(TOO_MANY_REQUESTS, exchange.requestId) : answer);
  }

  /** Counts and sends a refusal. Refusals may come in floods. */
  #refuse(call: Call, answer: Answer): void {
    this.#note(call, answer);
    this.#refusals.send(call.req, call.res, answer, call.traceId);
  }

  #note(exchange: Exchange, answer: Answer): void {
    const tookMs = performance.now() - exchange.startedMs;
    traceIdFor(exchange);
    if (exchange.span !== null) endSpan(exchange, exchange.span, answer);
    exchange.counter.answered(answer, tookMs);
    if (exchange.counter.route === 'purchase') {
      if (exchange.isJudged) this.#services.admission.answered(exchange.userId, answer.word);
      this.#services.saleAnswers.count((exchange.params as { readonly saleId: string }).saleId, answer.word);
    }
    this.#services.accessLog?.note(exchange, answer, tookMs);
  }

  #fail(call: Call, error: unknown): void {
    this.fail(call, error, call.requestId, call.route.access === 'purchase' ? unavailableDetail : undefined);
  }

  /** Handles any error: the fault of a dependency becomes a 503 that names it, and every other error is a bug. */
  fail(
    exchange: Exchange,
    error: unknown,
    requestId: string | null = null,
    detailOf = (dependency: string): string => `${dependency} does not answer. Try again.`,
  ): void {
    if (error instanceof OperationalError) {
      return this.answer(exchange, problem('unavailable', { requestId, detail: detailOf(error.dependency) }));
    }
    this.answer(exchange, problem('internal', { requestId }));
    const { traceId } = exchange;
    this.#services.log.error({ err: error, traceId }, 'unexpected error while answering a request');
    this.#services.onBug(error);
  }
}

/** Returns the address as the client sent and signed it. An app that mounts our router removes its path from `url`. */
const sentAddress = (req: IncomingMessage & { readonly originalUrl?: string }): string =>
  req.originalUrl ?? req.url ?? '';

/** The proxy in front of the cells reads the header. */
const elsewhere = (requestId: string | null, cell: number): Answer =>
  problem('misdirected', { requestId, detail: ELSEWHERE }, ['Seckill-Cell', String(cell)]);
const ELSEWHERE = 'This sale or order is in another cell. Let the proxy in front of the cells send the request there.';
const NOT_UTF8 = 'The body is not UTF-8. Send JSON in UTF-8.';
const SWALLOWED =
  'middleware of the app read the body of a request and left nothing in req.body. Mount the router of Seckill before that middleware.';
const PURCHASE_TOKEN = 'seckill-purchase-token';
const PURCHASE_SPAN: SpanStart = {
  name: 'POST /v1/sales/{saleId}/purchases',
  kind: 'server',
  fields: { 'http.request.method': 'POST', 'http.route': '/v1/sales/{saleId}/purchases' },
};

/** Records neither the buyer nor the address, because third parties run the servers that receive spans. */
function endSpan({ requestId, params }: Exchange, span: Span, { status, word }: Answer): void {
  span.set({
    'http.response.status_code': status,
    'seckill.code': word,
    'seckill.sale': String((params as { readonly saleId?: unknown }).saleId).slice(0, SPAN_TEXT_MAX),
    ...(requestId === null ? {} : { 'seckill.request': requestId }),
  });
  span.end(status >= 500 ? word : undefined);
}

/** Maximum length of an id in a span, because an unchecked id in a path may contain anything. */
const SPAN_TEXT_MAX = 64;
const TOO_MANY_REQUESTS: Refused = { word: 'rate_limited', retryAfterMs: null };

/** A request with the counter of its answers. */
interface Exchange extends LoggedRequest {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly counter: AnswerCounter;
  /** Monotonic time, in ms. */
  readonly startedMs: number;
  readonly span: Span | null;
  /** Whether the admission rules were asked about the user. */
  readonly isJudged: boolean;
}

/** Creates the exchange of a request without a route. */
export const unrouted = (req: IncomingMessage, res: ServerResponse, counter: AnswerCounter): Exchange => ({
  req,
  res,
  counter,
  startedMs: performance.now(),
  requestId: null,
  userId: '',
  params: null,
  traceId: parentOf(req)?.traceId ?? '',
  span: null,
  isJudged: false,
});
