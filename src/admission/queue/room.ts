import type { Clock } from '../../core/ports/clock.js';
import { Line, type InLine } from './line.js';
import { CLASSES, type PriorityClass, type QueueRules } from './queue-rules.js';

/** The longest time over which credit is saved, ms, so that the line does not admit a crowd at once after a pause. */
const CREDIT_MAX_MS = 1000;
/** Ten times 0.1 is a little less than 1. */
const ROUNDING = 1e-9;

/**
 * Computes how many buyers may be admitted now, so that the average is the rate. A fraction of a place is kept for the
 * next call. The rate may change between two calls and applies to the time since the previous call.
 */
export class Pace {
  #sinceMs: number;
  #credit = 0;

  /** @param fromMs when the first place begins to become free; monotonic, like all times here */
  constructor(fromMs: number) {
    this.#sinceMs = fromMs;
  }

  /** Returns the whole places that are free now. */
  free(perSecond: number, monotonicMs: number): number {
    const passedMs = Math.max(0, monotonicMs - this.#sinceMs);
    this.#sinceMs = monotonicMs;
    const creditMax = 1 + (perSecond * CREDIT_MAX_MS) / 1000; // plus 1, so that a place that is nearly free is not lost by waiting
    this.#credit = Math.min(creditMax, this.#credit + (perSecond * passedMs) / 1000);
    return Math.floor(this.#credit + ROUNDING);
  }

  take(places: number): void {
    this.#credit -= places;
  }
}

/**
 * A buyer in a waiting room.
 * - `waiting`: in the line, as long as the buyer asks at least once in `idleMs`
 * - `admitted`: may buy until `untilMs`
 * - `over`: the pass has ended; kept for another `idleMs`, so that an old ticket does not restore the old place
 */
export interface Waiter extends InLine {
  readonly userId: string;
  readonly priority: PriorityClass;
  /** Unix ms, from the ticket. */
  readonly joinedMs: number;
  state: 'waiting' | 'admitted' | 'over';
  /** Time of a waiting buyer's last question, monotonic. */
  seenMs: number;
  /** End of the pass, Unix ms. 0 for a waiting buyer. */
  untilMs: number;
}

/**
 * The buyers who wait for a sale in this process. No buyer is admitted before the sale opens. After that, buyers are
 * admitted at the rate of the rules.
 *
 * No buyer has a timer. A map keeps the order in which its keys were set, so the map of each state is in the order in
 * which its buyers are due, and `advance` reads it from the front to the first buyer who is not due.
 */
export class Room {
  readonly #rules: () => QueueRules;
  /**
   * Wall time for facts that buyers, other processes and the sale know, monotonic time for durations in this process.
   */
  readonly #clock: Clock;
  /** Returns the lot of a buyer, from 0 to below 1. */
  readonly #lotOf: (userId: string) => number;
  readonly #opensAtMs: number;
  readonly #lines = CLASSES.map(() => new Line<Waiter>());
  /** Waiting buyers in the order of `seenMs`. */
  readonly #waiting = new Map<string, Waiter>();
  /**
   * Admitted buyers in the order of `untilMs`. If the rules have shortened passes, `find` ends the passes behind longer
   * passes.
   */
  readonly #admitted = new Map<string, Waiter>();
  /** Buyers whose pass has ended, in the order of `untilMs`. */
  readonly #over = new Map<string, Waiter>();
  /** Read once: a line keeps the order in which it was begun. */
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

  /** Number of waiting, admitted and over buyers. */
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

  /** Creates a place for a buyer without a place. If no other buyer waits, the buyer may be admitted at once. */
  join(userId: string, priority: PriorityClass, joinedMs: number, nowMs: number): Waiter {
    this.#over.delete(userId);
    // A buyer who comes after the sale has opened is behind all lots.
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

  /** Notes that the buyer has asked again. */
  touch(waiter: Waiter): void {
    waiter.seenMs = this.#clock.monotonicMs();
    if (waiter.state !== 'waiting') return;
    this.#waiting.delete(waiter.userId); // to the end of the map
    this.#waiting.set(waiter.userId, waiter);
  }

  /**
   * Returns the place of a waiting buyer, from 1. Null while lots are secret, until the sale opens. The place may grow
   * when a buyer of a higher class arrives.
   */
  position(waiter: Waiter): number | null {
    if (this.#order === 'lot' && !this.#hasOpened) return null;
    const before = this.#lines.slice(0, waiter.priority).reduce((sum, line) => sum + line.size, 0);
    return before + this.#lineOf(waiter).ahead(waiter) + 1;
  }

  /** Returns when a place will have its turn, in ms from now, at the present rate. Null if unknown. */
  estimateMs(position: number | null, nowMs: number): number | null {
    const perSecond = this.#perSecond();
    if (position === null || perSecond === 0) return null;
    return Math.max(0, this.#opensAtMs - nowMs) + Math.ceil((position * 1000) / perSecond);
  }

  /** Ends idle places and old passes, and admits the next buyers. */
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
    if (!this.#hasOpened && nowMs < this.#opensAtMs) return; // an opened sale stays open, whatever happens to the clock
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
