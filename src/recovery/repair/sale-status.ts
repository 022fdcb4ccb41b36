import { bucketRefsOf } from '../../core/bucket.js';
import type { BucketFaults } from '../../core/bucket-faults.js';
import { OperationalError } from '../../core/errors.js';
import type { BucketStatus, RepairStore } from '../../core/ports/repair-stores.js';
import { type RepairNeed, repairNeedOf } from '../../core/sale-repair.js';
import type { Sale } from '../../core/sale.js';

/** Why the data in Redis cannot be judged. Null if whole and not in repair. @throws OperationalError redis */
export async function repairNeedIn(sale: Sale, repairs: RepairStore): Promise<RepairNeed | null> {
  return repairNeedOf(sale, await repairs.statusOf(bucketRefsOf(sale)));
}

/**
 * Call it after reading the sales: an epoch only grows, so a sale rebuilt in between does not seem to need a repair.
 * @param faults collects the faults of silent buckets, whose status is missing
 */
export async function statusOfSales(
  sales: readonly Sale[],
  repairs: RepairStore,
  faults: BucketFaults,
): Promise<{ readonly sale: Sale; readonly buckets: readonly BucketStatus[] }[]> {
  const statuses = await repairs.statusOrFault(sales.flatMap(bucketRefsOf));
  let at = 0;
  return sales.map((sale) => {
    const buckets: BucketStatus[] = [];
    for (const status of statuses.slice(at, (at += sale.buckets))) {
      if (status instanceof OperationalError) faults.add(status);
      else buckets.push(status);
    }
    return { sale, buckets };
  });
}
