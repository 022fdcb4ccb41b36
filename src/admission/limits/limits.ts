import type { LimitSet } from '../../core/limits.js';
import type { Clock } from '../../core/ports/clock.js';
import type { LimitCaller, LimitStore } from '../../core/ports/admission-stores.js';
import type { LimitMetrics } from '../../core/ports/limit-metrics.js';
import type { Log } from '../../core/ports/log.js';
import type { Endpoint } from '../endpoint.js';
import type { Layer, Refused, Verdict } from '../layer.js';
import type { Mode } from '../mode.js';
import type { Caller } from '../caller.js';
import { addressKey } from './address-key.js';
import { LeakyBucket } from './leaky-bucket.js';
import { StoreOrLocal } from './store-or-local.js';
import type { LimitsRules } from './limits-rules.js';
import { LocalLimitStore } from './local-limit-store.js';
import { rateLimitHeaders } from './rate-limit-headers.js';
import { TakeTogether } from './take-together.js';

export interface LimitsParts {
  /** Read at each call. */
  readonly rules: () => LimitsRules;
  /** What all processes count in. */
  readonly store: LimitStore;
  /** Steady. */
  readonly clock: Clock;
  readonly metrics: LimitMetrics;
  readonly log: Log;
}

/** The limits of an endpoint in two parts: what is asked of a stranger, and what of a buyer whom his token has named. */
interface Parts {
  readonly anonymous: LimitSet;
  readonly buyer: LimitSet;
}

/** How fast, in all, by each user and from each address. */
export class Limits implements Layer {
  readonly name = 'limits';
  readonly #rules: () => LimitsRules;
  readonly #metrics: LimitMetrics;
  readonly #strangers: TakeTogether;
  readonly #buyers: TakeTogether;
  readonly #leaky: LeakyBucket;
  /** Rules stay for long; a part is the same object as long as they do. */
  readonly #parts = new WeakMap<LimitSet, Parts>();

  constructor({ rules, store: shared, clock, metrics, log }: LimitsParts) {
    const local = new LocalLimitStore(clock);
    const store = new StoreOrLocal({ shared, local, clock, metrics, log }, rules);
    this.#rules = rules;
    this.#metrics = metrics;
    this.#strangers = new TakeTogether(store, metrics, clock);
    this.#buyers = new TakeTogether(store, metrics, clock);
    this.#leaky = new LeakyBucket(clock);
  }

  get mode(): Mode {
    return this.#rules().mode;
  }

  /** Counts the address. Rejects with a bug only: without Redis the process counts by itself. */
  anonymous({ endpoint, address }: Caller): Verdict {
    const limits = this.#partsOf(endpoint).anonymous;
    if (!hasAny(limits)) return null;
    const counted = limits.ip === null || address === '' ? null : addressKey(address);
    return this.#take(this.#strangers, endpoint, limits, { address: counted, userId: null });
  }

  /** Counts the user, and the visit among all. */
  buyer({ endpoint }: Caller, userId: string): Verdict {
    const limits = this.#partsOf(endpoint).buyer;
    if (!hasAny(limits)) return null;
    return this.#take(this.#buyers, endpoint, limits, { address: null, userId });
  }

  /** Before the batcher: null: go on; a promise: go on when it resolves; else refused. */
  smooth(): null | Promise<void> | 'rate_limited' {
    const { mode, leaky } = this.#rules();
    if (mode === 'off' || leaky === null) return null;
    const entered = this.#leaky.enter(leaky);
    if (entered === null || entered instanceof Promise) return mode === 'on' ? entered : null;
    this.#metrics.refused('purchase', 'leaky', mode);
    return mode === 'on' ? 'rate_limited' : null;
  }

  async #take(
    together: TakeTogether,
    endpoint: Endpoint,
    limits: LimitSet,
    caller: LimitCaller,
  ): Promise<Refused | null> {
    const verdict = await together.take(endpoint, limits, caller);
    if (verdict.outcome === 'allowed') return null;
    const { mode } = this.#rules();
    if (mode !== 'off') this.#metrics.refused(endpoint, verdict.limit ?? 'global', mode);
    const { outcome: word, retryAfterMs } = verdict;
    return { word, retryAfterMs, headers: rateLimitHeaders(limits, verdict) };
  }

  /** Nobody signs in for a sale page, so all of its limits are asked at once. */
  #partsOf(endpoint: Endpoint): Parts {
    const limits = this.#rules()[endpoint];
    let parts = this.#parts.get(limits);
    if (parts === undefined) {
      const nobody: LimitSet = { ...limits, ip: null, user: null, global: null };
      parts =
        endpoint === 'sale'
          ? { anonymous: { ...limits, user: null }, buyer: nobody }
          : { anonymous: { ...nobody, ip: limits.ip }, buyer: { ...limits, ip: null } };
      this.#parts.set(limits, parts);
    }
    return parts;
  }
}

const hasAny = ({ ip, user, global }: LimitSet): boolean => ip !== null || user !== null || global !== null;
