import type { InLine } from './line.js';
import type { PriorityClass } from './priority.js';
import { Timer } from './timing-wheel.js';

/** Where a waiter tells that his time has come. */
interface Host {
  timeOut(waiter: Waiter, nowMs: number): void;
}

/**
 * One buyer in a waiting room, and the timer that ends his stay.
 * - `waiting`: in the line; the timer looks whether he still asks
 * - `admitted`: he may buy until the timer fires
 * - `over`: he had his time; kept until the last ticket in his hands has ended, so that it does not bring him back
 */
export class Waiter extends Timer implements InLine {
  readonly userId: string;
  readonly priority: PriorityClass;
  /** Unix ms, from the ticket. */
  readonly joinedMs: number;
  readonly order: number;
  readonly #host: Host;
  state: 'waiting' | 'admitted' | 'over' = 'waiting';
  /** When he asked last, Unix ms. */
  seenMs: number;
  /** End of his pass, Unix ms; 0 while he waits. */
  untilMs = 0;
  block: object | null = null;

  constructor(host: Host, place: Pick<Waiter, 'userId' | 'priority' | 'joinedMs' | 'order'>, nowMs: number) {
    super();
    this.#host = host;
    this.userId = place.userId;
    this.priority = place.priority;
    this.joinedMs = place.joinedMs;
    this.order = place.order;
    this.seenMs = nowMs;
  }

  fire(nowMs: number): void {
    this.#host.timeOut(this, nowMs);
  }
}
