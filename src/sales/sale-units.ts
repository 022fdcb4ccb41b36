import type { StoredSale } from '../core/ports/stock-store.js';
import type { Sale } from '../core/sale.js';

/**
 * Units left in the buckets of a sale together.
 * @param stored every bucket, as it was read
 * @returns null: one of the buckets cannot be trusted
 */
export function unitsLeftIn(stored: readonly (StoredSale | null)[]): number | null {
  let sum = 0;
  for (const bucket of stored) {
    if (bucket === null || bucket.state === 'repair') return null;
    sum += bucket.unitsLeft;
  }
  return sum;
}

/** Units that have left Redis and are not in MySQL yet. 0 at least: `sold` and `left` were not read at one moment. */
export const heldUnits = ({ stock, sold }: Pick<Sale, 'stock' | 'sold'>, left: number): number =>
  Math.max(0, stock - left - sold);
