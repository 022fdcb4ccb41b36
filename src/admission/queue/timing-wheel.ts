import { assert } from '../../core/errors.js';

/** Slots of one level; a power of two, so that a digit of a tick is a few of its bits. */
const SLOT_BITS = 6;
const SLOTS = 1 << SLOT_BITS;
const DIGIT = SLOTS - 1;
/** 64⁴ ticks: at 100 ms nineteen days. What is due beyond waits in one slot above, and is looked at again when they are over. */
const LEVELS = 4;

/** Something that is due at a time. A timer is a link of its list itself: 100,000 of them cost no further objects. */
export abstract class Timer {
  /** Used by the wheel only; null while the timer is not scheduled. */
  next: Timer | null = null;
  previous: Timer | null = null;
  /** When it is due, in ticks; −1: never. */
  dueTick = -1;
  level = 0;

  /** Told once, never early and at most one tick late (later if nobody advances the wheel). May schedule anew. */
  abstract fire(nowMs: number): void;
}

/** The head of a ring of timers. */
class Slot extends Timer {
  constructor() {
    super();
    this.next = this;
    this.previous = this;
  }
  fire(): void {
    throw new Error('the head of a slot is never due');
  }
}

/**
 * A hierarchical timing wheel: to schedule, to cancel and to fire each cost the same, however many timers wait. A level
 * is 64 slots of one digit of the due tick; a timer lies at the highest digit in which its tick differs from now, and
 * falls to the next level when now reaches that digit. Timers of one tick fire in the order they were scheduled.
 * Source: G. Varghese, T. Lauck, Hashed and Hierarchical Timing Wheels, 1987
 */
export class TimingWheel {
  readonly #tickMs: number;
  readonly #startMs: number;
  readonly #slots = Array.from({ length: LEVELS }, () => Array.from({ length: SLOTS }, () => new Slot()));
  readonly #beyond = new Slot();
  readonly #counts = new Array<number>(LEVELS + 1).fill(0);
  #tick = 0;

  constructor(tickMs: number, nowMs: number) {
    assert(tickMs > 0, 'a tick takes time');
    this.#tickMs = tickMs;
    this.#startMs = nowMs;
  }

  /** Timers that wait. */
  get size(): number {
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  /** Sets a timer, anew if it was set: due at the first tick that is not before `atMs`, and not before the next one. */
  schedule(timer: Timer, atMs: number): void {
    this.cancel(timer);
    timer.dueTick = Math.max(this.#tick + 1, Math.ceil((atMs - this.#startMs) / this.#tickMs));
    this.#place(timer);
  }

  /** Does nothing to a timer that is not set. */
  cancel(timer: Timer): void {
    if (timer.dueTick === -1) return;
    this.#unlink(timer);
    timer.dueTick = -1;
  }

  /** Fires everything that is due by now, in order. A clock that steps back fires nothing. */
  advance(nowMs: number): void {
    const target = Math.floor((nowMs - this.#startMs) / this.#tickMs);
    while (this.#tick < target) {
      this.#tick = Math.min(target, this.#nextBusyTick());
      for (let level = LEVELS; level > 0; level--) {
        if (this.#tick % SLOTS ** level === 0) this.#cascade(level);
      }
      this.#fireSlot(this.#slotAt(0, this.#tick), nowMs);
    }
  }

  /** The next tick at which something may happen: one step, or to the next digit of the lowest level that has timers. */
  #nextBusyTick(): number {
    const level = this.#counts.findIndex((count) => count > 0);
    if (level === -1) return Infinity;
    const step = SLOTS ** level;
    return (Math.floor(this.#tick / step) + 1) * step;
  }

  /** Its timers agree with now in this digit, so each goes to a lower level; what is still beyond stays there. */
  #cascade(level: number): void {
    const slot = this.#slotAt(level, this.#tick);
    const last = slot.previous;
    for (let timer: Timer | null = slot; timer !== last;) {
      timer = slot.next as Timer;
      this.#unlink(timer);
      this.#place(timer);
    }
  }

  #fireSlot(slot: Slot, nowMs: number): void {
    while (slot.next !== slot) {
      const timer = slot.next as Timer;
      this.cancel(timer);
      timer.fire(nowMs); // what it schedules is due later, so this ends
    }
  }

  #place(timer: Timer): void {
    const tick = timer.dueTick;
    let level = LEVELS;
    while (level > 0 && Math.floor(tick / SLOTS ** level) === Math.floor(this.#tick / SLOTS ** level)) level--;
    timer.level = level;
    this.#counts[level] = (this.#counts[level] as number) + 1;
    const slot = this.#slotAt(level, tick);
    const tail = slot.previous as Timer;
    tail.next = timer;
    timer.previous = tail;
    timer.next = slot;
    slot.previous = timer;
  }

  #unlink(timer: Timer): void {
    (timer.previous as Timer).next = timer.next;
    (timer.next as Timer).previous = timer.previous;
    timer.next = null;
    timer.previous = null;
    this.#counts[timer.level] = (this.#counts[timer.level] as number) - 1;
  }

  #slotAt(level: number, tick: number): Slot {
    if (level === LEVELS) return this.#beyond;
    return (this.#slots[level] as Slot[])[Math.floor(tick / SLOTS ** level) & DIGIT] as Slot;
  }
}
