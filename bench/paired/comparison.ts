import { median } from '../statistics.js';

/** One load of winners on one api. */
export interface Slice {
  /** CPU of the api per accepted purchase, µs. */
  readonly apiMicros: number;
  readonly accepted: number;
  /** How fast the machine was just before: CPU µs of one HMAC. */
  readonly yardstickMicros: number;
}

/** Two builds, measured in turn within the same minute. */
export interface Pair {
  readonly here: Slice;
  readonly there: Slice;
}

export interface Comparison {
  /** Commit or folder of the other build. */
  readonly against: string;
  readonly pairs: readonly Pair[];
  /** CPU here ÷ CPU there, of each pair: above 1, this build costs more. */
  readonly ratio: { readonly min: number; readonly median: number; readonly max: number };
}

/** Ratios are taken pair by pair: a machine that gets slower meanwhile meets both of a pair. */
export function compare(against: string, pairs: readonly Pair[]): Comparison {
  const ratios = pairs.map(({ here, there }) => here.apiMicros / there.apiMicros);
  const ratio = { min: Math.min(...ratios), median: median(ratios), max: Math.max(...ratios) };
  return { against, pairs, ratio };
}

/** Which build has its turn: here there, there here, and so on, so that neither is always the first of its pair. */
export function turnsOf(pairs: number): readonly (readonly ['here' | 'there', 'here' | 'there'])[] {
  return Array.from({ length: pairs }, (_, index) => (index % 2 === 0 ? ['here', 'there'] : ['there', 'here']));
}
