import { Line } from './line.js';
import { Pace } from './pace.js';
import { CLASSES, type PriorityClass } from './priority.js';
import type { QueueRules } from './queue-rules.js';
import { Timer, type TimingWheel } from './timing-wheel.js';
import { Waiter } from './waiter.js';

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
