import { unavailableDetail } from '../contract/problem.js';
import type { AdmissionCode, Refused } from '../admission/layer.js';
import type { Role } from '../core/roles.js';
import { PreparedProblem, problem, type Answer } from './answer.js';
import type { Denial } from './auth.js';

/**
 * The answers of the pipeline to refused requests. For signatures, passes and purchase tokens, the detail says what a
 * request needs, but not what was wrong with it, because that would tell an attacker what to change. For tokens of an
 * identity provider, the detail does say what was wrong: an administrator who sets up a provider needs it, and a forger
 * learns nothing from it.
 */

const PREPARED: Readonly<Record<AdmissionCode, PreparedProblem<AdmissionCode>>> = {
  denied: new PreparedProblem('denied'),
  rate_limited: new PreparedProblem('rate_limited'),
  degraded: new PreparedProblem('degraded'),
  unavailable: new PreparedProblem('unavailable', {
    detail: 'This server does not admit buyers yet, and nothing was taken. Try again with the same key.',
  }),
};

/** Returns the answer for a refusal by an admission layer. */
export function refusedAnswer({ word, retryAfterMs, headers }: Refused, requestId: string | null): Answer {
  if (retryAfterMs === null && headers === undefined) return PREPARED[word].answer(requestId);
  return problem(word, retryAfterMs === null ? { requestId } : { requestId, retryAfterMs }, headers);
}

/** A browser adds cookies even to requests that a page of another site sends. */
export const CROSS_SITE = new PreparedProblem('denied', {
  detail: 'A page of another site sent this request. Send it from a page of this server.',
});
export const NOT_SIGNED = new PreparedProblem('bad_signature', {
  detail: 'Requests for this sale must be signed. Sign each request anew.',
});
export const NO_PASS = new PreparedProblem('queue_pass_needed', {
  detail: 'Get a queue pass first: POST /v1/sales/{saleId}/queue, and wait for your turn.',
});
export const NO_TOKEN = new PreparedProblem('purchase_token_needed', {
  detail: 'Get a purchase token first, a new one for each purchase: POST /v1/sales/{saleId}/purchase-token.',
});
/** Only Redis knows whether a nonce or a token was used before, and Redis does not answer. */
export const CANNOT_CHECK = new PreparedProblem('unavailable', { detail: unavailableDetail('redis') });

/** Describes the problem with a token, in the detail and in `WWW-Authenticate`: ASCII without quotes. */
const DENIALS: Readonly<
  Record<Exclude<Denial, 'missing' | 'keys_unavailable' | 'app_failed' | 'not_signed_in'>, string>
> = {
  malformed: 'The token is not a JWT that this server understands.',
  too_long: 'The token is too long.',
  unknown_key: 'This server does not know the key that signed the token.',
  bad_signature: 'The signature of the token is wrong.',
  wrong_issuer: 'This server does not accept tokens of this issuer.',
  wrong_audience: 'The token is for another audience.',
  bad_subject: 'The subject of the token must be 1 to 128 visible ASCII characters.',
  bad_roles: 'The roles of the token are not a list of strings.',
  no_expiry: 'The token does not say when it expires.',
  expired: 'The token has expired.',
  not_yet_valid: 'The token is not valid yet.',
  lives_too_long: 'The lifetime of the token is longer than this server allows.',
  revoked: 'The token was revoked.',
};

/**
 * Returns a 401 with the challenge of RFC 6750, which names an error only if a token was sent. Returns a 503 if the
 * keys of the issuer were never read or the host app cannot identify the caller: the token may be good, and a new
 * sign-in would not help. A host app with its own sign-in reads no bearer tokens, so its 401 has no challenge.
 */
export function unauthorizedAnswer(denial: Denial, requestId: string | null): Answer<'unauthorized' | 'unavailable'> {
  if (denial === 'missing') return problem('unauthorized', { requestId }, ['WWW-Authenticate', 'Bearer']);
  if (denial === 'keys_unavailable') return NO_KEYS.answer(requestId);
  if (denial === 'app_failed') return APP_FAILED.answer(requestId);
  if (denial === 'not_signed_in') return problem('unauthorized', { requestId, detail: SIGN_IN });
  const detail = DENIALS[denial];
  const challenge = `Bearer error="invalid_token", error_description="${denial}: ${detail}"`;
  return problem('unauthorized', { requestId, detail }, ['WWW-Authenticate', challenge]);
}

const SIGN_IN = 'This request needs a signed-in buyer. Sign in, then send it again.';

const NO_KEYS = new PreparedProblem('unavailable', {
  detail: 'This server cannot read the keys of the identity provider, so it cannot check the token. Try again.',
});

const APP_FAILED = new PreparedProblem('unavailable', {
  detail: 'This server could not identify the caller, and did nothing. Try again with the same key.',
});

export const roleNeededAnswer = (role: Role, requestId: string | null): Answer<'role_needed'> =>
  problem('role_needed', { requestId, detail: `This request needs the role ${role}, or a role that includes it.` });

export const unpaidPauseAnswer = (retryAfterMs: number, requestId: string | null): Answer<'unpaid_pause'> =>
  problem('unpaid_pause', { requestId, retryAfterMs: Math.ceil(retryAfterMs) });
