import { REFUSALS, type PurchaseStatus, type Refusal } from '../domain/outcome.js';
import { problemHeaders, problemOf, PROBLEMS } from './problem.js';
import type { Answer } from './respond.js';

type Prepared = Refusal | 'outcome_unknown';

/** Stands for the request id while a body is being prepared; no text of the table holds it. */
const MARK = '@request@';

/**
 * A problem whose only moving part is the request id. Ids are ASCII and need no escaping, so the body is two strings
 * around it, and there is one list of headers per length.
 */
class PreparedProblem {
  readonly #status: number;
  readonly #before: string;
  readonly #after: string;
  readonly #headers: readonly string[];
  readonly #byLength: string[][] = [];

  constructor(code: Prepared) {
    const [before = '', after = ''] = JSON.stringify(problemOf(code, { requestId: MARK })).split(MARK);
    this.#status = PROBLEMS[code].status;
    this.#before = before;
    this.#after = after;
    this.#headers = problemHeaders(code);
  }

  answer(requestId: string): Answer {
    const body = this.#before + requestId + this.#after;
    const headers = (this.#byLength[requestId.length] ??= [...this.#headers, 'Content-Length', String(body.length)]);
    return { status: this.#status, headers, body, encoding: 'latin1' };
  }
}

const PREPARED = Object.fromEntries(
  [...REFUSALS, 'outcome_unknown' as const].map((code) => [code, new PreparedProblem(code)]),
) as Record<Prepared, PreparedProblem>;

/** A refusal, or the unknown outcome, of one request. */
export const refusalAnswer = (code: Prepared, requestId: string): Answer => PREPARED[code].answer(requestId);

/** The first answer to a purchase that holds its units, and every later one until its order is written. */
export function pendingAnswer(saleId: string, requestId: string): Answer {
  const body = `{"requestId":"${requestId}","status":"pending"}`;
  const location = `/v1/sales/${saleId}/purchases/${requestId}`;
  const headers = ['Content-Type', 'application/json', 'Content-Length', String(body.length), 'Location', location];
  return { status: 202, headers, body, encoding: 'latin1' };
}

/** A replay of a purchase that has its row. */
export function settledAnswer(requestId: string, status: Exclude<PurchaseStatus, { status: 'not_found' }>): Answer {
  return okAnswer({ requestId, ...status });
}

/** A replay that the ledger alone can answer: an order is there, its state is not known here. */
export const orderedAnswer = (requestId: string, orderId: string): Answer =>
  okAnswer({ requestId, status: 'ordered', orderId });

function okAnswer(value: object): Answer {
  const body = JSON.stringify(value);
  const headers = ['Content-Type', 'application/json', 'Content-Length', String(Buffer.byteLength(body))];
  return { status: 200, headers, body, encoding: 'utf8' };
}
