/** The time of this process. No rule of the protocol rests on it: sales run on Redis time, deadlines on MySQL time. */
export interface Clock {
  /** Unix time in ms. */
  nowMs(): number;
  /** Resolves after `ms`, or at once when `signal` aborts (it never rejects). */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}
