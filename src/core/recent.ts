import type { Clock } from './ports/clock.js';

/**
 * Calls `ask` at most once in `keepMs`. A caller within that time gets the last answer, and a caller that comes while a
 * call is running shares its answer. A failure is not kept.
 * @param keepMs counted from the answer; with 0, callers share a running call, but no answer is kept
 */
export function recent<T>(ask: () => Promise<T>, keepMs: number, clock: Clock): () => Promise<T> {
  let last: { readonly answer: Promise<T>; untilMs: number } | null = null;
  return () => {
    if (last !== null && clock.monotonicMs() < last.untilMs) return last.answer;
    const asked = { answer: ask(), untilMs: Infinity };
    last = asked;
    asked.answer.then(
      () => (asked.untilMs = clock.monotonicMs() + keepMs),
      () => (asked.untilMs = -Infinity),
    );
    return asked.answer;
  };
}
