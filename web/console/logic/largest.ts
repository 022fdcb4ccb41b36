import type { Counts } from '../api/types.js';

/** Returns the largest counts first, and adds up all counts after the first `most`. */
export function largest(counts: Counts, most: number): { readonly words: [string, number][]; readonly others: number } {
  const sorted = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1));
  return { words: sorted.slice(0, most), others: sorted.slice(most).reduce((sum, [, count]) => sum + count, 0) };
}
