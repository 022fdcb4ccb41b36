/**
 * The meaning of a problem for a purchase that was sent.
 * - `again`: send it again, with the same key
 * - `again_soon`: like `again` if the opening is near; otherwise it is too early to send
 * - `unsure`: like `again`, but the purchase may have been accepted
 * - `look`: look up this key first, because another purchase has it or the buyer has to sign in again
 * - `over`: this attempt leads to no order
 */
type Meaning = 'again' | 'again_soon' | 'unsure' | 'look' | 'over';

/**
 * Every code that the API sends to buyers, and a code for a missing answer. A test compares them with the OpenAPI
 * document.
 */
export const MEANINGS = {
  bad_request: 'over',
  bad_signature: 'over',
  cancel_limit_reached: 'over',
  closed: 'over',
  coupon_refused: 'over',
  decline_limit_reached: 'over',
  degraded: 'again',
  denied: 'over',
  headers_too_large: 'over',
  internal: 'unsure',
  limit_reached: 'over',
  loading: 'again',
  method_not_allowed: 'over',
  no_answer: 'unsure',
  not_enough_left: 'over',
  not_found: 'over',
  not_open: 'again_soon',
  order_not_found: 'over',
  outcome_unknown: 'unsure',
  overloaded: 'again',
  paused: 'over',
  payload_too_large: 'over',
  payment_declined: 'over',
  payment_in_progress: 'over',
  payment_method_needed: 'over',
  payment_not_configured: 'over',
  purchase_not_found: 'over',
  purchase_token_needed: 'over',
  queue_pass_needed: 'over',
  rate_limited: 'again',
  refund_due: 'over',
  refused_by_store: 'over',
  request_conflict: 'look',
  request_timeout: 'again',
  route_not_found: 'over',
  sold_out: 'over',
  ticket_not_found: 'over',
  token_limit_reached: 'over',
  tokens_gone: 'over',
  unauthorized: 'look',
  unavailable: 'again',
  unpaid_pause: 'over',
  unsupported_media_type: 'over',
  wrong_state: 'over',
} as const satisfies Record<string, Meaning>;

export type ProblemCode = keyof typeof MEANINGS;

/** Returns the code. Returns a server error for a code that the page does not know, from a newer server. */
export const knownCode = (code: string): ProblemCode =>
  Object.hasOwn(MEANINGS, code) ? (code as ProblemCode) : 'internal';
