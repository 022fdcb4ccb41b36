import type { OrderNotification } from '../core/order-notifications.js';
import type { PurchaseStatus } from '../core/outcome.js';
import type { Clock } from '../core/ports/clock.js';
import type { PurchaseNotifications, PurchaseRef } from '../core/ports/purchase-notifications.js';
import { statusOf } from './read-purchase.js';

export interface WatchPorts {
  readonly news: PurchaseNotifications;
  readonly clock: Clock;
  /** From 0 up to 1: keeps those who wait from looking in the same millisecond. */
  readonly random: () => number;
}

/** Most orders are written within milliseconds, before the news of them have gone all the way round. */
const FIRST_LOOK_MS = 50;
const LOOK_GROWTH = 3;
/** A pause is shorter by up to this share: who came in one burst does not go on looking in one. */
const LOOK_SPREAD = 0.2;
/** After a broken way thousands have to look; Redis, just back, gets them one after the other. */
const LOOK_AFTER_BREAK_MS = 1000;

/** Says when one purchase should be looked at: when there is news, and now and then without. */
export class PurchaseWatch {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #lookMaxMs: number;
  readonly #unlisten: () => void;
  #pauseMs = FIRST_LOOK_MS;
  /** What was told since the last look. */
  #told: OrderNotification | null = null;
  /** When to look because something may have been missed, on the clock. */
  #lookAtMs = Infinity;
  #sleeping: AbortController | null = null;

  /** @param lookMaxMs the longest pause without news, ms; the first ones are short and grow to it */
  constructor(purchase: PurchaseRef, { news, clock, random }: WatchPorts, lookMaxMs: number) {
    this.#clock = clock;
    this.#random = random;
    this.#lookMaxMs = lookMaxMs;
    this.#unlisten = news.listen(purchase, (told) => {
      // A late copy of an early step must not drown a later one.
      if (told !== null) this.#told = this.#told === null || told.state !== 'pending_payment' ? told : this.#told;
      else this.#lookAtMs = Math.min(this.#lookAtMs, clock.nowMs() + random() * LOOK_AFTER_BREAK_MS);
      this.#sleeping?.abort();
    });
  }

  /**
   * Waits until it is time to look, at most `maxMs`, or until `signal` aborts. Never rejects.
   * @returns how the order stands where the news said so, else null
   */
  async next(maxMs: number, signal: AbortSignal): Promise<PurchaseStatus | null> {
    const pauseMs = this.#pauseMs * (1 - LOOK_SPREAD * this.#random());
    const endMs = this.#clock.nowMs() + Math.min(pauseMs, maxMs);
    while (this.#told === null && !signal.aborted) {
      const waitMs = Math.min(endMs, this.#lookAtMs) - this.#clock.nowMs();
      if (waitMs <= 0) break;
      await this.#sleep(waitMs, signal);
    }
    if (this.#clock.nowMs() >= endMs) this.#pauseMs = Math.min(this.#pauseMs * LOOK_GROWTH, this.#lookMaxMs);
    const told = this.#told;
    this.#told = null;
    this.#lookAtMs = Infinity;
    return told === null ? null : statusOf(told);
  }

  /** The next look comes as soon as the first one: something is about to change. */
  lookSoon(): void {
    this.#pauseMs = FIRST_LOOK_MS;
  }

  close(): void {
    this.#unlisten();
  }

  /** May end early: whoever hears something ends it. */
  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    const sleeping = new AbortController();
    const wake = (): void => sleeping.abort();
    signal.addEventListener('abort', wake, { once: true });
    this.#sleeping = sleeping;
    await this.#clock.sleep(ms, sleeping.signal);
    this.#sleeping = null;
    signal.removeEventListener('abort', wake);
  }
}
