import type { AdmissionCode, Refused } from '../admission/layer.js';
import type { ProblemParts } from './problem.js';
import { PreparedProblem } from './prepared-problem.js';
import { problemAnswer, type Answer } from './respond.js';

/** What a buyer reads. Not why: that would tell an attacker what to change. */
const DETAILS: Readonly<Record<AdmissionCode, string>> = {
  denied: 'Access is denied.',
  rate_limited: 'You ask too often, or too many ask at once.',
  degraded: 'There is too much to do right now; nothing was taken. Ask again with the same key.',
};

const PREPARED = Object.fromEntries(
  Object.entries(DETAILS).map(([word, detail]) => [word, new PreparedProblem(word as AdmissionCode, detail)]),
) as Record<AdmissionCode, PreparedProblem>;

/** What a no of the entry adds to the row of its word. */
export const admissionParts = ({ word, retryAfterMs }: Refused, requestId: string | null): ProblemParts => ({
  ...{ requestId, detail: DETAILS[word] },
  ...(retryAfterMs === null ? {} : { retryAfterMs }),
});

/** The whole answer. A flood hears the same one again and again, so only the request id is put into it. */
export function admissionAnswer(refused: Refused, requestId: string | null): Answer {
  if (requestId !== null && refused.retryAfterMs === null) return PREPARED[refused.word].answer(requestId);
  return problemAnswer(refused.word, admissionParts(refused, requestId), refused.headers);
}
