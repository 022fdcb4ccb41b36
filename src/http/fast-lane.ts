import type { IncomingMessage, ServerResponse } from 'node:http';
import { OperationalError } from '../core/errors.js';
import { isId, isSaleId } from '../core/ids.js';
import type { Verdict, Caller } from '../admission/layer.js';
import type { SignatureHead } from '../admission/sign/request-signatures.js';
import { collectBody, hasLongBody } from './body.js';
import { Denied } from './denied.js';
import { admissionAnswer } from './admission-answers.js';
import { unavailableDetail, type ProblemCode, type ProblemParts } from './problem.js';
import { refusalAnswer } from './purchase-answers.js';
import { beginSignature, checkPass, vouch } from './purchase-door.js';
import { outcomeAnswer } from './purchase-outcome.js';
import { promisesJson, readQuantity, saleIdOf, traceOf } from './purchase-request.js';
import { AnswerCounter, AnswersTogether, problemAnswer, send, type Answer, type Lifecycle } from './respond.js';
import type { HttpServices } from './services.js';
import { unauthorizedParts } from './unauthorized.js';
import { callerOf } from './caller.js';

export type FastLaneServices = Pick<
  HttpServices,
  | 'auth'
  | 'entry'
  | 'addressOf'
  | 'signatures'
  | 'passes'
  | 'tokens'
  | 'gate'
  | 'getPurchase'
  | 'metrics'
  | 'log'
  | 'onBug'
>;

/** One request before anybody has looked at it. */
interface Asked {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly saleId: string;
  /** Null: the key is missing, or is none. */
  readonly requestId: string | null;
}

/** What the entry has to do with a request. */
interface Guest {
  readonly caller: Caller;
  /** Null: this sale asks for none. */
  readonly signature: SignatureHead | null;
}

/** One purchase on its way through the lane. */
interface Call extends Asked {
  readonly userId: string;
  readonly requestId: string;
  /** Null: the entry is off. */
  readonly guest: Guest | null;
}

const KEY_SHAPE = 'The header Idempotency-Key is needed, once: 1 to 64 of the characters A-Z a-z 0-9 _ -';

/** Serves a request if it is for its address and says whether it did. */
export type FastLane = (req: IncomingMessage, res: ServerResponse) => boolean;

/**
 * POST /v1/sales/{saleId}/purchases on bare node:http, because Express costs several times what the rest of a refusal
 * costs. Checks go from cheap to dear, and a sold-out buyer is answered before his body is read.
 */
export function createFastLane(services: FastLaneServices, lifecycle: Lifecycle): FastLane {
  const lane = new PurchaseLane(services, lifecycle);
  return (req, res) => {
    const saleId = saleIdOf(req.url ?? '');
    if (saleId === null) return false;
    lane.serve(req, res, saleId);
    return true;
  };
}

class PurchaseLane {
  readonly #services: FastLaneServices;
  readonly #lifecycle: Lifecycle;
  readonly #counter: AnswerCounter;
  readonly #refusals: AnswersTogether;

  constructor(services: FastLaneServices, lifecycle: Lifecycle) {
    this.#services = services;
    this.#lifecycle = lifecycle;
    this.#refusals = new AnswersTogether(lifecycle);
    this.#counter = new AnswerCounter(services.metrics, 'purchase');
  }

  serve(req: IncomingMessage, res: ServerResponse, saleId: string): void {
    const key = req.headers['idempotency-key'];
    const requestId = isId(key) ? key : null; // a header given twice arrives joined by a comma, which no id holds
    const asked = { req, res, saleId, requestId };
    const { entry } = this.#services;
    try {
      if (req.method !== 'POST') return this.#problem(req, res, 'method_not_allowed', { requestId }, ['Allow', 'POST']);
      if (!entry.isOn) return this.#identify(asked, null);
      const signature = beginSignature(req, saleId, this.#services);
      if (signature instanceof Denied) return this.#deny(asked, signature);
      const caller = callerOf(req, 'purchase', this.#services);
      this.#after(entry.anonymous(caller), asked, () => this.#identify(asked, { caller, signature }));
    } catch (error) {
      this.#fail(req, res, requestId, error);
    }
  }

  /** @param guest null: the entry is off */
  #identify({ req, res, saleId, requestId }: Asked, guest: Guest | null): void {
    const { auth, entry, gate } = this.#services;
    const who = auth.authenticate(req.headers.authorization);
    if (typeof who === 'string') return this.#problem(req, res, 'unauthorized', ...unauthorizedParts(who, requestId));
    if (!isSaleId(saleId)) return this.#problem(req, res, 'bad_request', { requestId, detail: SALE_ID_SHAPE });
    if (requestId === null) return this.#problem(req, res, 'bad_request', { detail: KEY_SHAPE });
    if (!promisesJson(req.headers)) return this.#problem(req, res, 'unsupported_media_type', { requestId });
    const call = { req, res, saleId, userId: who.userId, requestId, guest };
    const denied = guest === null ? null : checkPass(call, this.#services);
    if (denied !== null) return this.#deny(call, denied);
    // A chunked body has to be read anyway to keep its connection, so there the gate itself says sold_out.
    const early = hasLongBody(req) ? null : gate.refuseEarly(saleId, who.userId, requestId);
    if (early !== null) return this.#refuse(call, early, refusalAnswer(early, requestId));
    if (guest === null) return this.#read(call);
    this.#after(entry.buyer(guest.caller, who.userId), call, () => this.#read(call));
  }

  /** Goes on if the entry lets it: at once, unless the entry itself must ask somebody. */
  #after(verdict: Verdict, asked: Asked, next: () => void): void {
    if (verdict === null) return next();
    const { req, res, requestId } = asked;
    if (!(verdict instanceof Promise)) return this.#refuse(asked, verdict.word, admissionAnswer(verdict, requestId));
    verdict
      .then((late) => this.#after(late, asked, next))
      .catch((error: unknown) => this.#fail(req, res, requestId, error));
  }

  #deny(asked: Asked, denied: Denied): void {
    this.#refuse(asked, denied.code, denied.answer(asked.requestId));
  }

  #refuse({ req, res }: Asked, word: string, answer: Answer): void {
    this.#counter.count(word);
    this.#refusals.send(req, res, answer);
  }

  #read(call: Call): void {
    const { req, res, requestId } = call;
    const length = req.headers['content-length'];
    if (length === undefined && req.headers['transfer-encoding'] === undefined) return void this.#purchase(call, '');
    collectBody(req, (body) => {
      if (body === null) this.#problem(req, res, 'payload_too_large', { requestId });
      else void this.#purchase(call, body);
    });
  }

  /** Never rejects. */
  async #purchase(call: Call, body: string): Promise<void> {
    const { req, res, saleId, userId, requestId, guest } = call;
    try {
      const quantity = readQuantity(body);
      if (typeof quantity === 'string') {
        return this.#problem(req, res, 'bad_request', { requestId, detail: quantity });
      }
      const denied = guest === null ? null : await vouch(call, guest.signature, body, this.#services);
      if (denied !== null) return this.#deny(call, denied);
      const trace = traceOf(req.headers.traceparent);
      const { gate, getPurchase } = this.#services;
      const said = await gate.enter({ saleId, userId, requestId, quantity, trace });
      this.#answer(call, said.outcome, await outcomeAnswer(call, said, getPurchase));
    } catch (error) {
      this.#fail(req, res, requestId, error);
    }
  }

  #fail(req: IncomingMessage, res: ServerResponse, requestId: string | null, error: unknown): void {
    if (error instanceof OperationalError) {
      return this.#problem(req, res, 'unavailable', { requestId, detail: unavailableDetail(error.dependency) });
    }
    this.#problem(req, res, 'internal', { requestId });
    this.#services.log.error({ error }, 'a purchase failed in a way nobody foresaw');
    this.#services.onBug(error);
  }

  #answer({ req, res }: Call, word: string, answer: Answer): void {
    this.#counter.count(word);
    send(req, res, answer, this.#lifecycle);
  }

  #problem(
    ...[req, res, code, parts, extra]: [
      ...[req: IncomingMessage, res: ServerResponse, code: ProblemCode],
      ...[parts?: ProblemParts, extra?: string[]],
    ]
  ): void {
    this.#counter.count(code);
    send(req, res, problemAnswer(code, parts, extra), this.#lifecycle);
  }
}

const SALE_ID_SHAPE = 'The sale id in the address must be a whole number.';
