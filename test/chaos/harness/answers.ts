import { expectEqual, expectTrue } from './expect.js';
import type { Answer } from './http-client.js';

/** Who asks again with the same key may be told 200 instead of 202: the first answer was lost or came too late. */
export const isYes = (answer: Answer | null | undefined): boolean => (answer?.status ?? 500) < 300;

/** `yes`, or the code of the refusal. */
export const wordOf = (answer: Answer | null | undefined): string =>
  isYes(answer) ? 'yes' : String(answer?.json.code ?? 'nothing');

/** @throws AssertionError unless every answer is a yes for the same request */
export function expectOneRequest(answers: readonly (Answer | null)[], requestId: string): void {
  expectTrue(answers.every(isYes), 'every answer is 2xx');
  expectEqual([...new Set(answers.map((answer) => answer?.json.requestId))], [requestId], 'requests in the answers');
}
