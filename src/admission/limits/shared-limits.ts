import { Bug, OperationalError } from '../../core/errors.js';
import type { LimitSet, LimitVerdict, BucketLimit, WindowLimit } from '../../core/limits.js';
import type { Clock } from '../../core/ports/clock.js';
import {
  LIMIT_CALLERS_MAX,
  type LimitAnswers,
  type LimitCall,
  type LimitCaller,
  type LimitStore,
} from '../../core/ports/admission-stores.js';
import type { LimitMetrics } from '../../core/ports/limit-metrics.js';
import type { Log } from '../../core/ports/log.js';

/** What judges visits. `waitedMs`: so long the oldest of them has waited for the call already. */
export interface CallerJudge {
  take(call: LimitCall, waitedMs: number): Promise<LimitAnswers>;
}

interface Waiting {
  readonly sinceMs: number;
  readonly caller: LimitCaller;
  readonly resolve: (verdict: LimitVerdict) => void;
  readonly reject: (error: unknown) => void;
}

/** The visits of one endpoint. */
interface Lane {
  readonly endpoint: string;
  /** Those of the latest visit: rules that have changed hold for all who wait. */
  limits: LimitSet;
  queue: Waiting[];
  underWay: boolean;
}

/**
 * One call for many visits: whoever comes while a call is under way joins the next one. Nobody waits for company: a lone
 * visit leaves at the end of the turn of the event loop that brought it.
 */
export class TakeTogether {
  readonly #judge: CallerJudge;
  readonly #clock: Pick<Clock, 'nowMs'>;
  readonly #metrics: Pick<LimitMetrics, 'uncounted'>;
  /** As many as there are endpoints. */
  readonly #lanes = new Map<string, Lane>();

  constructor(judge: CallerJudge, metrics: Pick<LimitMetrics, 'uncounted'>, clock: Pick<Clock, 'nowMs'>) {
    this.#judge = judge;
    this.#clock = clock;
    this.#metrics = metrics;
  }

  /** @throws what the judge throws */
  take(endpoint: string, limits: LimitSet, caller: LimitCaller): Promise<LimitVerdict> {
    const lane = this.#lane(endpoint, limits);
    return new Promise((resolve, reject) => {
      lane.queue.push({ sinceMs: this.#clock.nowMs(), caller, resolve, reject });
      if (lane.underWay) return;
      lane.underWay = true;
      setImmediate(() => void this.#run(lane));
    });
  }

  #lane(endpoint: string, limits: LimitSet): Lane {
    let lane = this.#lanes.get(endpoint);
    if (!lane) this.#lanes.set(endpoint, (lane = { endpoint, limits, queue: [], underWay: false }));
    lane.limits = limits;
    return lane;
  }

  /** Never rejects. */
  async #run(lane: Lane): Promise<void> {
    while (lane.queue.length > 0) {
      const taken = lane.queue.splice(0, LIMIT_CALLERS_MAX);
      try {
        const { endpoint, limits } = lane;
        const callers = taken.map(({ caller }) => caller);
        const waitedMs = this.#clock.nowMs() - (taken[0]?.sinceMs ?? 0);
        const { verdicts, uncounted } = await this.#judge.take({ endpoint, limits, callers }, waitedMs);
        if (uncounted > 0) this.#metrics.uncounted(uncounted);
        taken.forEach(({ resolve, reject }, index) => {
          const verdict = verdicts[index];
          if (verdict) resolve(verdict);
          else reject(new Bug('a visit was not judged'));
        });
      } catch (error) {
        for (const { reject } of taken) reject(error);
      }
    }
    lane.underWay = false;
  }
}

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
