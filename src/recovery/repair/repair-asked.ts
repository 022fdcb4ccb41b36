import { repairNeedOf } from '../../core/repair-need.js';
import {
  bucketRefsOf,
  repairSale,
  type RepairOptions,
  type RepairOrder,
  type RepairPorts,
  type SaleRepair,
} from './repair-sale.js';

/** `not_needed`: every bucket can be trusted, and nobody insisted; nothing was changed. */
export type OrderedRepair = SaleRepair | { readonly outcome: 'not_needed' };

/**
 * Repairs a sale because somebody asks for it.
 * @param force also one that has no need: its numbers stay, but for the epoch
 * @throws OperationalError
 */
export async function repairAsked(
  saleId: string,
  force: boolean,
  ports: RepairPorts,
  options: RepairOptions,
  order: RepairOrder,
): Promise<OrderedRepair> {
  const sale = await ports.sales.find(saleId);
  if (sale === null) return { outcome: 'not_found' };
  if (!force && sale.state !== 'draft') {
    const standings = await ports.store.standing(bucketRefsOf(sale));
    if (repairNeedOf(sale, standings) === null) return { outcome: 'not_needed' };
    return repairSale(sale, ports, options, { ...order, seenEpochs: standings.map(({ epoch }) => epoch) });
  }
  return repairSale(sale, ports, options, order);
}
