import { REFUSALS, type PurchaseStatus, type Refusal } from '../core/outcome.js';
import { PreparedProblem } from './prepared-problem.js';
import { NOSNIFF } from './problem.js';
import type { Answer } from './respond.js';

type Prepared = Refusal | 'outcome_unknown';

const PREPARED = Object.fromEntries(
  [...REFUSALS, 'outcome_unknown' as const].map((code) => [code, new PreparedProblem(code)]),
) as Record<Prepared, PreparedProblem>;

/** A refusal, or the unknown outcome, of one request. */
export const refusalAnswer = (code: Prepared, requestId: string): Answer => PREPARED[code].answer(requestId);

/** The first answer to a purchase that holds its units, and every later one until its order is written. */
export function pendingAnswer(saleId: string, requestId: string): Answer {
  const body = `{"requestId":"${requestId}","status":"pending"}`;
  const location = `/v1/sales/${saleId}/purchases/${requestId}`;
  const length = String(body.length);
  const headers = ['Content-Type', 'application/json', ...NOSNIFF, 'Content-Length', length, 'Location', location];
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
  const headers = ['Content-Type', 'application/json', ...NOSNIFF, 'Content-Length', String(Buffer.byteLength(body))];
  return { status: 200, headers, body, encoding: 'utf8' };
}
