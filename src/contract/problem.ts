import { z } from 'zod';
import type { Refusal } from '../core/outcome.js';
import { count, text, time, type BodyOf } from './fields.js';

interface ProblemRow {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** When to retry the same request, ms. Null if a retry never helps. */
  readonly retryAfterMs: number | null;
}

const row = (status: number, title: string, detail: string, retryAfterMs: number | null = null): ProblemRow => ({
  status,
  title,
  detail,
  retryAfterMs,
});

const UNAVAILABLE = 'does not answer. This attempt took nothing. Try again with the same key.';

/** Status, title and detail of each problem code. The code does not compile if a refusal has no row. */
export const PROBLEMS = {
  request_conflict: row(422, 'Key already used', 'This key was already used for a different request.'),
  not_found: row(404, 'No such sale', 'There is no such sale.'),
  closed: row(409, 'Sale over', 'The sale is over.'),
  sold_out: row(409, 'Sold out', 'No units are left.'),
  not_enough_left: row(
    409,
    'Not enough left',
    'Fewer units are left than you asked for. A smaller purchase may succeed.',
  ),
  limit_reached: row(409, 'Limit reached', 'This purchase exceeds the limit of units per buyer.'),
  refused_by_store: row(
    422,
    'Cannot be stored',
    'This purchase cannot be stored as sent. Nothing was taken. Leave out its metadata and use a new key.',
  ),
  not_open: row(409, 'Not open yet', 'The sale has not opened yet.', 1000),
  paused: row(503, 'Sale paused', 'The sale is paused.', 2000),
  loading: row(503, 'Sale loading', 'The sale is being loaded.', 1000),
  rate_limited: row(
    429,
    'Too many requests',
    'You sent too many requests, or too many clients sent requests at once.',
    1000,
  ),
  overloaded: row(503, 'Too busy', 'Too many requests are queued.', 1000),
  unavailable: row(503, 'Unavailable', `A part of the system ${UNAVAILABLE}`, 1000),
  outcome_unknown: row(
    503,
    'Outcome unknown',
    'The outcome of the request is unknown. Try again with the same key.',
    1000,
  ),
  bad_request: row(400, 'Bad request', 'The request is not well-formed.'),
  unauthorized: row(401, 'Not signed in', 'This request needs a valid token: Authorization: Bearer <token>.'),
  role_needed: row(403, 'Role needed', 'The token lacks the role that this request needs.'),
  denied: row(403, 'Denied', 'Access is denied.'),
  queue_pass_needed: row(403, 'Queue pass needed', 'This sale needs a pass from its waiting room.'),
  purchase_token_needed: row(
    403,
    'Purchase token needed',
    'This sale needs a purchase token, a new one for each purchase.',
  ),
  route_not_found: row(404, 'No such page', 'Nothing is served at this address.'),
  order_not_found: row(404, 'No such order', 'You have no such order.'),
  purchase_not_found: row(404, 'No such purchase', 'You have no purchase with this key in this sale.'),
  dead_letter_not_found: row(404, 'No such dead letter', 'There is no such dead letter.'),
  webhook_not_found: row(404, 'No such endpoint', 'There is no such webhook endpoint.'),
  job_not_found: row(404, 'No such job', 'There is no such compensation job.'),
  refund_not_found: row(404, 'No such refund', 'There is no such refund, or it is not due.'),
  method_not_allowed: row(
    405,
    'Method not allowed',
    'This address does not support this method. See the header Allow.',
  ),
  misdirected: row(
    421,
    'Wrong host',
    'Reach this server at its IP address, as localhost, or by the host name that it listens on.',
  ),
  request_timeout: row(408, 'Request too slow', 'The request did not arrive in time.'),
  wrong_state: row(409, 'Wrong state', 'The current state does not allow this.'),
  sale_overlaps: row(409, 'Sales overlap', 'Another sale offers the same sku at that time.'),
  units_not_free: row(409, 'Units not free', 'Not enough units are free. The others are sold or held for a buyer.'),
  not_replayable: row(409, 'Not replayable', 'This dead letter contains nothing that could become an order.'),
  reconcile_running: row(409, 'Already running', 'Another run is reconciling this sale.', 5000),
  profile_running: row(409, 'Already running', 'This api is already recording a profile.', 10_000),
  version_conflict: row(409, 'Version conflict', 'Someone else has changed this. Read it again first.'),
  rules_not_found: row(404, 'No such rules', 'There is no such version of the rules.'),
  payload_too_large: row(413, 'Body too large', 'The body exceeds the size limit of this address.'),
  unsupported_media_type: row(415, 'Not JSON', 'The body must be plain application/json in UTF-8.'),
  headers_too_large: row(431, 'Headers too large', 'The headers exceed the size limit of this server.'),
  internal: row(500, 'Internal error', 'The server failed to handle the request.'),
  repairing: row(503, 'Sale in repair', 'The stock of the sale is being rebuilt from its orders.', 2000),
  payment_declined: row(402, 'Payment declined', 'The payment was declined. Try again with another Idempotency-Key.'),
  decline_limit_reached: row(
    409,
    'Too many declined payments',
    'Too many payments of this order, or of this buyer within an hour, were declined. This attempt charged nothing.',
  ),
  finding_not_found: row(404, 'No such finding', 'The witness has no such finding.'),
  case_not_found: row(404, 'No such case', 'There is no such payment case.'),
  coupon_not_found: row(404, 'No such coupon', 'There is no such coupon.'),
  coupon_refused: row(409, 'Coupon refused', 'The coupon cannot be used. This attempt charged nothing.'),
  refund_due: row(409, 'Paid too late', 'The payment arrived after the order had ended. It will be refunded.'),
  payment_conflict: row(409, 'Payment conflict', 'This payment was already reported with another order or amount.'),
  payment_in_progress: row(
    409,
    'Payment in progress',
    'Another payment of this order, with another Idempotency-Key, is still in progress. This attempt charged nothing.',
    2000,
  ),
  payment_method_needed: row(
    422,
    'Payment method needed',
    'Send {"paymentMethod": "…"}, the id that the library of the payment provider gave to the card. Nothing was charged.',
  ),
  wrong_payment_mode: row(422, 'Wrong mode', 'This server does not accept payments of this mode (live or test).'),
  payment_not_configured: row(501, 'Payments not configured', 'This server is not configured to take payments.'),
  broker_not_configured: row(501, 'RocketMQ not configured', 'This server has no RocketMQ name server configured.'),
  bad_signature: row(401, 'Not signed', 'This request needs a valid signature.'),
  ticket_not_found: row(
    404,
    'No such ticket',
    'You have no such ticket for this queue, or it has expired. Join again.',
  ),
  degraded: row(503, 'Too busy', 'The server is overloaded and did nothing. Try again later with the same key.', 2000),
  rules_unfit: row(409, 'Rules cannot be used', 'This server cannot read the newest rules. Publish other rules first.'),
  tokens_gone: row(
    409,
    'No tokens left',
    'All purchase tokens of this sale are taken. Try again when one expires.',
    1000,
  ),
  cancel_limit_reached: row(
    409,
    'Cancel limit reached',
    'You have reached the limit of cancelled orders for this sale. This order expires unless you pay it.',
  ),
  unpaid_pause: row(
    429,
    'Pause after unpaid orders',
    'You let an order of this sale expire unpaid. Each such order doubles the pause before your next purchase.',
    1000,
  ),
  token_limit_reached: row(409, 'Token limit reached', 'You have reached the limit of expired tokens for this sale.'),
} satisfies Record<Refusal | 'outcome_unknown', ProblemRow> & Record<string, ProblemRow>;

/** The `code` of an answer that is not a success. */
export type ProblemCode = keyof typeof PROBLEMS;

/** Returns the detail of an `unavailable` problem, which names the part that is down. */
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
    retryAfterMs: count.optional().meta({ description: 'present if `retryable` is true' }),
    opensAt: time.optional().meta({ description: 'when the sale opens, with `not_open`, if the time is known' }),
    errors: fieldErrorList.optional().meta({ description: 'one sentence per invalid field' }),
  })
  .meta({ id: 'Problem', description: 'RFC 9457. Programs read `code`.' });
/** Body of every answer that is not a success. */
export type Problem = BodyOf<typeof problemSchema>;
export type { FieldError } from '../core/field-errors.js';
