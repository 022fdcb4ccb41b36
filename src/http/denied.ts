import { PreparedProblem } from './prepared-problem.js';
import { unavailableDetail, type ProblemParts } from './problem.js';
import { problemAnswer, type Answer } from './respond.js';

/** Why a request that needs more than a bearer token is refused. */
type DeniedCode = 'bad_signature' | 'queue_pass_needed' | 'purchase_token_needed' | 'unavailable';

/** A no that a flood hears again and again, so it is prepared: only the request id is put into it. */
export class Denied {
  readonly code: DeniedCode;
  readonly #detail: string;
  readonly #prepared: PreparedProblem;

  constructor(code: DeniedCode, detail: string) {
    this.code = code;
    this.#detail = detail;
    this.#prepared = new PreparedProblem(code, detail);
  }

  parts(requestId: string | null): ProblemParts {
    return { requestId, detail: this.#detail };
  }

  answer(requestId: string | null): Answer {
    return requestId === null ? problemAnswer(this.code, this.parts(null)) : this.#prepared.answer(requestId);
  }
}

/** Not why: that would tell a forger what to change. */
export const NOT_SIGNED = new Denied('bad_signature', 'Requests for this sale must be signed, each anew.');
export const NO_PASS = new Denied(
  'queue_pass_needed',
  'A pass is needed: POST /v1/sales/{saleId}/queue, and wait your turn.',
);
export const NO_TOKEN = new Denied(
  'purchase_token_needed',
  'A purchase token is needed, one for each purchase: POST /v1/sales/{saleId}/purchase-token.',
);
/** Nobody can say whether a nonce or a token was used before. */
export const NOT_KNOWN = new Denied('unavailable', unavailableDetail('redis'));
