import { z } from 'zod';
import {
  mode,
  type Endpoint,
  type Layer,
  type Refused,
  type RulesOf,
  type Verdict,
  type Mode,
  type AdmissionRequest,
} from '../layer.js';
import type { LimitSet, BucketLimit, LimitVerdict, WindowLimit } from '../../core/limits.js';
import type { Clock } from '../../core/ports/clock.js';
import type { LimitCaller, LimitStore } from '../../core/ports/admission-stores.js';
import type { AdmissionMetrics } from '../metrics.js';
import type { Log } from '../../core/ports/log.js';
import { addressKey } from './address-key.js';
import { LeakyBucket } from './leaky-bucket.js';
import { FallbackLimitStore, LimitBatcher } from './shared-limits.js';
import { LocalLimitStore } from './local-limit-store.js';

/** A longer window would protect nothing. */
const WINDOW_MAX_MS = 86_400_000;
/** The highest possible limit. A higher limit would protect nothing. */
const WINDOW_LIMIT_MAX = 1_000_000;
const RATE_MAX = 1_000_000;

const bucket = z.strictObject({
  ratePerSecond: z.int().min(1).max(RATE_MAX),
  burst: z.int().min(1).max(RATE_MAX),
});

const window = z.strictObject({
  limit: z.int().min(1).max(WINDOW_LIMIT_MAX),
  /** A window has ten slices of whole ms. */
  windowMs: z.int().min(100).max(WINDOW_MAX_MS).multipleOf(10),
});

const endpointLimits = z.strictObject({
  global: bucket.nullable().default(null),
  user: window.nullable().default(null),
  ip: window.nullable().default(null),
  /** Maximum number of users, and of addresses, in one of two generations. 100,000 take 7 to 13 MB of Redis. */
  subjectsMax: z.int().min(100).max(1_000_000).default(100_000),
});

const leaky = z.strictObject({
  ratePerSecond: z.int().min(1).max(RATE_MAX),
  /** Must be shorter than the time in which a stopping api answers its open requests. */
  waitMaxMs: z.int().min(0).max(5000),
});

/** Limits on requests in total, by user and by address, and on purchases that reach the batcher of a process. */
export const limitsRules = z.strictObject({
  mode: mode.default('off'),
  purchase: endpointLimits.prefault({}),
  status: endpointLimits.prefault({}),
  sale: endpointLimits.prefault({}),
  order: endpointLimits.prefault({}),
  /** Smooths the purchases of each process. Null disables it. */
  leaky: leaky.nullable().default(null),
  /** If Redis takes longer, the process counts by itself, ms. A healthy Redis answers in a few ms. */
  replyTimeoutMs: z.int().min(5).max(5000).default(100),
  /** Interval between attempts while Redis is down, ms. */
  retryEveryMs: z.int().min(50).max(60_000).default(500),
  /** Number of apis that share the traffic while Redis is down. 0: unknown, so each allows the whole limit. */
  processes: z.int().min(0).max(1000).default(0),
});
export type LimitsRules = z.infer<typeof limitsRules>;

interface LimitsParts {
  readonly rules: RulesOf<LimitsRules>;
  /** The store shared by all processes. */
  readonly store: LimitStore;
  readonly clock: Clock;
  readonly metrics: AdmissionMetrics;
  readonly log: Log;
}

/** The limits of an endpoint, split into two steps: before and after the token is checked. */
interface LimitsByStep {
  readonly anonymous: LimitSet;
  readonly buyer: LimitSet;
}

export class Limits implements Layer {
  readonly name = 'limits';
  readonly #rules: RulesOf<LimitsRules>;
  readonly #metrics: AdmissionMetrics;
  readonly #anonymous: LimitBatcher;
  readonly #buyers: LimitBatcher;
  readonly #leaky: LeakyBucket;
  /** The limits of each step, one object per set of rules, so that a request allocates nothing. */
  readonly #byStep = new WeakMap<LimitSet, LimitsByStep>();

  constructor({ rules, store: shared, clock, metrics, log }: LimitsParts) {
    const local = new LocalLimitStore(clock);
    const store = new FallbackLimitStore({ shared, local, clock, metrics, log }, () => rules(null));
    this.#rules = rules;
    this.#metrics = metrics;
    this.#anonymous = new LimitBatcher(store, metrics, clock);
    this.#buyers = new LimitBatcher(store, metrics, clock);
    this.#leaky = new LeakyBucket(clock);
  }

  modeOf(userId: string | null): Mode {
    return this.#rules(userId).mode;
  }

  /** Counts the address. Rejects only for a bug: while Redis is down, the process counts by itself. */
  anonymous({ endpoint, address }: AdmissionRequest): Verdict {
    const limits = this.#limitsOf(endpoint, null).anonymous;
    if (!hasAny(limits)) return null;
    const counted = limits.ip === null || address === '' ? null : addressKey(address);
    return this.#take(this.#anonymous, endpoint, limits, { address: counted, userId: null });
  }

  /** Counts the user and the total. */
  buyer({ endpoint }: AdmissionRequest, userId: string): Verdict {
    const limits = this.#limitsOf(endpoint, userId).buyer;
    if (!hasAny(limits)) return null;
    return this.#take(this.#buyers, endpoint, limits, { address: null, userId });
  }

  /** Smooths purchases before the batcher. Returns null to proceed, a promise to wait for, or a refusal. */
  smooth(): null | Promise<void> | 'rate_limited' {
    const { mode, leaky } = this.#rules(null);
    if (mode === 'off' || leaky === null) return null;
    const entered = this.#leaky.enter(leaky);
    if (entered === null || entered instanceof Promise) return mode === 'on' ? entered : null;
    this.#metrics.limitRefused('purchase', 'leaky', mode);
    return mode === 'on' ? 'rate_limited' : null;
  }

  async #take(
    batcher: LimitBatcher,
    endpoint: Endpoint,
    limits: LimitSet,
    caller: LimitCaller,
  ): Promise<Refused | null> {
    const verdict = await batcher.take(endpoint, limits, caller);
    if (verdict.outcome === 'allowed') return null;
    const { mode } = this.#rules(caller.userId);
    if (mode !== 'off') this.#metrics.limitRefused(endpoint, verdict.limit ?? 'global', mode);
    const { outcome: word, retryAfterMs } = verdict;
    return { word, retryAfterMs, headers: rateLimitHeaders(limits, verdict) };
  }

  /** A sale page needs no token, so the first step counts all its limits. */
  #limitsOf(endpoint: Endpoint, userId: string | null): LimitsByStep {
    const limits = this.#rules(userId)[endpoint];
    let steps = this.#byStep.get(limits);
    if (steps === undefined) {
      const none: LimitSet = { ...limits, ip: null, user: null, global: null };
      steps =
        endpoint === 'sale'
          ? { anonymous: { ...limits, user: null }, buyer: none }
          : { anonymous: { ...none, ip: limits.ip }, buyer: { ...limits, ip: null } };
      this.#byStep.set(limits, steps);
    }
    return steps;
  }
}

const hasAny = ({ ip, user, global }: LimitSet): boolean => ip !== null || user !== null || global !== null;

const MS_PER_S = 1000;

/** Converts to whole seconds, rounded up, so that a client never returns too soon, and 0 means no wait. */
const seconds = (ms: number): number => Math.ceil(ms / MS_PER_S);

/** `RateLimit-Policy`: quota `q` and window `w` (s) of every limit; of a bucket, its burst and the time to fill it. */
export function rateLimitPolicy({ ip, user, global }: LimitSet): string {
  const ofWindow = (name: string, window: WindowLimit | null): string[] =>
    window === null ? [] : [policy(name, window.limit, seconds(window.windowMs))];
  const ofBucket = (name: string, bucket: BucketLimit | null): string[] =>
    bucket === null ? [] : [policy(name, bucket.burst, Math.ceil(bucket.burst / bucket.ratePerSecond))];
  return [...ofWindow('ip', ip), ...ofWindow('user', user), ...ofBucket('global', global)].join(', ');
}

const policy = (name: string, quota: number, windowS: number): string => `"${name}";q=${quota};w=${windowS}`;

/**
 * `RateLimit` of the IETF draft, as a flat list of names and values: the tightest limit with its remaining quota (`r`)
 * and the seconds until there is more (`t`). Empty if no limit counts the request.
 */
export function rateLimitHeaders(limits: LimitSet, verdict: LimitVerdict): string[] {
  const { outcome, limit, remaining, resetMs, retryAfterMs } = verdict;
  if (limit === null) return [];
  const refused = outcome === 'rate_limited';
  const moreInS = seconds(refused ? retryAfterMs : resetMs);
  return ['RateLimit-Policy', policyOf(limits), 'RateLimit', `"${limit}";r=${remaining};t=${moreInS}`];
}

/** Header values, built once per set of rules. */
const policies = new WeakMap<LimitSet, string>();

function policyOf(limits: LimitSet): string {
  let text = policies.get(limits);
  if (text === undefined) policies.set(limits, (text = rateLimitPolicy(limits)));
  return text;
}
