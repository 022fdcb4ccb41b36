/** Returns the present value of a secret or certificate. Its file may change while the program runs. */
export type Live = () => string;

/** A value that is not set and never will be. */
export const NOT_SET: Live = () => '';

/** Minimum age before a file is read again, so that a hot path may ask with each call. */
const READ_AGAIN_AFTER_MS = 5_000;

/**
 * Reads a text again, at most every 5 s, and only on demand.
 * @param first the text at the start
 * @param read returns the present text and receives the last text. An error, such as a missing or useless file, keeps
 *   the last good text: files are replaced one after the other, not in an instant
 */
export function liveText(first: string, read: (last: string) => string): Live {
  let text = first;
  let readAtMs = performance.now();
  return () => {
    const nowMs = performance.now();
    if (nowMs - readAtMs < READ_AGAIN_AFTER_MS) return text;
    readAtMs = nowMs;
    try {
      const now = read(text);
      if (now !== text) text = now; // the same string compares at once, an equal string letter by letter
    } catch {
      // the last good text stays in force
    }
    return text;
  };
}
