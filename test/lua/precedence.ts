/** One condition that makes a script answer a word, as changes to a sale that would otherwise let everybody in. */
export interface Condition {
  readonly word: string;
  readonly setting: Setting;
}

/** What a test may set. Two conditions that set one thing differently cannot hold at the same time. */
export interface Setting {
  /** Marker of the batch. */
  readonly marker?: string;
  /** State of the sale; `missing`: the sale hash is gone. */
  readonly state?: 'missing' | 'repair' | 'paused' | 'closed' | 'warm';
  /** Of the sale, against that of the batch. */
  readonly epoch?: 'earlier' | 'later';
  /** The server is not the one that the sale was loaded on. */
  readonly server?: 'another';
  /** The sale has another number of buckets than the caller takes it to have. */
  readonly buckets?: 'another';
  readonly opens?: 'later';
  readonly closes?: 'earlier';
  /** Quantity of an entry that stands under the key already. */
  readonly entry?: number;
  /** Units the buyer has already. */
  readonly bought?: number;
  readonly stock?: number;
}

export interface Clash {
  readonly first: Condition;
  readonly second: Condition;
  readonly both: Setting;
}

/**
 * Every two conditions of different words that can hold at once; the one that stands first in the list has to win.
 * Conditions of one word may be given several times.
 */
export function clashesOf(conditions: readonly Condition[]): Clash[] {
  return conditions.flatMap((first, index) =>
    conditions.slice(index + 1).flatMap((second) => {
      if (first.word === second.word || !areCompatible(first.setting, second.setting)) return [];
      return [{ first, second, both: { ...first.setting, ...second.setting } }];
    }),
  );
}

/** Pairs of words that no clash covers: they exclude each other by nature, and a test says so. */
export function uncoveredPairs(conditions: readonly Condition[]): string[] {
  const words = [...new Set(conditions.map(({ word }) => word))];
  const covered = new Set(clashesOf(conditions).map(({ first, second }) => `${first.word} > ${second.word}`));
  return words
    .flatMap((first, index) => words.slice(index + 1).map((second) => `${first} > ${second}`))
    .filter((pair) => !covered.has(pair));
}

function areCompatible(a: Setting, b: Setting): boolean {
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  return Object.keys(left).every((key) => !(key in right) || left[key] === right[key]);
}

export const describeSetting = (setting: Setting): string =>
  Object.entries(setting)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');
