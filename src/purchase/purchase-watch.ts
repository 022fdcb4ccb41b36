import type { OrderNotification } from '../core/order-notifications.js';
import type { PurchaseStatus } from '../core/outcome.js';
import type { Clock } from '../core/ports/clock.js';
import type { PurchaseNotifications } from '../core/ports/purchase-notifications.js';
import type { RequestRef } from '../core/purchase.js';
import { statusOf } from './read-purchase.js';

export interface WatchPorts {
  readonly notifications: PurchaseNotifications;
  readonly clock: Clock;
  /** Returns a number from 0 up to 1. */
  readonly random: () => number;
}

/** Short, because most orders are written within milliseconds. */
const FIRST_PAUSE_MS = 50;
const PAUSE_GROWTH = 3;
/** A pause is shortened by up to this fraction, so that callers who came in one burst do not poll in one burst. */
const PAUSE_SPREAD = 0.2;
/** After a broken connection, thousands of callers read. Spreads their reads, because Redis has only just returned. */
const READ_AFTER_RECONNECT_MS = 1000;

/** Decides when to read the status of a purchase: after a notification, and now and then without one. */
export class PurchaseWatch {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #pollMaxMs: number;
  readonly #unsubscribe: () => void;
  #pauseMs = FIRST_PAUSE_MS;
  #notified: OrderNotification | null = null;
  /** When to read in case a notification was missed, monotonic ms. */
  #readAtMs = Infinity;
  #sleeping: AbortController | null = null;

  /** @param pollMaxMs maximum pause without a notification, ms; the first pauses are shorter */
  constructor(purchase: RequestRef, { notifications, clock, random }: WatchPorts, pollMaxMs: number) {
    this.#clock = clock;
    this.#random = random;
    this.#pollMaxMs = pollMaxMs;
    this.#unsubscribe = notifications.listen(purchase, (notification) => {
      if (notification === null) {
        this.#readAtMs = Math.min(this.#readAtMs, clock.monotonicMs() + random() * READ_AFTER_RECONNECT_MS);
      } else if (this.#notified === null || notification.state !== 'pending_payment') {
        this.#notified = notification; // a late copy of an early step must not replace a later step
      }
      this.#sleeping?.abort();
    });
  }

  /**
   * Waits until it is time to read, at most `maxMs`, or until `signal` aborts. Never rejects.
   * @returns the status that a notification has brought, else null
   */
  async next(maxMs: number, signal: AbortSignal): Promise<PurchaseStatus | null> {
    const pauseMs = this.#pauseMs * (1 - PAUSE_SPREAD * this.#random());
    const endMs = this.#clock.monotonicMs() + Math.min(pauseMs, maxMs);
    while (this.#notified === null && !signal.aborted) {
      const waitMs = Math.min(endMs, this.#readAtMs) - this.#clock.monotonicMs();
      if (waitMs <= 0) break;
      await this.#sleep(waitMs, signal);
    }
    if (this.#clock.monotonicMs() >= endMs) this.#pauseMs = Math.min(this.#pauseMs * PAUSE_GROWTH, this.#pollMaxMs);
    const notified = this.#notified;
    this.#notified = null;
    this.#readAtMs = Infinity;
    return notified === null ? null : statusOf(notified);
  }

  /** Makes the next pause as short as the first one, because the status is about to change. */
  readSoon(): void {
    this.#pauseMs = FIRST_PAUSE_MS;
  }

  close(): void {
    this.#unsubscribe();
  }

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
