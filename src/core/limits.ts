/** In a tie, the first decides. */
export type LimitName = 'ip' | 'user' | 'global';

/** A token bucket: tokens return at a steady rate, up to `burst`. */
export interface BucketLimit {
  readonly ratePerSecond: number;
  readonly burst: number;
}

/** Allows `limit` requests in any period of `windowMs`, which is a multiple of the number of slices. */
export interface WindowLimit {
  readonly limit: number;
  readonly windowMs: number;
}

/** The limits of one endpoint. A kind of limit is off if it is null. */
export interface LimitSet {
  readonly global: BucketLimit | null;
  readonly user: WindowLimit | null;
  readonly ip: WindowLimit | null;
  /** Maximum number of users, and of addresses, counted at a time. Others pass uncounted. */
  readonly subjectsMax: number;
}

export interface LimitVerdict {
  readonly outcome: 'allowed' | 'rate_limited';
  /** The limit with the longest wait, or with the fewest remaining requests. Null if no limit counts this request. */
  readonly limit: LimitName | null;
  /** Number of requests that this limit still allows. */
  readonly remaining: number;
  /** Time until a request may be allowed. 0 if this request is allowed. */
  readonly retryAfterMs: number;
  /** Time until that limit is full again. For a window, an upper bound. */
  readonly resetMs: number;
}

/** The current slice counts in addition, so a window spans 1 to 1.1 times its length, never less. */
export const WINDOW_SLICES = 10;

/** A rate per second equals the same number of millionths per microsecond, so nothing is rounded. */
export const TOKEN = 1_000_000;

const US_PER_MS = 1000;

const sliceUs = (windowMs: number): number => (windowMs * US_PER_MS) / WINDOW_SLICES;

export const sliceAt = (nowUs: number, windowMs: number): number => Math.floor(nowUs / sliceUs(windowMs));

/** The state of a window after one request. */
export interface WindowFigures {
  readonly left: number;
  /** Age of the oldest counted request, in slices. */
  readonly oldestBack: number;
}

/** The state of all limits after one request. A limit is null if it did not count the request. */
export interface LimitFigures {
  readonly nowUs: number;
  readonly outcome: LimitVerdict['outcome'];
  readonly ip: WindowFigures | null;
  readonly user: WindowFigures | null;
  /** Remaining tokens, in millionths. Meaningless without that limit. */
  readonly tokens: number;
}

interface LimitState {
  readonly limit: LimitName;
  readonly remaining: number;
  readonly retryAfterMs: number;
  readonly resetMs: number;
}

/** Returns the tightest limit of one request, and the time to wait. */
export function limitVerdict(limits: LimitSet, { nowUs, outcome, ip, user, tokens }: LimitFigures): LimitVerdict {
  const states: LimitState[] = [];
  if (limits.ip !== null && ip !== null) states.push(ofWindow('ip', limits.ip, ip, nowUs));
  if (limits.user !== null && user !== null) states.push(ofWindow('user', limits.user, user, nowUs));
  if (limits.global !== null) states.push(ofBucket(limits.global, tokens));
  let tightest = states[0];
  if (tightest === undefined) return { outcome, limit: null, remaining: 0, retryAfterMs: 0, resetMs: 0 };
  const allowed = outcome === 'allowed';
  for (const one of states) {
    const tighter = allowed ? one.remaining < tightest.remaining : one.retryAfterMs > tightest.retryAfterMs;
    if (tighter) tightest = one;
  }
  return { outcome, ...tightest, retryAfterMs: allowed ? 0 : tightest.retryAfterMs };
}

function ofWindow(limit: LimitName, { windowMs }: WindowLimit, figures: WindowFigures, nowUs: number): LimitState {
  const leavesMs = (back: number): number => {
    const leavesUs = (sliceAt(nowUs, windowMs) - back + WINDOW_SLICES + 1) * sliceUs(windowMs);
    return Math.ceil((leavesUs - nowUs) / US_PER_MS);
  };
  const { left, oldestBack } = figures;
  return { limit, remaining: left, retryAfterMs: left > 0 ? 0 : leavesMs(oldestBack), resetMs: leavesMs(0) };
}

function ofBucket({ ratePerSecond, burst }: BucketLimit, tokens: number): LimitState {
  const untilMs = (wanted: number): number =>
    Math.max(0, Math.ceil((wanted * TOKEN - tokens) / ratePerSecond / US_PER_MS));
  return { limit: 'global', remaining: Math.floor(tokens / TOKEN), retryAfterMs: untilMs(1), resetMs: untilMs(burst) };
}
