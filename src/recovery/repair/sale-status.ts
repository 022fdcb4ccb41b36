import { bucketRefsOf } from '../../core/bucket.js';
import type { BucketFaults } from '../../core/bucket-faults.js';
import { OperationalError } from '../../core/errors.js';
import type { BucketStatus, RepairStore } from '../../core/ports/repair-stores.js';
import { type RepairNeed, repairNeedOf } from '../../core/sale-repair.js';
import type { Sale } from '../../core/sale.js';

/**
 * Returns why the data of a sale in Redis cannot be judged. Null if nothing is lost and no repair is under way.
 * @throws OperationalError redis
 */
export async function repairNeedIn(sale: Sale, repairs: RepairStore): Promise<RepairNeed | null> {
  return repairNeedOf(sale, await repairs.statusOf(bucketRefsOf(sale)));
}

/**
 * Reads the status of the buckets of many sales. Call it after reading the sales: an epoch only grows, so a sale that
 * is rebuilt in between does not seem to need a repair.
 * @param faults collects the faults of buckets that did not answer; the status of these buckets is missing
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
