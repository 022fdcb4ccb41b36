import type { BucketLimit, LimitSet, LimitVerdict, WindowLimit } from '../../core/limits.js';

const MS_PER_S = 1000;

/** Whole seconds, rounded up: never sends a client back too soon, and never says 0 while there is something to wait for. */
const seconds = (ms: number): number => Math.ceil(ms / MS_PER_S);

/**
 * `RateLimit-Policy`: every limit with its quota `q` and window `w` in seconds. A bucket is told as what it holds when
 * full, and how long an empty one takes to fill.
 */
export function rateLimitPolicy({ ip, user, global }: LimitSet): string {
  const ofWindow = (name: string, window: WindowLimit | null): string[] =>
    window === null ? [] : [policy(name, window.limit, seconds(window.windowMs))];
  const ofBucket = (name: string, bucket: BucketLimit | null): string[] =>
    bucket === null ? [] : [policy(name, bucket.burst, Math.ceil(bucket.burst / bucket.ratePerSecond))];
  return [...ofWindow('ip', ip), ...ofWindow('user', user), ...ofBucket('global', global)].join(', ');
}

const policy = (name: string, quota: number, windowS: number): string => `"${name}";q=${quota};w=${windowS}`;

/**
 * The headers of one answer as a flat list of names and values: the limit that counts most with what it has left (`r`)
 * and in how many seconds there is more (`t`), after the fields of the IETF draft `RateLimit`. Empty where no limit counts
 * the visit.
 */
export function rateLimitHeaders(limits: LimitSet, verdict: LimitVerdict): string[] {
  const { outcome, limit, remaining, resetMs, retryAfterMs } = verdict;
  if (limit === null) return [];
  const refused = outcome === 'rate_limited';
  const moreInS = seconds(refused ? retryAfterMs : resetMs);
  return [...['RateLimit-Policy', policyOf(limits)], ...['RateLimit', `"${limit}";r=${remaining};t=${moreInS}`]];
}

/** Rules stay for long and answers are many. */
const policies = new WeakMap<LimitSet, string>();

function policyOf(limits: LimitSet): string {
  let text = policies.get(limits);
  if (text === undefined) policies.set(limits, (text = rateLimitPolicy(limits)));
  return text;
}
