import type { AdmissionCode, Refused } from '../admission/layer.js';
import { PreparedProblem, problem, type Answer } from './answer.js';
import type { Denial } from './auth.js';
import { unavailableDetail } from './problem.js';

/**
 * What the pipeline answers a request that it does not let through. Details say what is needed, not what was wrong with
 * what was shown: that would tell an attacker what to change.
 */

const PREPARED: Readonly<Record<AdmissionCode, PreparedProblem<AdmissionCode>>> = {
  denied: new PreparedProblem('denied'),
  rate_limited: new PreparedProblem('rate_limited'),
  degraded: new PreparedProblem('degraded'),
  unavailable: new PreparedProblem('unavailable', {
    detail: 'This process lets nobody in yet; nothing was taken. Ask again with the same key.',
  }),
};

/** The refusal of a layer of admission. */
export function refusedAnswer({ word, retryAfterMs, headers }: Refused, requestId: string | null): Answer {
  if (retryAfterMs === null && headers === undefined) return PREPARED[word].answer(requestId);
  return problem(word, retryAfterMs === null ? { requestId } : { requestId, retryAfterMs }, headers);
}

export const NOT_SIGNED = new PreparedProblem('bad_signature', {
  detail: 'Requests for this sale must be signed, each anew.',
});
export const NO_PASS = new PreparedProblem('queue_pass_needed', {
  detail: 'A pass is needed: POST /v1/sales/{saleId}/queue, and wait your turn.',
});
export const NO_TOKEN = new PreparedProblem('purchase_token_needed', {
  detail: 'A purchase token is needed, one for each purchase: POST /v1/sales/{saleId}/purchase-token.',
});
/** Redis knows whether a nonce or a token was used before, and does not answer. */
export const CANNOT_CHECK = new PreparedProblem('unavailable', { detail: unavailableDetail('redis') });

const TOKEN_DETAILS: Readonly<Record<Denial, string | undefined>> = {
  missing: undefined,
  invalid: 'The token is not valid here.',
  expired: 'The token has expired.',
};

/** A 401 with the challenge of RFC 6750, which names an error only when a token was sent. */
export function unauthorizedAnswer(denial: Denial, requestId: string | null): Answer<'unauthorized'> {
  const detail = TOKEN_DETAILS[denial];
  const challenge = denial === 'missing' ? 'Bearer' : 'Bearer error="invalid_token"';
  return problem('unauthorized', detail === undefined ? { requestId } : { requestId, detail }, [
    'WWW-Authenticate',
    challenge,
  ]);
}
