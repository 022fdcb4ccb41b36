/** A secret or a certificate as it is now: one that stands in a file may be changed under a program that runs. */
export type Live = () => string;

/** Not set, and never will be. */
export const NOT_SET: Live = () => '';

/** So that a hot path may ask with each call. */
const READ_AGAIN_AFTER_MS = 5_000;

/**
 * Reads again what has been read once, at most every 5 s, and only when it is asked for.
 * @param first what it was at the start
 * @param read gives it as it is now, and is told what it was. What it throws, for a file that is away or that holds nothing of use, means that the
 *   last good text still counts: files are replaced one after the other, and not in an instant
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
      if (now !== text) text = now; // the same string is compared in no time, an equal one letter by letter
    } catch {
      // the last good one still counts
    }
    return text;
  };
}
