import { repairNeedOf } from '../../core/repair-need.js';
import type { Sale } from '../../core/sale.js';
import type { RepairStore } from '../../core/ports/repair-store.js';

/**
 * Whether what Redis says of a sale can be judged: nothing of it may be lost, and nobody is rebuilding it.
 * @throws OperationalError redis
 */
export async function isWhole(
  sale: Sale,
  { store }: { readonly store: Pick<RepairStore, 'standing'> },
): Promise<boolean> {
  const { saleId, buckets } = sale;
  const refs = Array.from({ length: buckets }, (_, bucket) => ({ saleId, bucket }));
  return repairNeedOf(sale, await store.standing(refs)) === null;
}
