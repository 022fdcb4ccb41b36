import type { Clock } from './ports/clock.js';

/**
 * Asks at most once in `keepMs`. A caller in between gets the last answer, and a caller that comes while a question is
 * open shares its answer. A failure is not kept.
 * @param keepMs counted from the answer; 0 shares a question and keeps nothing
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
