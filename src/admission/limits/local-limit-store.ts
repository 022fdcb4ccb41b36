import { limitVerdict, TOKEN, type LimitFigures, type LimitSet, type WindowLimit } from '../../core/limits.js';
import type { Clock } from '../../core/ports/clock.js';
import type { LimitAnswers, LimitCall, LimitCaller, LimitStore } from '../../core/ports/admission-stores.js';
import { figuresOf, SlidingWindow, type Counts } from './sliding-window.js';
import { TokenBucket } from './token-bucket.js';

/** Judges as lua/take-permits-5.lua does, in the memory of one process: takes over while Redis is away. */
export class LocalLimitStore implements LimitStore {
  readonly #clock: Clock;
  readonly #endpoints = new Map<string, EndpointCounts>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async take({ endpoint, limits, callers }: LimitCall): Promise<LimitAnswers> {
    const nowUs = Math.floor(this.#clock.nowMs() * 1000);
    let counts = this.#endpoints.get(endpoint);
    if (!counts) this.#endpoints.set(endpoint, (counts = new EndpointCounts()));
    let uncounted = 0;
    const verdicts = callers.map((caller) => {
      const figures = counts.judge(limits, caller, nowUs);
      if (limits.ip !== null && caller.address !== null && figures.ip === null) uncounted++;
      if (limits.user !== null && caller.userId !== null && figures.user === null) uncounted++;
      return limitVerdict(limits, figures);
    });
    return { verdicts, uncounted };
  }
}

/** The bucket and the windows of one endpoint. */
class EndpointCounts {
  readonly #bucket = new TokenBucket();
  #ip = new SlidingWindow(0);
  #user = new SlidingWindow(0);

  /** Takes from all limits or from none. */
  judge(limits: LimitSet, { address, userId }: LimitCaller, nowUs: number): LimitFigures {
    this.#ip = inLength(this.#ip, limits.ip);
    this.#user = inLength(this.#user, limits.user);
    const ip = found(this.#ip, limits, limits.ip, address, nowUs);
    const user = found(this.#user, limits, limits.user, userId, nowUs);
    const { global } = limits;
    const open = global === null || this.#bucket.tokens(global, nowUs) >= TOKEN;
    const allowed = open && hasRoom(ip, limits.ip) && hasRoom(user, limits.user);
    if (allowed) {
      if (ip) this.#ip.add(address as string, ip);
      if (user) this.#user.add(userId as string, user);
      if (global) this.#bucket.take(global, nowUs);
    }
    return {
      ...{ nowUs, outcome: allowed ? 'allowed' : 'rate_limited' },
      ip: ip && limits.ip && figuresOf(ip, limits.ip.limit),
      user: user && limits.user && figuresOf(user, limits.user.limit),
      tokens: global === null ? 0 : this.#bucket.tokens(global, nowUs),
    };
  }
}

const hasRoom = (counts: Counts | null, limit: WindowLimit | null): boolean =>
  counts === null || limit === null || counts.total < limit.limit;

/** A window of another length begins anew. */
const inLength = (window: SlidingWindow, limit: WindowLimit | null): SlidingWindow =>
  limit === null || limit.windowMs === window.windowMs ? window : new SlidingWindow(limit.windowMs);

function found(
  ...[window, { subjectsMax }, limit, subject, nowUs]: [
    ...[window: SlidingWindow, limits: LimitSet, limit: WindowLimit | null, subject: string | null, nowUs: number],
  ]
): Counts | null {
  return limit === null || subject === null ? null : window.find(subject, subjectsMax, nowUs);
}
