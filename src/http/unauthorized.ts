import type { Denial } from './auth.js';
import type { ProblemParts } from './problem.js';

const DETAILS: Readonly<Record<Denial, string | undefined>> = {
  missing: undefined,
  invalid: 'The token is not valid here.',
  expired: 'The token has expired.',
};

/** What a 401 adds to its row: the challenge of RFC 6750, with an error only when a token was sent. */
export function unauthorizedParts(denial: Denial, requestId: string | null): [ProblemParts, string[]] {
  const detail = DETAILS[denial];
  const challenge = denial === 'missing' ? 'Bearer' : 'Bearer error="invalid_token"';
  return [{ requestId, ...(detail === undefined ? {} : { detail }) }, ['WWW-Authenticate', challenge]];
}
