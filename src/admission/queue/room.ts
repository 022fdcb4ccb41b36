import { type InLine, Line } from './line.js';
import { type PriorityClass, CLASSES, type QueueRules } from './queue-rules.js';
import { Timer, type TimingWheel } from './timing-wheel.js';

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

/** Credit for so long a pause is kept: a line that was empty does not let a crowd in at once. In ms. */
const CREDIT_MAX_MS = 1000;

/**
 * How many may go in now, so that over any time it is the rate: a part of a place is kept for the next time.
 * The rate may change between two calls; it counts for the time since the call before.
 */
export class Pace {
  #sinceMs: number;
  #credit = 0;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
  }

  /** Whole places that are free now. A clock that steps back frees none. */
  free(perSecond: number, nowMs: number): number {
    const passedMs = Math.max(0, nowMs - this.#sinceMs);
    this.#sinceMs = Math.max(this.#sinceMs, nowMs);
    const creditMax = 1 + (perSecond * CREDIT_MAX_MS) / 1000; // 1: the place in the making is not lost by waiting
    this.#credit = Math.min(creditMax, this.#credit + (perSecond * passedMs) / 1000);
    return Math.floor(this.#credit + ROUNDING);
  }

  take(places: number): void {
    this.#credit -= places;
  }

  /** When the next place will be free, in ms from the last look; Infinity at a rate of 0. */
  untilNextMs(perSecond: number): number {
    return perSecond > 0 ? Math.max(0, ((1 - this.#credit) * 1000) / perSecond) : Infinity;
  }
}

/** Ten times 0.1 is a little less than 1. */
const ROUNDING = 1e-9;

export interface RoomParts {
  readonly rules: () => QueueRules;
  readonly wheel: TimingWheel;
  /** A whole number from 0 to below `max`, each as likely. */
  readonly pick: (max: number) => number;
}

/** A rule may change meanwhile, so nobody sleeps longer than this, in ms. */
const LOOK_AGAIN_MS = 1000;

/** Those who wait for one sale in this process. Before it opens nobody goes in; then as many a second as the rules say. */
export class Room {
  readonly #parts: RoomParts;
  readonly #opensAtMs: number;
  readonly #lines = CLASSES.map(() => new Line<Waiter>());
  readonly #waiters = new Map<string, Waiter>();
  readonly #pace: Pace;
  readonly #door: Door;
  /** Read once: a line that was begun in one order goes on in it. */
  readonly #order: QueueRules['order'];
  #drawn = false;

  constructor(opensAtMs: number, parts: RoomParts) {
    this.#parts = parts;
    this.#opensAtMs = opensAtMs;
    this.#pace = new Pace(opensAtMs);
    this.#order = parts.rules().order;
    this.#door = new Door((nowMs) => this.#admit(nowMs));
  }

  /** Waiting, admitted, and over. */
  get size(): number {
    return this.#waiters.size;
  }

  get waiting(): number {
    return this.#lines.reduce((sum, line) => sum + line.size, 0);
  }

  find(userId: string): Waiter | undefined {
    return this.#waiters.get(userId);
  }

  /** A new place for a buyer who has none, or none any more. May let him in at once. */
  join(userId: string, priority: PriorityClass, joinedMs: number, nowMs: number): Waiter {
    const known = this.#waiters.get(userId);
    if (known !== undefined) this.#forget(known);
    // Who came before a draw waits for it like all others; who came before the sale in no other way keeps his place.
    const order = this.#order === 'lot' ? Math.max(joinedMs, this.#opensAtMs) : joinedMs;
    const waiter = new Waiter(this, { userId, priority, joinedMs, order }, nowMs);
    this.#waiters.set(userId, waiter);
    this.#lineOf(waiter).add(waiter);
    this.#parts.wheel.schedule(waiter, nowMs + this.#parts.rules().idleMs);
    if (!this.#door.isSet) this.#admit(nowMs);
    return waiter;
  }

  /** The place of a waiter, from 1; null before a draw. It may grow when somebody of a higher class comes. */
  position(waiter: Waiter): number | null {
    if (this.#order === 'lot' && !this.#drawn) return null;
    const before = this.#lines.slice(0, waiter.priority).reduce((sum, line) => sum + line.size, 0);
    return before + this.#lineOf(waiter).ahead(waiter) + 1;
  }

  /** When a place will have its turn, in ms from now, at the present rate; null when nobody can say. */
  estimateMs(position: number | null, nowMs: number): number | null {
    const perSecond = this.#perSecond();
    if (position === null || perSecond === 0) return null;
    return Math.max(0, this.#opensAtMs - nowMs) + Math.ceil((position * 1000) / perSecond);
  }

  /** Sends everybody home. */
  end(): void {
    for (const waiter of this.#waiters.values()) this.#forget(waiter);
    this.#parts.wheel.cancel(this.#door);
  }

  timeOut(waiter: Waiter, nowMs: number): void {
    const { rules, wheel } = this.#parts;
    const { idleMs } = rules();
    if (waiter.state === 'waiting' && waiter.seenMs + idleMs > nowMs) {
      return wheel.schedule(waiter, waiter.seenMs + idleMs);
    }
    if (waiter.state !== 'admitted') return this.#forget(waiter);
    waiter.state = 'over';
    wheel.schedule(waiter, nowMs + idleMs);
  }

  #admit(nowMs: number): void {
    const { rules, wheel } = this.#parts;
    if (nowMs < this.#opensAtMs) return wheel.schedule(this.#door, this.#opensAtMs);
    if (!this.#drawn) this.#draw();
    const perSecond = this.#perSecond();
    const { passMs } = rules();
    for (let places = this.#pace.free(perSecond, nowMs); places > 0; places--) {
      const waiter = this.#next();
      if (waiter === undefined) return; // the next one who comes opens the door himself
      this.#pace.take(1);
      waiter.state = 'admitted';
      waiter.untilMs = nowMs + passMs;
      wheel.schedule(waiter, waiter.untilMs);
    }
    if (this.waiting === 0) return;
    wheel.schedule(this.#door, nowMs + Math.min(LOOK_AGAIN_MS, this.#pace.untilNextMs(perSecond)));
  }

  #draw(): void {
    this.#drawn = true;
    if (this.#order === 'lot') for (const line of this.#lines) line.shuffle(this.#parts.pick);
  }

  #next(): Waiter | undefined {
    return this.#lines.find(({ size }) => size > 0)?.shift();
  }

  #forget(waiter: Waiter): void {
    this.#waiters.delete(waiter.userId);
    this.#lineOf(waiter).remove(waiter);
    this.#parts.wheel.cancel(waiter);
  }

  #lineOf({ priority }: Waiter): Line<Waiter> {
    return this.#lines[priority] as Line<Waiter>;
  }

  #perSecond(): number {
    const { admitPerSecond, processes } = this.#parts.rules();
    return admitPerSecond / processes;
  }
}

/** Opens when the next place is free. */
class Door extends Timer {
  readonly #open: (nowMs: number) => void;
  constructor(open: (nowMs: number) => void) {
    super();
    this.#open = open;
  }
  get isSet(): boolean {
    return this.dueTick !== -1;
  }
  fire(nowMs: number): void {
    this.#open(nowMs);
  }
}
