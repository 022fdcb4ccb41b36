import {
  limitVerdict,
  TOKEN,
  type LimitFigures,
  type LimitSet,
  type WindowLimit,
  sliceAt,
  WINDOW_SLICES,
  type WindowFigures,
  type BucketLimit,
} from '../../core/limits.js';
import type { Clock } from '../../core/ports/clock.js';
import type { LimitAnswers, LimitCall, LimitCaller, LimitStore } from '../../core/ports/admission-stores.js';

/** Counts in one process while Redis is down, like lua/take-permits-5.lua. */
export class LocalLimitStore implements LimitStore {
  readonly #clock: Clock;
  readonly #endpoints = new Map<string, EndpointCounts>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async take({ endpoint, limits, callers }: LimitCall): Promise<LimitAnswers> {
    const nowUs = Math.floor(this.#clock.monotonicMs() * 1000);
    let counts = this.#endpoints.get(endpoint);
    if (!counts) this.#endpoints.set(endpoint, (counts = new EndpointCounts()));
    let uncounted = 0;
    const verdicts = callers.map((caller) => {
      const figures = counts.take(limits, caller, nowUs);
      if (limits.ip !== null && caller.address !== null && figures.ip === null) uncounted++;
      if (limits.user !== null && caller.userId !== null && figures.user === null) uncounted++;
      return limitVerdict(limits, figures);
    });
    return { verdicts, uncounted };
  }
}

class EndpointCounts {
  readonly #bucket = new TokenBucket();
  #ip = new SlidingWindow(0);
  #user = new SlidingWindow(0);

  /** Counts a request in all limits or in none. */
  take(limits: LimitSet, { address, userId }: LimitCaller, nowUs: number): LimitFigures {
    this.#ip = inLength(this.#ip, limits.ip);
    this.#user = inLength(this.#user, limits.user);
    const { global, subjectsMax } = limits;
    const ip = limits.ip === null || address === null ? null : this.#ip.find(address, subjectsMax, nowUs);
    const user = limits.user === null || userId === null ? null : this.#user.find(userId, subjectsMax, nowUs);
    const open = global === null || this.#bucket.tokens(global, nowUs) >= TOKEN;
    const allowed = open && hasRoom(ip, limits.ip) && hasRoom(user, limits.user);
    if (allowed) {
      if (ip) this.#ip.add(address as string, ip);
      if (user) this.#user.add(userId as string, user);
      if (global) this.#bucket.take(global, nowUs);
    }
    return {
      nowUs,
      outcome: allowed ? 'allowed' : 'rate_limited',
      ip: ip && limits.ip && figuresOf(ip, limits.ip.limit),
      user: user && limits.user && figuresOf(user, limits.user.limit),
      tokens: global === null ? 0 : this.#bucket.tokens(global, nowUs),
    };
  }
}

const hasRoom = (counts: Counts | null, limit: WindowLimit | null): boolean =>
  counts === null || limit === null || counts.total < limit.limit;

/** Returns the window, or an empty one if its length has changed. */
const inLength = (window: SlidingWindow, limit: WindowLimit | null): SlidingWindow =>
  limit === null || limit.windowMs === window.windowMs ? window : new SlidingWindow(limit.windowMs);

/** The requests of one subject, slice by slice. */
export interface Counts {
  /** The slice of `bySlice[0]`; each entry is one slice earlier. */
  readonly slice: number;
  readonly bySlice: number[];
  total: number;
}

/**
 * The sliding window of lua/take-permits-5.lua. Counts the requests of the last `windowMs`, and some up to a tenth of
 * it older. A subject without a request in two generations, each as long as the window, is dropped.
 */
export class SlidingWindow {
  readonly windowMs: number;
  #generation = -1;
  #current = new Map<string, Counts>();
  #previous = new Map<string, Counts>();

  constructor(windowMs: number) {
    this.windowMs = windowMs;
  }

  get size(): number {
    return this.#current.size + this.#previous.size;
  }

  /** Returns null if the subject is not counted, because `subjectsMax` others are. @param nowUs whole microseconds */
  find(subject: string, subjectsMax: number, nowUs: number): Counts | null {
    const slice = sliceAt(nowUs, this.windowMs);
    this.#turn(Math.floor(slice / WINDOW_SLICES));
    const known = this.#current.get(subject);
    if (known === undefined && this.#current.size >= subjectsMax) return null;
    return countsAt(slice, known ?? this.#previous.get(subject));
  }

  /** Counts another request of a subject that has just been found. */
  add(subject: string, counts: Counts): void {
    counts.bySlice[0] = (counts.bySlice[0] ?? 0) + 1;
    counts.total++;
    this.#current.set(subject, counts);
  }

  #turn(generation: number): void {
    if (generation === this.#generation) return;
    this.#previous = generation === this.#generation + 1 ? this.#current : new Map();
    this.#current = new Map();
    this.#generation = generation;
  }
}

/** Returns what is left of a limit after these requests. */
function figuresOf({ bySlice, total }: Counts, limit: number): WindowFigures {
  return { left: Math.max(0, limit - total), oldestBack: bySlice.findLastIndex((count) => count > 0) };
}

/** Returns the counts, shifted to the current slice. */
function countsAt(slice: number, known: Counts | undefined): Counts {
  const bySlice = new Array<number>(WINDOW_SLICES + 1).fill(0);
  let total = 0;
  if (known !== undefined) {
    for (let back = 0; back <= WINDOW_SLICES; back++) {
      const count = known.bySlice[back - slice + known.slice] ?? 0;
      bySlice[back] = count;
      total += count;
    }
  }
  return { slice, bySlice, total };
}

/** The token bucket of lua/take-permits-5.lua. Starts full. Times are whole microseconds of one clock. */
export class TokenBucket {
  #left = Infinity;
  #atUs = 0;

  /** Returns the current tokens, in millionths. A clock that was set back adds none. */
  tokens({ ratePerSecond, burst }: BucketLimit, nowUs: number): number {
    return Math.min(burst * TOKEN, this.#left + Math.max(0, nowUs - this.#atUs) * ratePerSecond);
  }

  /** Takes a token. The caller has checked that there is a token. */
  take(limit: BucketLimit, nowUs: number): void {
    this.#left = this.tokens(limit, nowUs) - TOKEN;
    this.#atUs = nowUs;
  }
}
