import { TOKEN, type BucketLimit } from '../../core/limits.js';

/** The token bucket of lua/take-permits-5.lua in one process. Begins full. Times are whole microseconds of one clock. */
export class TokenBucket {
  #left = Infinity;
  #atUs = 0;

  /** What is there now, in millionths of a token. A clock that was set back gives nothing. */
  tokens({ ratePerSecond, burst }: BucketLimit, nowUs: number): number {
    return Math.min(burst * TOKEN, this.#left + Math.max(0, nowUs - this.#atUs) * ratePerSecond);
  }

  /** Takes one; the caller has looked that it is there. */
  take(limit: BucketLimit, nowUs: number): void {
    this.#left = this.tokens(limit, nowUs) - TOKEN;
    this.#atUs = nowUs;
  }
}
