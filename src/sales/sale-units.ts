import type { StoredSale } from '../core/ports/stock-store.js';
import type { Sale } from '../core/sale.js';

/**
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

/** Returns units that left Redis but are not in MySQL. At least 0: `sold` and `left` come from different moments. */
export const heldUnits = ({ stock, sold }: Pick<Sale, 'stock' | 'sold'>, left: number): number =>
  Math.max(0, stock - left - sold);
