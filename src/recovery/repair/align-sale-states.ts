import { bucketRefsOf } from '../../core/bucket.js';
import { BucketFaults } from '../../core/bucket-faults.js';
import { OperationalError } from '../../core/errors.js';
import type { Job } from '../../core/job.js';
import { repairNeedOf } from '../../core/sale-repair.js';
import type { Sale, SaleState } from '../../core/sale.js';
import type { BucketStatus, RepairStore } from '../../core/ports/repair-stores.js';
import type { SaleRepository } from '../../core/ports/sale-repository.js';
import type { SaleStore } from '../../core/ports/stock-store.js';
import { listSalesInRedis } from '../../sales/list-sales-in-redis.js';

export interface AlignPorts {
  readonly store: Pick<RepairStore, 'statusOrFault'> & Pick<SaleStore, 'setState'>;
  readonly sales: SaleRepository;
}

/**
 * Maximum number of closed sales to check, last closed first. Older sales sell nothing anyway, since their window is
 * over.
 */
const CLOSED_MAX = 100;
/** Moves of one sale in a row after which the sale is left to the next run. */
const MOVES_MAX = 3;

/**
 * Sets buckets to the state in MySQL if a process died between the two writes of a move: a closed sale must stop
 * selling. A difference must show in two runs before it is fixed, since a move takes time.
 */
export function alignSaleStates({ store, sales }: AlignPorts): Job {
  let seen = new Map<string, SaleState>();
  return {
    name: 'align-sale-states',
    async runOnce(): Promise<void> {
      const faults = new BucketFaults();
      const listed = await listSalesInRedis(sales, { closedMax: CLOSED_MAX });
      const differing = await salesThatDiffer(listed, store, faults);
      const before = seen;
      seen = new Map(differing.map(({ saleId, state }) => [saleId, state]));
      const twice = differing.filter(({ saleId, state }) => before.get(saleId) === state);
      await faults.forEach(twice, (sale) => align(sale, { store, sales }));
      faults.throwIfAny();
    },
  };
}

/**
 * Reads the row again before the write, because the list may be old by now: a sale that its owner has just paused must
 * not reopen. Reads it once more after the write: the write may have overwritten a later move in Redis, so the new
 * state is written again.
 */
async function align(listed: Sale, { store, sales }: AlignPorts): Promise<void> {
  let sale = await sales.find(listed.saleId);
  if (sale?.state !== listed.state || sale.epoch !== listed.epoch) return;
  for (let moves = 0; moves < MOVES_MAX; moves++) {
    if (sale.state === 'draft') return;
    await store.setState(sale, sale.state);
    const now = await sales.find(sale.saleId);
    if (now === null || now.state === sale.state) return;
    sale = now;
  }
}

/**
 * Finds sales whose buckets are in another state. Sales that need a repair are left out: the repair sets their state.
 */
async function salesThatDiffer(
  sales: readonly Sale[],
  store: AlignPorts['store'],
  faults: BucketFaults,
): Promise<Sale[]> {
  const statuses = await store.statusOrFault(sales.flatMap(bucketRefsOf));
  let at = 0;
  return sales.filter((sale) => {
    const buckets: BucketStatus[] = [];
    for (const status of statuses.slice(at, (at += sale.buckets))) {
      if (status instanceof OperationalError) faults.add(status);
      else buckets.push(status);
    }
    // buckets that do not answer are unknown, the other buckets are set all the same
    return repairNeedOf(sale, buckets) === null && buckets.some(({ state }) => state !== sale.state);
  });
}
