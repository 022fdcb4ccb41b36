import { Bug } from '../../core/errors.js';
import type { LimitSet, LimitVerdict } from '../../core/limits.js';
import type { Clock } from '../../core/ports/clock.js';
import {
  LIMIT_CALLERS_MAX,
  type LimitAnswers,
  type LimitCall,
  type LimitCaller,
} from '../../core/ports/admission-stores.js';
import type { LimitMetrics } from '../../core/ports/limit-metrics.js';

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
