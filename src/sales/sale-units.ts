import type { StoredSale } from '../core/ports/stock-store.js';
import type { Sale } from '../core/sale.js';

/**
 * Sums the units left in the buckets of a sale.
 * @param stored every bucket, as it was read
 * @returns null if a bucket cannot be trusted
 */
export function unitsLeftIn(stored: readonly (StoredSale | null)[]): number | null {
  let sum = 0;
  for (const bucket of stored) {
    if (bucket === null || bucket.state === 'repair') return null;
    sum += bucket.unitsLeft;
  }
  return sum;
}

/**
 * Returns the units that have left Redis but are not in MySQL yet. At least 0, because `sold` and `left` were read at
 * different moments.
 */
export const heldUnits = ({ stock, sold }: Pick<Sale, 'stock' | 'sold'>, left: number): number =>
  Math.max(0, stock - left - sold);
