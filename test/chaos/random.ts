/** Random choices that are the same for the same seed. */
export interface Random {
  /** A whole number from `min` to `max`, inclusive. */
  whole(min: number, max: number): number;
  chance(probability: number): boolean;
  /** @throws RangeError for an empty list */
  pick<T>(from: readonly T[]): T;
  /** Returns a new list in a different order. */
  shuffled<T>(list: readonly T[]): T[];
}

/** @param text the seed of the run and the name of the row, which determine the choices */
export function createRandom(text: string): Random {
  const next = mulberry32(hash(text));
  const whole = (min: number, max: number): number => min + Math.floor(next() * (max - min + 1));
  return {
    whole,
    chance: (probability) => next() < probability,
    pick: <T>(from: readonly T[]): T => {
      if (from.length === 0) throw new RangeError('there is nothing to pick from');
      return from[whole(0, from.length - 1)] as T;
    },
    shuffled: <T>(list: readonly T[]): T[] => {
      const shuffled = [...list];
      for (let last = shuffled.length - 1; last > 0; last--) {
        const other = whole(0, last);
        [shuffled[last], shuffled[other]] = [shuffled[other] as T, shuffled[last] as T];
      }
      return shuffled;
    },
  };
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const char of text) value = Math.imul(value ^ char.charCodeAt(0), 0x01000193);
  return value >>> 0;
}

/** A small generator with 32 bits of state, by Tommy Ettinger; public domain. @returns numbers in [0, 1) */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
