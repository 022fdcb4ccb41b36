import { OperationalError } from '../../core/errors.js';
import type { BucketLimit, LimitSet, WindowLimit } from '../../core/limits.js';
import type { Clock } from '../../core/ports/clock.js';
import type { LimitAnswers, LimitCall, LimitStore } from '../../core/ports/admission-stores.js';
import type { LimitMetrics } from '../../core/ports/limit-metrics.js';
import type { Log } from '../../core/ports/log.js';

export interface FallbackOptions {
  /** The shared ledger has this long to answer. */
  readonly replyTimeoutMs: number;
  /** While it is away it is asked again this often. */
  readonly retryEveryMs: number;
  /** Processes that share the traffic meanwhile; 0: not known. */
  readonly processes: number;
}

export interface FallbackPorts {
  readonly shared: LimitStore;
  readonly local: LimitStore;
  readonly clock: Clock;
  readonly metrics: LimitMetrics;
  readonly log: Log;
}

/** A reason of its own: without one, each call would pay for an exception and its stack. */
const ANSWERED = 'answered';

/**
 * The shared ledger; while it does not answer, or not in time, the local one. Nobody hears of it but the log, once per
 * outage, and the meters. Only one call at a time finds out whether the shared one is back.
 */
export class StoreOrLocal implements LimitStore {
  readonly #ports: FallbackPorts;
  readonly #options: () => FallbackOptions;
  #away = false;
  /** While away: when it is asked again. */
  #askAgainMs = 0;

  constructor(ports: FallbackPorts, options: () => FallbackOptions) {
    this.#ports = ports;
    this.#options = options;
  }

  /**
   * Throws only what is a bug.
   * @param waitedMs what these visits have waited already is part of their time: a Redis that is slower than they come is
   *   not asked for all of them
   */
  async take(call: LimitCall, waitedMs = 0): Promise<LimitAnswers> {
    const { clock, metrics } = this.#ports;
    const { retryEveryMs, replyTimeoutMs } = this.#options();
    if (waitedMs >= replyTimeoutMs) return this.#takeLocally(call);
    if (this.#away && clock.nowMs() < this.#askAgainMs) return this.#takeLocally(call);
    this.#askAgainMs = clock.nowMs() + retryEveryMs;
    const answers = await this.#ask(call);
    if (answers === null) return this.#takeLocally(call);
    metrics.counted('redis', call.callers.length);
    return answers;
  }

  /** Null: it did not answer. */
  async #ask(call: LimitCall): Promise<LimitAnswers | null> {
    const { shared, clock } = this.#ports;
    const { replyTimeoutMs } = this.#options();
    const answered = new AbortController();
    try {
      const late = clock.sleep(replyTimeoutMs, answered.signal).then(afterSockets);
      const answers = await Promise.race([shared.take(call), late]);
      if (answers === null) this.#leave(`no answer within ${replyTimeoutMs} ms`);
      else this.#comeBack();
      return answers;
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      this.#leave(error.message);
      return null;
    } finally {
      answered.abort(ANSWERED);
    }
  }

  #takeLocally(call: LimitCall): Promise<LimitAnswers> {
    const { local, metrics } = this.#ports;
    metrics.counted('local', call.callers.length);
    const { processes } = this.#options();
    return local.take(processes <= 1 ? call : { ...call, limits: shareOf(call.limits, processes) });
  }

  #leave(why: string): void {
    const { clock, log } = this.#ports;
    this.#askAgainMs = clock.nowMs() + this.#options().retryEveryMs;
    if (this.#away) return;
    this.#away = true;
    log.warn({ why }, 'Redis does not count visits; this process does it by itself');
  }

  #comeBack(): void {
    if (!this.#away) return;
    this.#away = false;
    this.#ports.log.info({}, 'Redis counts visits again');
  }
}

/** After a pause of the whole process timers run before sockets are read: an answer may be there already. */
const afterSockets = (): Promise<null> => new Promise((resolve) => setImmediate(() => resolve(null)));

/** What one of so many processes may let through; each limit lets at least one in. */
export function shareOf(limits: LimitSet, processes: number): LimitSet {
  const part = (whole: number): number => Math.ceil(whole / processes);
  const ofWindow = (window: WindowLimit | null): WindowLimit | null =>
    window && { ...window, limit: part(window.limit) };
  const ofBucket = (bucket: BucketLimit | null): BucketLimit | null =>
    bucket && { ratePerSecond: part(bucket.ratePerSecond), burst: part(bucket.burst) };
  return { ...limits, ip: ofWindow(limits.ip), user: ofWindow(limits.user), global: ofBucket(limits.global) };
}
