/** Returns the current value of a secret or certificate, whose file may change while the program runs. */
export type Live = () => string;

/** A value that is not set and never will be. */
export const NOT_SET: Live = () => '';

/** Minimum time between two reads of a file. A hot path may therefore ask at every call. */
const READ_AGAIN_AFTER_MS = 5_000;

/**
 * Reads a text again on demand, at most every 5 s.
 * @param read receives the last text and returns the current one. While it throws (a file is missing or unusable), the
 * last good text stays: the files of a set are replaced one after the other
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
      if (now !== text) text = now; // an equal string would be compared letter by letter each time
    } catch {
      // keep the last good text
    }
    return text;
  };
}
