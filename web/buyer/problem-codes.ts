/**
 * What a problem means for a purchase that was sent.
 * - `again`: send it again, with the same key
 * - `again_soon`: the same where the moment is near; else there is nothing to send yet
 * - `unsure`: as `again`, and it may have been accepted
 * - `look`: see what there is with this key before anything else: another purchase has it, or who asks has to sign in anew
 * - `over`: no order comes of this try
 */
type Meaning = 'again' | 'again_soon' | 'unsure' | 'look' | 'over';

/** Every code that the API answers buyers with, and one for no answer at all. A test holds them against the OpenAPI document. */
export const MEANINGS = {
  bad_request: 'over',
  bad_signature: 'over',
  cancel_limit_reached: 'over',
  closed: 'over',
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

/** One that the page does not know, from a newer server, is shown as an error of the server. */
export const knownCode = (code: string): ProblemCode =>
  Object.hasOwn(MEANINGS, code) ? (code as ProblemCode) : 'internal';
