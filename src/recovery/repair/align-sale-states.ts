import type { Job } from '../../core/job.js';
import { repairNeedOf } from '../../core/sale-repair.js';
import type { Sale, SaleState } from '../../core/sale.js';
import type { RepairStore } from '../../core/ports/repair-stores.js';
import type { SaleRepository } from '../../core/ports/sale-repository.js';
import type { SaleStore } from '../../core/ports/stock-store.js';
import { bucketRefsOf } from './repair-sale.js';

export interface AlignPorts {
  readonly store: Pick<RepairStore, 'statusOf'> & Pick<SaleStore, 'setState'>;
  readonly sales: Pick<SaleRepository, 'list'>;
}

/** The sales that closed last; older ones sell nothing anyway, since their window is over. */
const CLOSED_MAX = 100;
const LIVE_MAX = 10_000;

/**
 * Sets buckets to the state that MySQL has, where a process died between the two writes of a move: a closed sale must
 * not go on selling. A difference has to be seen in two runs, since a move takes its time.
 */
export function alignSaleStates({ store, sales }: AlignPorts): Job {
  let seen = new Map<string, SaleState>();
  return {
    name: 'align-sale-states',
    async runOnce(): Promise<void> {
      const live = await sales.list({ states: ['warm', 'open', 'paused'], max: LIVE_MAX });
      const closed = await sales.list({ states: ['closed'], retired: false, max: CLOSED_MAX, order: 'closed_last' });
      const differing = await salesThatDiffer([...live, ...closed], store);
      const before = seen;
      seen = new Map(differing.map(({ saleId, state }) => [saleId, state]));
      for (const sale of differing) {
        if (sale.state !== 'draft' && before.get(sale.saleId) === sale.state) await store.setState(sale, sale.state);
      }
    },
  };
}

/** Sales whose buckets are in another state. Those that need a repair are left out: the repair sets their state. */
async function salesThatDiffer(sales: readonly Sale[], store: AlignPorts['store']): Promise<Sale[]> {
  const statuses = await store.statusOf(sales.flatMap(bucketRefsOf));
  let at = 0;
  return sales.filter((sale) => {
    const buckets = statuses.slice(at, (at += sale.buckets));
    return repairNeedOf(sale, buckets) === null && buckets.some(({ state }) => state !== sale.state);
  });
}
