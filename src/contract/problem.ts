import { z } from 'zod';
import type { Refusal } from '../core/outcome.js';
import { count, text, type BodyOf } from './fields.js';

interface ProblemRow {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** How long to wait before the same request may do better, in ms; null: it never will. */
  readonly retryAfterMs: number | null;
}

const row = (status: number, title: string, detail: string, retryAfterMs: number | null = null): ProblemRow => ({
  status,
  title,
  detail,
  retryAfterMs,
});

const UNAVAILABLE = 'does not answer; this try took nothing. Ask again with the same key.';

/** The one table from word to status. A refusal without a row does not compile; other problems exist by their row. */
export const PROBLEMS = {
  request_conflict: row(422, 'Key already used', 'This key was used for a different request.'),
  not_found: row(404, 'No such sale', 'There is no such sale.'),
  closed: row(409, 'Sale over', 'The sale is over.'),
  sold_out: row(409, 'Sold out', 'There are no units left for this purchase.'),
  not_enough_left: row(
    409,
    'Not enough left',
    'Fewer units are left than you want. A purchase of fewer units may succeed.',
  ),
  limit_reached: row(409, 'Limit reached', 'With this purchase you would have more units than one buyer may have.'),
  refused_by_store: row(
    422,
    'Cannot be stored',
    'This purchase cannot be stored as it was sent; nothing was taken. Leave its metadata out, and use a new key.',
  ),
  not_open: row(409, 'Not open yet', 'The sale has not opened yet.', 1000),
  paused: row(503, 'Sale paused', 'The sale is paused.', 2000),
  loading: row(503, 'Sale loading', 'The sale is being loaded.', 1000),
  rate_limited: row(429, 'Too many requests', 'You ask too often, or too many ask at once.', 1000),
  overloaded: row(503, 'Too busy', 'Too many requests are waiting.', 1000),
  unavailable: row(503, 'Unavailable', `A part of the system ${UNAVAILABLE}`, 1000),
  outcome_unknown: row(503, 'Answer lost', 'The answer was lost. Ask again with the same key.', 1000),
  bad_request: row(400, 'Bad request', 'The request is not well-formed.'),
  unauthorized: row(401, 'Not signed in', 'A valid token is needed: Authorization: Bearer <token>.'),
  role_needed: row(403, 'Role needed', 'The token does not carry the role that this needs.'),
  denied: row(403, 'Denied', 'Access is denied.'),
  queue_pass_needed: row(403, 'Queue pass needed', 'A pass of the waiting room is needed.'),
  purchase_token_needed: row(403, 'Purchase token needed', 'A purchase token is needed, one for each purchase.'),
  route_not_found: row(404, 'No such page', 'Nothing is served at this address.'),
  order_not_found: row(404, 'No such order', 'You have no such order.'),
  purchase_not_found: row(404, 'No such purchase', 'You have no purchase with this key in this sale.'),
  dead_letter_not_found: row(404, 'No such dead letter', 'There is no such dead letter.'),
  job_not_found: row(404, 'No such job', 'There is no such compensation job.'),
  refund_not_found: row(404, 'No such refund', 'Nothing is or was owed back of this payment.'),
  method_not_allowed: row(405, 'Method not allowed', 'This address does not serve this method; see Allow.'),
  misdirected: row(
    421,
    'Wrong host',
    'Ask for this server by its address, as localhost or by the name that it listens on.',
  ),
  request_timeout: row(408, 'Request too slow', 'The request did not arrive in time.'),
  wrong_state: row(409, 'Wrong state', 'This cannot be done from the state it is in.'),
  sale_overlaps: row(409, 'Sales overlap', 'The same sku is offered by another sale at that time.'),
  units_not_free: row(409, 'Units not free', 'So many units are not free: they are sold, or on their way to a buyer.'),
  not_warmed: row(409, 'Not warmed', 'The stock of the sale is not loaded; warm it first.'),
  not_replayable: row(409, 'Not replayable', 'Nothing that could become orders is in this dead letter.'),
  reconcile_running: row(409, 'Already running', 'Somebody else reconciles this sale right now.', 5000),
  profile_running: row(409, 'Already running', 'Another profile of this api is under way.', 10_000),
  version_conflict: row(409, 'Changed meanwhile', 'Somebody else changed this meanwhile. Read it again first.'),
  rules_not_found: row(404, 'No such rules', 'There is no such version of the rules.'),
  payload_too_large: row(413, 'Body too large', 'The body is larger than this address accepts.'),
  unsupported_media_type: row(415, 'Not JSON', 'The body must be plain application/json in UTF-8.'),
  headers_too_large: row(431, 'Headers too large', 'The headers are larger than this server accepts.'),
  internal: row(500, 'Internal error', 'Something went wrong on our side.'),
  repairing: row(503, 'Sale in repair', 'The stock of the sale is being rebuilt from its orders.', 2000),
  payment_declined: row(402, 'Payment declined', 'The payment was declined. Try again with another Idempotency-Key.'),
  decline_limit_reached: row(
    409,
    'Too many declined payments',
    'Too many payments of this order, or of yours within an hour, were declined. Nothing was charged for this one.',
  ),
  case_not_found: row(404, 'No such case', 'There is no such payment case.'),
  refund_due: row(409, 'Paid too late', 'The order had ended before the money came. It goes back.'),
  payment_conflict: row(409, 'Payment known', 'This payment was reported before with another order or amount.'),
  payment_in_progress: row(
    409,
    'Payment in progress',
    'A payment of this order with another Idempotency-Key is not resolved yet. Nothing was charged for this one.',
    2000,
  ),
  payment_method_needed: row(
    422,
    'Payment method needed',
    'Send {"paymentMethod": "…"}: what the library of the payment provider calls the card of the buyer. Nothing was charged.',
  ),
  wrong_payment_mode: row(422, 'Wrong mode', 'This server does not accept payments of this mode (live or test).'),
  payment_not_configured: row(501, 'No payments here', 'This server is not set up for it.'),
  broker_not_configured: row(501, 'No way to the broker', 'This server does not know how to reach RocketMQ.'),
  bad_signature: row(401, 'Not signed', 'A valid signature of the request is needed.'),
  ticket_not_found: row(404, 'No such ticket', 'You have no such ticket for this queue, or it has ended. Join again.'),
  degraded: row(
    503,
    'Too busy',
    'Too many requests at the moment; nothing was started. Try again later with the same key.',
    2000,
  ),
  rules_unfit: row(409, 'Rules cannot be used', 'The newest rules cannot be read here; publish others first.'),
  tokens_gone: row(
    409,
    'No tokens left',
    'As many buyers have a token for this sale as may have one at a time. Ask again when the first one ends.',
    1000,
  ),
  cancel_limit_reached: row(
    409,
    'Cancel limit reached',
    'You have cancelled as many orders of this sale as one buyer may. This one ends by itself unless it is paid.',
  ),
  unpaid_pause: row(
    429,
    'Pause after unpaid orders',
    'You left an order of this sale unpaid until it expired. Each such order doubles the pause before the next purchase.',
    1000,
  ),
  token_limit_reached: row(
    409,
    'Token limit reached',
    'You have let as many tokens for this sale end as one buyer may have.',
  ),
} satisfies Record<Refusal | 'outcome_unknown', ProblemRow> & Record<string, ProblemRow>;

/** Every word that may stand in the `code` of an answer that is not a success. */
export type ProblemCode = keyof typeof PROBLEMS;

/** The detail of `unavailable` when it is known which part is down. */
export const unavailableDetail = (dependency: string): string => `${dependency} ${UNAVAILABLE}`;

export const fieldErrorList = z.array(z.object({ field: text, message: text }));

export const problemSchema = z
  .object({
    type: text,
    title: text,
    status: z.int(),
    detail: text,
    code: z.enum(Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]]),
    requestId: text.nullable(),
    retryable: z.boolean(),
    retryAfterMs: count.optional().meta({ description: 'present exactly when `retryable`' }),
    errors: fieldErrorList.optional().meta({ description: 'one sentence per wrong field' }),
  })
  .meta({ id: 'Problem', description: 'RFC 9457; `code` is the word that a program reads.' });
/** Body of every answer that is not a success. */
export type Problem = BodyOf<typeof problemSchema>;
export type { FieldError } from '../core/field-errors.js';
