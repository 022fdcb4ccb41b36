/** Random numbers from a seed (mulberry32). */
export class Rng {
  #state: number;

  constructor(seed: number) {
    this.#state = (Math.imul(seed, 0x9e3779b1) ^ 0x5bd1e995) >>> 0;
    for (let warmUp = 0; warmUp < 3; warmUp++) this.next(); // similar seeds would start with similar numbers
  }

  /** At least 0, below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  }

  /** Returns a whole number of the inclusive range. */
  range(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  chance(probability: number): boolean {
    return probability > 0 && this.next() < probability;
  }

  pick<T>(list: readonly [T, ...T[]]): T;
  pick<T>(list: readonly T[]): T | undefined;
  pick<T>(list: readonly T[]): T | undefined {
    return list[Math.floor(this.next() * list.length)];
  }

  /** Shuffles in place. */
  shuffle<T>(list: T[]): T[] {
    for (let last = list.length - 1; last > 0; last--) {
      const other = Math.floor(this.next() * (last + 1));
      [list[last], list[other]] = [list[other] as T, list[last] as T];
    }
    return list;
  }
}
