import type { OrderNews } from '../domain/order-news.js';
import type { PurchaseStatus } from '../domain/outcome.js';
import type { Clock } from '../ports/clock.js';
import type { PurchaseNews, PurchaseRef } from '../ports/purchase-news.js';
import { statusOf } from './read-purchase.js';

export interface WatchPorts {
  readonly news: PurchaseNews;
  readonly clock: Clock;
}

/** Most orders are written within milliseconds, before the news of them have gone all the way round. */
const FIRST_LOOK_MS = 50;
const LOOK_GROWTH = 3;

/** Says when one purchase should be looked at: when there is news, and now and then without. */
export class PurchaseWatch {
  readonly #clock: Clock;
  readonly #lookMaxMs: number;
  readonly #unlisten: () => void;
  #pauseMs = FIRST_LOOK_MS;
  /** What was heard since the last look; the last word counts. */
  #heard: { readonly news: OrderNews | null } | null = null;
  #sleeping: AbortController | null = null;

  /** @param lookMaxMs the longest pause without news, ms; the first ones are short and grow to it */
  constructor(purchase: PurchaseRef, { news, clock }: WatchPorts, lookMaxMs: number) {
    this.#clock = clock;
    this.#lookMaxMs = lookMaxMs;
    this.#unlisten = news.listen(purchase, (told) => {
      // "Look" must not drown what is known already.
      if (told !== null || this.#heard === null) this.#heard = { news: told };
      this.#sleeping?.abort();
    });
  }

  /**
   * Waits until it is time to look, at most `maxMs`, or until `signal` aborts. Never rejects.
   * @returns how the order stands where the news said so, else null
   */
  async next(maxMs: number, signal: AbortSignal): Promise<PurchaseStatus | null> {
    if (this.#heard === null && !signal.aborted) {
      const sleeping = new AbortController();
      const wake = (): void => sleeping.abort();
      signal.addEventListener('abort', wake, { once: true });
      this.#sleeping = sleeping;
      await this.#clock.sleep(Math.min(this.#pauseMs, maxMs), sleeping.signal);
      this.#sleeping = null;
      signal.removeEventListener('abort', wake);
      this.#pauseMs = Math.min(this.#pauseMs * LOOK_GROWTH, this.#lookMaxMs);
    }
    const news = (this.#heard as { readonly news: OrderNews | null } | null)?.news ?? null;
    this.#heard = null;
    return news === null ? null : statusOf(news);
  }

  close(): void {
    this.#unlisten();
  }
}
