import type { Rng } from './rng.js';

/** An event that happens unless it is cancelled. */
export interface Timer {
  /** Virtual Unix ms. */
  readonly atMs: number;
  cancelled: boolean;
}

interface Event extends Timer {
  /** Drawn from the seed, for the order of events of the same millisecond. */
  readonly tie: number;
  readonly act: () => void;
}

/** The start of every run, Unix ms. Any time after the epoch of the order ids would do. */
export const START_MS = Date.UTC(2026, 0, 1);

/** Virtual time. It stands still during an event and jumps to the next due event. */
export class Scheduler {
  readonly #rng: Rng;
  readonly #heap: Event[] = [];
  #nowMs = START_MS;
  #happened = 0;

  constructor(rng: Rng) {
    this.#rng = rng;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Since the start. */
  get passedMs(): number {
    return this.#nowMs - START_MS;
  }

  /** The number of events so far. */
  get happened(): number {
    return this.#happened;
  }

  after(delayMs: number, act: () => void): Timer {
    const atMs = this.#nowMs + Math.ceil(Math.max(0, delayMs)); // in whole milliseconds, like the timers of Node
    const event = { atMs, tie: this.#rng.next(), act, cancelled: false };
    this.#push(event);
    return event;
  }

  /** Runs the next event. @returns false if there is no event */
  step(): boolean {
    for (;;) {
      const event = this.#pop();
      if (event === undefined) return false;
      if (event.cancelled) continue;
      this.#nowMs = event.atMs;
      this.#happened++;
      event.act();
      return true;
    }
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (isBefore(heap[parent] as Event, event)) break;
      heap[at] = heap[parent] as Event;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): Event | undefined {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child++;
      if (isBefore(last, heap[child] as Event)) break;
      heap[at] = heap[child] as Event;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

const isBefore = (a: Event, b: Event): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.tie < b.tie);
