/** How often a key came. It came `count - error` to `count` times. */
export interface KeyCount {
  readonly key: string;
  readonly count: number;
  readonly error: number;
}

interface Counter {
  count: number;
  error: number;
}

/**
 * Counts the keys that come most often, in bounded memory (the space-saving sketch). A key that finds no place takes that of
 * the rarest one, and its count as well: so counts are never too low, and too high by the total / capacity at most. Whatever
 * came more often than that has a place.
 */
export class SpaceSaving {
  readonly #capacity: number;
  readonly #counters = new Map<string, Counter>();
  #total = 0;

  /** @param capacity keys that have a place, at least 1 */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** How often any key came. */
  get total(): number {
    return this.#total;
  }

  /** Keys that have a place. */
  get size(): number {
    return this.#counters.size;
  }

  add(key: string): void {
    this.#total++;
    const counter = this.#counters.get(key);
    if (counter !== undefined) counter.count++;
    else if (this.#counters.size < this.#capacity) this.#counters.set(key, { count: 1, error: 0 });
    else this.#takePlace(key);
  }

  counts(): KeyCount[] {
    return [...this.#counters].map(([key, { count, error }]) => ({ key, count, error }));
  }

  clear(): void {
    this.#counters.clear();
    this.#total = 0;
  }

  #takePlace(key: string): void {
    let rarest = '';
    let least = Infinity;
    for (const [other, { count }] of this.#counters) {
      if (count < least) [rarest, least] = [other, count];
    }
    this.#counters.delete(rarest);
    this.#counters.set(key, { count: least + 1, error: least });
  }
}
