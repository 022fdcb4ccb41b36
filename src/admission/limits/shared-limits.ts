import { Bug, OperationalError } from '../../core/errors.js';
import type { BucketLimit, LimitSet, LimitVerdict, WindowLimit } from '../../core/limits.js';
import {
  LIMIT_CALLERS_MAX,
  type LimitAnswers,
  type LimitCall,
  type LimitCaller,
  type LimitStore,
} from '../../core/ports/admission-stores.js';
import type { Clock } from '../../core/ports/clock.js';
import type { Log } from '../../core/ports/log.js';
import type { AdmissionMetrics } from '../metrics.js';

interface Waiting {
  readonly sinceMs: number;
  readonly caller: LimitCaller;
  readonly resolve: (verdict: LimitVerdict) => void;
  readonly reject: (error: unknown) => void;
}

/** Requests to one endpoint under the same limits. */
interface Lane {
  readonly endpoint: string;
  readonly limits: LimitSet;
  queue: Waiting[];
  isUnderWay: boolean;
}

/** Requests during a call join the next one. A lone request is sent at the end of this turn of the event loop. */
export class LimitBatcher {
  readonly #store: FallbackLimitStore;
  readonly #clock: Clock;
  readonly #metrics: AdmissionMetrics;
  /** Lanes by endpoint and limits. Old lanes disappear together with their rules. */
  readonly #lanes = new Map<string, WeakMap<LimitSet, Lane>>();

  constructor(store: FallbackLimitStore, metrics: AdmissionMetrics, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.#metrics = metrics;
  }

  /** @throws what the store throws */
  take(endpoint: string, limits: LimitSet, caller: LimitCaller): Promise<LimitVerdict> {
    const lane = this.#lane(endpoint, limits);
    return new Promise((resolve, reject) => {
      lane.queue.push({ sinceMs: this.#clock.monotonicMs(), caller, resolve, reject });
      if (lane.isUnderWay) return;
      lane.isUnderWay = true;
      setImmediate(() => void this.#run(lane));
    });
  }

  #lane(endpoint: string, limits: LimitSet): Lane {
    let lanes = this.#lanes.get(endpoint);
    if (!lanes) this.#lanes.set(endpoint, (lanes = new WeakMap()));
    let lane = lanes.get(limits);
    if (!lane) lanes.set(limits, (lane = { endpoint, limits, queue: [], isUnderWay: false }));
    return lane;
  }

  /** Never rejects. */
  async #run(lane: Lane): Promise<void> {
    while (lane.queue.length > 0) {
      const taken = lane.queue.splice(0, LIMIT_CALLERS_MAX);
      try {
        const { endpoint, limits } = lane;
        const callers = taken.map(({ caller }) => caller);
        const waitedMs = this.#clock.monotonicMs() - (taken[0]?.sinceMs ?? 0);
        const { verdicts, uncounted } = await this.#store.take({ endpoint, limits, callers }, waitedMs);
        if (uncounted > 0) this.#metrics.uncounted(uncounted);
        taken.forEach(({ resolve, reject }, index) => {
          const verdict = verdicts[index];
          if (verdict) resolve(verdict);
          else reject(new Bug('a request has no verdict'));
        });
      } catch (error) {
        for (const { reject } of taken) reject(error);
      }
    }
    lane.isUnderWay = false;
  }
}

interface FallbackParts {
  readonly shared: LimitStore;
  readonly local: LimitStore;
  readonly clock: Clock;
  readonly metrics: AdmissionMetrics;
  readonly log: Log;
}

interface FallbackOptions {
  /** How long the shared store may take to answer, ms. */
  readonly replyTimeoutMs: number;
  /** Interval between attempts while the shared store is down, ms. */
  readonly retryEveryMs: number;
  /** Number of processes that share the traffic while the store is down. 0 if unknown. */
  readonly processes: number;
}

/** Without a reason for the abort, each call would pay for an exception and its stack. */
const ANSWERED = 'answered';

/**
 * Counts locally while the shared store does not answer in time. Buyers notice nothing; the log reports it once per
 * outage. One call at a time checks whether the shared store is back.
 */
export class FallbackLimitStore implements LimitStore {
  readonly #parts: FallbackParts;
  readonly #options: () => FallbackOptions;
  #isAway = false;
  /** When to try the shared store again while it is down. */
  #retryAtMs = 0;

  constructor(parts: FallbackParts, options: () => FallbackOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  /**
   * Rejects only for a bug.
   * @param waitedMs age of the oldest request, part of the time limit: if Redis falls behind, requests that have waited
   * too long are counted locally, without a call
   */
  async take(call: LimitCall, waitedMs = 0): Promise<LimitAnswers> {
    const { clock, metrics } = this.#parts;
    const { retryEveryMs, replyTimeoutMs } = this.#options();
    if (waitedMs >= replyTimeoutMs) return this.#takeLocally(call);
    if (this.#isAway && clock.monotonicMs() < this.#retryAtMs) return this.#takeLocally(call);
    this.#retryAtMs = clock.monotonicMs() + retryEveryMs;
    const answers = await this.#takeShared(call);
    if (answers === null) return this.#takeLocally(call);
    metrics.requestsCounted('redis', call.callers.length);
    return answers;
  }

  /** Counts in the shared store. Null if it did not answer. */
  async #takeShared(call: LimitCall): Promise<LimitAnswers | null> {
    const { shared, clock } = this.#parts;
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
    const { local, metrics } = this.#parts;
    metrics.requestsCounted('local', call.callers.length);
    const { processes } = this.#options();
    return local.take(processes <= 1 ? call : { ...call, limits: shareOf(call.limits, processes) });
  }

  #leave(why: string): void {
    const { clock, log } = this.#parts;
    this.#retryAtMs = clock.monotonicMs() + this.#options().retryEveryMs;
    if (this.#isAway) return;
    this.#isAway = true;
    log.warn({ why }, 'Redis does not count requests for limits; this process counts alone');
  }

  #comeBack(): void {
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#parts.log.info({}, 'Redis counts requests for limits again');
  }
}

/** If the whole process was paused, timers run first although an answer may already be there. */
const afterSockets = (): Promise<null> => new Promise((resolve) => setImmediate(() => resolve(null)));

/** Returns the limits for a single process out of several. Each limit allows at least one request. */
export function shareOf(limits: LimitSet, processes: number): LimitSet {
  const part = (whole: number): number => Math.ceil(whole / processes);
  const ofWindow = (window: WindowLimit | null): WindowLimit | null =>
    window && { ...window, limit: part(window.limit) };
  const ofBucket = (bucket: BucketLimit | null): BucketLimit | null =>
    bucket && { ratePerSecond: part(bucket.ratePerSecond), burst: part(bucket.burst) };
  return { ...limits, ip: ofWindow(limits.ip), user: ofWindow(limits.user), global: ofBucket(limits.global) };
}
