import type { Clock } from './ports/clock.js';

/**
 * Calls `ask` at most once in `keepMs`, counted from the answer. Callers share a running call and the kept answer. A
 * failure is not kept; with 0, no answer is.
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
