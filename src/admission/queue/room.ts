import type { Clock } from '../../core/ports/clock.js';
import { Line, type InLine } from './line.js';
import { CLASSES, type PriorityClass, type QueueRules } from './queue-rules.js';

/** Credit is saved up for at most this long, ms: after a pause the line does not let a crowd in at once. */
const CREDIT_MAX_MS = 1000;
/** Ten times 0.1 is a little less than 1. */
const ROUNDING = 1e-9;

/**
 * How many may be admitted now, so that over any time it is the rate: a part of a place is kept for the next time. The
 * rate may change between two calls; it counts for the time since the call before.
 */
export class Pace {
  #sinceMs: number;
  #credit = 0;

  /** @param fromMs when the first place begins to become free; monotonic, as all times here */
  constructor(fromMs: number) {
    this.#sinceMs = fromMs;
  }

  /** Whole places that are free now. */
  free(perSecond: number, monotonicMs: number): number {
    const passedMs = Math.max(0, monotonicMs - this.#sinceMs);
    this.#sinceMs = monotonicMs;
    const creditMax = 1 + (perSecond * CREDIT_MAX_MS) / 1000; // 1: a place that is nearly free is not lost by waiting
    this.#credit = Math.min(creditMax, this.#credit + (perSecond * passedMs) / 1000);
    return Math.floor(this.#credit + ROUNDING);
  }

  take(places: number): void {
    this.#credit -= places;
  }
}

/**
 * One buyer in a waiting room.
 * - `waiting`: in the line, while the buyer asks at least once in `idleMs`
 * - `admitted`: may buy until `untilMs`
 * - `over`: the pass has ended; kept for `idleMs` more, so that an old ticket does not bring the old place back
 */
export interface Waiter extends InLine {
  readonly userId: string;
  readonly priority: PriorityClass;
  /** Unix ms, from the ticket. */
  readonly joinedMs: number;
  state: 'waiting' | 'admitted' | 'over';
  /** Last question of a buyer who waits, monotonic. */
  seenMs: number;
  /** End of the pass, Unix ms; 0 for a buyer who waits. */
  untilMs: number;
}

/**
 * The buyers who wait for one sale in this process. No buyer is admitted before the sale opens; then as many a second as
 * the rules say.
 *
 * No buyer has a timer. A map keeps the order in which its keys were set, so the map of each state is in the order in
 * which its buyers are due, and `advance` reads it from the front to the first one who is not.
 */
export class Room {
  readonly #rules: () => QueueRules;
  /** Wall time for what buyers, other processes and the sale know; monotonic for how long something lasts here. */
  readonly #clock: Clock;
  /** The lot of a buyer, from 0 to below 1. */
  readonly #lotOf: (userId: string) => number;
  readonly #opensAtMs: number;
  readonly #lines = CLASSES.map(() => new Line<Waiter>());
  /** In the order of `seenMs`. */
  readonly #waiting = new Map<string, Waiter>();
  /** In the order of `untilMs`, unless the rules have made passes shorter: `find` ends those that this hides. */
  readonly #admitted = new Map<string, Waiter>();
  /** In the order of `untilMs`. */
  readonly #over = new Map<string, Waiter>();
  /** Read once: a line that was begun in one order goes on in it. */
  readonly #order: QueueRules['order'];
  #hasOpened = false;
  readonly #pace: Pace;

  constructor(opensAtMs: number, rules: () => QueueRules, lotOf: (userId: string) => number, clock: Clock) {
    this.#opensAtMs = opensAtMs;
    this.#rules = rules;
    this.#lotOf = lotOf;
    this.#clock = clock;
    this.#order = rules().order;
    this.#pace = new Pace(clock.monotonicMs() + opensAtMs - clock.nowMs());
  }

  /** Waiting, admitted and over. */
  get size(): number {
    return this.#waiting.size + this.#admitted.size + this.#over.size;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  find(userId: string, nowMs: number): Waiter | undefined {
    const admitted = this.#admitted.get(userId);
    if (admitted !== undefined && admitted.untilMs <= nowMs) this.#endPass(admitted);
    return this.#waiting.get(userId) ?? this.#admitted.get(userId) ?? this.#over.get(userId);
  }

  /** A new place for a buyer who has none. Where no other buyer waits, the buyer may be admitted at once. */
  join(userId: string, priority: PriorityClass, joinedMs: number, nowMs: number): Waiter {
    this.#over.delete(userId);
    // Who comes after the sale has opened stands behind all lots.
    const order = this.#order === 'lot' && joinedMs < this.#opensAtMs ? this.#lotOf(userId) : joinedMs;
    const waiter: Waiter = {
      userId,
      priority,
      joinedMs,
      order,
      state: 'waiting',
      seenMs: this.#clock.monotonicMs(),
      untilMs: 0,
      block: null,
    };
    this.#waiting.set(userId, waiter);
    this.#lineOf(waiter).add(waiter);
    if (this.waiting === 1) this.#admit(nowMs);
    return waiter;
  }

  /** The buyer has asked again. */
  touch(waiter: Waiter): void {
    waiter.seenMs = this.#clock.monotonicMs();
    if (waiter.state !== 'waiting') return;
    this.#waiting.delete(waiter.userId); // to the end of the map
    this.#waiting.set(waiter.userId, waiter);
  }

  /** The place of a buyer who waits, from 1; null while lots are kept secret, until the sale opens. It may grow when a buyer of a higher class comes. */
  position(waiter: Waiter): number | null {
    if (this.#order === 'lot' && !this.#hasOpened) return null;
    const before = this.#lines.slice(0, waiter.priority).reduce((sum, line) => sum + line.size, 0);
    return before + this.#lineOf(waiter).ahead(waiter) + 1;
  }

  /** When a place will have its turn, in ms from now, at the present rate; null when unknown. */
  estimateMs(position: number | null, nowMs: number): number | null {
    const perSecond = this.#perSecond();
    if (position === null || perSecond === 0) return null;
    return Math.max(0, this.#opensAtMs - nowMs) + Math.ceil((position * 1000) / perSecond);
  }

  /** Ends what is over by now, and admits those whose turn has come. */
  advance(nowMs: number): void {
    const { idleMs } = this.#rules();
    const idleSinceMs = this.#clock.monotonicMs() - idleMs;
    for (const [userId, waiter] of this.#waiting) {
      if (waiter.seenMs > idleSinceMs) break;
      this.#waiting.delete(userId);
      this.#lineOf(waiter).remove(waiter);
    }
    for (const waiter of this.#admitted.values()) {
      if (waiter.untilMs > nowMs) break;
      this.#endPass(waiter);
    }
    for (const [userId, waiter] of this.#over) {
      if (waiter.untilMs + idleMs > nowMs) break;
      this.#over.delete(userId);
    }
    if (this.waiting > 0) this.#admit(nowMs);
  }

  #admit(nowMs: number): void {
    if (!this.#hasOpened && nowMs < this.#opensAtMs) return; // what has opened stays open, whatever is done to the clock
    this.#hasOpened = true;
    const untilMs = nowMs + this.#rules().passMs;
    for (let places = this.#pace.free(this.#perSecond(), this.#clock.monotonicMs()); places > 0; places--) {
      const waiter = this.#lines.find(({ size }) => size > 0)?.shift();
      if (waiter === undefined) return;
      this.#pace.take(1);
      waiter.state = 'admitted';
      waiter.untilMs = untilMs;
      this.#waiting.delete(waiter.userId);
      this.#admitted.set(waiter.userId, waiter);
    }
  }

  #endPass(waiter: Waiter): void {
    waiter.state = 'over';
    this.#admitted.delete(waiter.userId);
    this.#over.set(waiter.userId, waiter);
  }

  #lineOf({ priority }: Waiter): Line<Waiter> {
    return this.#lines[priority] as Line<Waiter>;
  }

  #perSecond(): number {
    const { admitPerSecond, processes } = this.#rules();
    return admitPerSecond / processes;
  }
}
