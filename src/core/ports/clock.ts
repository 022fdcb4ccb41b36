/**
 * The time of this process. No rule of the protocol relies on it: sales use the time of Redis, and deadlines use the
 * time of MySQL. Never mix the two readings. Only `nowMs` may be compared with a time of another process.
 */
export interface Clock {
  /** Unix time in ms, for an instant that is stored or compared with another machine. Jumps when the clock is set. */
  nowMs(): number;
  /**
   * Milliseconds since an arbitrary moment, with fractions, for durations and waits within this process. Never goes
   * back.
   */
  monotonicMs(): number;
  /** Resolves after `ms`, or at once when `signal` aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}
