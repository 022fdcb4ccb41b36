/**
 * The time of this process. No rule of the protocol rests on it: sales run on Redis time, deadlines on MySQL time. Its
 * two readings are not to be mixed, nor is one of them comparable with a time of another process but for `nowMs`.
 */
export interface Clock {
  /** Unix time in ms: for an instant that is stored or compared with another machine. It jumps when the clock is set. */
  nowMs(): number;
  /** For durations and waits inside this process: ms since some moment, with fractions, never going back. */
  monotonicMs(): number;
  /** Resolves after `ms`, or at once when `signal` aborts (it never rejects). */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}
