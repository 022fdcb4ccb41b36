import { BucketFaults } from '../../core/bucket-faults.js';
import type { Job } from '../../core/job.js';
import { repairNeedOf } from '../../core/sale-repair.js';
import type { Sale, SaleState } from '../../core/sale.js';
import type { RepairStore } from '../../core/ports/repair-stores.js';
import type { SaleRepository } from '../../core/ports/sale-repository.js';
import type { SaleStore } from '../../core/ports/stock-store.js';
import { listSalesInRedis } from '../../sales/list-sales-in-redis.js';
import { statusOfSales } from './sale-status.js';

/** The sales that closed last come first. Older sales sell nothing, because their window is over. */
const CLOSED_MAX = 100;
/** After this many moves of a sale in a row, the next run continues. */
const MOVES_MAX = 3;

/**
 * Sets buckets to the state in MySQL if a process died between the two writes of a move: a closed sale must stop
 * selling. A difference is fixed only if two runs have seen it, because a move takes time.
 */
export function alignSaleStates({
  repairs,
  setState,
  sales,
}: {
  readonly repairs: RepairStore;
  readonly setState: SaleStore['setState'];
  readonly sales: SaleRepository;
}): Job {
  let seen = new Map<string, SaleState>();
  return {
    name: 'align-sale-states',
    async runOnce(): Promise<void> {
      const faults = new BucketFaults();
      const listed = await listSalesInRedis(sales, { closedMax: CLOSED_MAX });
      const differing = await salesThatDiffer(listed, repairs, faults);
      const before = seen;
      seen = new Map(differing.map(({ saleId, state }) => [saleId, state]));
      const twice = differing.filter(({ saleId, state }) => before.get(saleId) === state);
      await faults.forEach(twice, (sale) => align(sale, sales, setState));
      faults.throwIfAny();
    },
  };
}

/**
 * Reads the row before the write, because the list may be old, and a sale that its owner has just paused must not
 * reopen. Reads it again after the write. If the write has overwritten a later move in Redis, writes the new state.
 */
async function align(listed: Sale, sales: SaleRepository, setState: SaleStore['setState']): Promise<void> {
  let sale = await sales.find(listed.saleId);
  if (sale?.state !== listed.state || sale.epoch !== listed.epoch) return;
  for (let moves = 0; moves < MOVES_MAX; moves++) {
    if (sale.state === 'draft') return;
    await setState(sale, sale.state);
    const now = await sales.find(sale.saleId);
    if (now === null || now.state === sale.state) return;
    sale = now;
  }
}

/** Finds sales whose buckets are in a different state. A sale that needs a repair gets its state from the repair. */
async function salesThatDiffer(sales: readonly Sale[], repairs: RepairStore, faults: BucketFaults): Promise<Sale[]> {
  const read = await statusOfSales(sales, repairs, faults);
  // buckets that do not answer are unknown; the other buckets are set nevertheless
  const differing = read.filter(({ sale, buckets }) => {
    return repairNeedOf(sale, buckets) === null && buckets.some(({ state }) => state !== sale.state);
  });
  return differing.map(({ sale }) => sale);
}
