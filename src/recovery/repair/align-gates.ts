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

/** Later than this nobody can buy from a closed sale anyway: its window is over. */
const CLOSED_MAX = 100;
const LIVE_MAX = 10_000;

/**
 * Brings buckets into the state that MySQL has, where whoever moved the sale died before Redis heard of it: a sale that
 * its owner closed must not go on selling. A difference has to be seen twice, since a move takes its time.
 */
export function alignGates({ store, sales }: AlignPorts): Job {
  let seen = new Map<string, SaleState>();
  return {
    name: 'align-gates',
    async runOnce(): Promise<void> {
      const live = await sales.list({ states: ['warm', 'open', 'paused'], max: LIVE_MAX });
      const closed = await sales.list({ states: ['closed'], max: CLOSED_MAX, order: 'closed_last' });
      const apart = await thoseApart([...live, ...closed], store);
      const before = seen;
      seen = new Map(apart.map(({ saleId, state }) => [saleId, state]));
      for (const sale of apart) {
        if (sale.state !== 'draft' && before.get(sale.saleId) === sale.state) await store.setState(sale, sale.state);
      }
    },
  };
}

/** Those that need a repair get their state from it. */
async function thoseApart(sales: readonly Sale[], store: AlignPorts['store']): Promise<Sale[]> {
  const standings = await store.statusOf(sales.flatMap(bucketRefsOf));
  let at = 0;
  return sales.filter((sale) => {
    const buckets = standings.slice(at, (at += sale.buckets));
    return repairNeedOf(sale, buckets) === null && buckets.some(({ state }) => state !== sale.state);
  });
}
