/** In the order in which a tie is decided. */
export type LimitName = 'ip' | 'user' | 'global';

/** A token bucket: tokens come back at an even rate, and so many can be saved up. */
export interface BucketLimit {
  readonly ratePerSecond: number;
  /** Tokens in a full bucket. */
  readonly burst: number;
}

/** So many visits in any `windowMs`, a multiple of the number of slices. */
export interface WindowLimit {
  readonly limit: number;
  readonly windowMs: number;
}

/** The limits of one endpoint; null: none of that kind. */
export interface LimitSet {
  /** Over all buyers. */
  readonly global: BucketLimit | null;
  /** Of each user. */
  readonly user: WindowLimit | null;
  /** Of each address. */
  readonly ip: WindowLimit | null;
  /** Users, and addresses, that are counted at a time, at most; beyond it a new one passes uncounted. */
  readonly subjectsMax: number;
}

export interface LimitVerdict {
  readonly outcome: 'allowed' | 'rate_limited';
  /** The limit that makes it wait longest, or has least left; null: none counts this visit. */
  readonly limit: LimitName | null;
  /** Visits that this limit has left. */
  readonly remaining: number;
  /** When it may do better; 0 when it was allowed. */
  readonly retryAfterMs: number;
  /** By then that limit is as if nobody had come; at the latest, for a window. */
  readonly resetMs: number;
}

/** A window is counted in so many slices and the one that runs: it spans 1 to 1.1 windows, never less than one. */
export const WINDOW_SLICES = 10;

/** Tokens are counted in millionths: a rate per second is so many of them per microsecond, and nothing is rounded. */
export const TOKEN = 1_000_000;

const US_PER_MS = 1000;

const sliceUs = (windowMs: number): number => (windowMs * US_PER_MS) / WINDOW_SLICES;

/** The number of the slice that runs. */
export const sliceAt = (nowUs: number, windowMs: number): number => Math.floor(nowUs / sliceUs(windowMs));

/** How a window stands for one visit, after it. */
export interface WindowFigures {
  readonly left: number;
  /** How many slices ago the oldest visit was that counts. */
  readonly oldestBack: number;
}

/** How all limits stand for one visit, after it; null: not counted. */
export interface LimitFigures {
  readonly nowUs: number;
  readonly outcome: LimitVerdict['outcome'];
  readonly ip: WindowFigures | null;
  readonly user: WindowFigures | null;
  /** Millionths of a token that are left; of no meaning without that limit. */
  readonly tokens: number;
}

interface Standing {
  readonly limit: LimitName;
  readonly remaining: number;
  readonly retryAfterMs: number;
  readonly resetMs: number;
}

/** Says of one visit which limit counts most, and for how long. */
export function limitVerdict(limits: LimitSet, { nowUs, outcome, ip, user, tokens }: LimitFigures): LimitVerdict {
  const standings: Standing[] = [];
  if (limits.ip !== null && ip !== null) standings.push(ofWindow('ip', limits.ip, ip, nowUs));
  if (limits.user !== null && user !== null) standings.push(ofWindow('user', limits.user, user, nowUs));
  if (limits.global !== null) standings.push(ofBucket(limits.global, tokens));
  let tightest = standings[0];
  if (tightest === undefined) return { outcome, limit: null, remaining: 0, retryAfterMs: 0, resetMs: 0 };
  const allowed = outcome === 'allowed';
  for (const one of standings) {
    const tighter = allowed ? one.remaining < tightest.remaining : one.retryAfterMs > tightest.retryAfterMs;
    if (tighter) tightest = one;
  }
  return { outcome, ...tightest, retryAfterMs: allowed ? 0 : tightest.retryAfterMs };
}

function ofWindow(limit: LimitName, { windowMs }: WindowLimit, figures: WindowFigures, nowUs: number): Standing {
  const leavesMs = (back: number): number => {
    const leavesUs = (sliceAt(nowUs, windowMs) - back + WINDOW_SLICES + 1) * sliceUs(windowMs);
    return Math.ceil((leavesUs - nowUs) / US_PER_MS);
  };
  const { left, oldestBack } = figures;
  return { limit, remaining: left, retryAfterMs: left > 0 ? 0 : leavesMs(oldestBack), resetMs: leavesMs(0) };
}

function ofBucket({ ratePerSecond, burst }: BucketLimit, tokens: number): Standing {
  const untilMs = (wanted: number): number =>
    Math.max(0, Math.ceil((wanted * TOKEN - tokens) / ratePerSecond / US_PER_MS));
  return { limit: 'global', remaining: Math.floor(tokens / TOKEN), retryAfterMs: untilMs(1), resetMs: untilMs(burst) };
}
