/**
 * The time of this process. No rule of the protocol relies on it: sales use the time of Redis, deadlines that of MySQL.
 * Never mix the two readings; only `nowMs` may be compared with another process.
 */
export interface Clock {
  /** Unix ms, for an instant that is stored or compared with another machine. Jumps when the clock is set. */
  nowMs(): number;
  /** Ms with fractions since an arbitrary moment, for durations within this process. Never goes back. */
  monotonicMs(): number;
  /** Resolves after `ms`, or when `signal` aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The clocks of the servers, Unix ms. */
export interface ServerClocks {
  /** @throws OperationalError mysql */
  mysql(): Promise<number>;
  /** Returns one read per server. A read rejects if its server does not answer. */
  redis(): readonly Promise<number>[];
}
