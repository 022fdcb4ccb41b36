import { bucketRefsOf } from '../../core/bucket.js';
import { OperationalError } from '../../core/errors.js';
import { repairNeedOf, type NotResharded, type Resharded } from '../../core/sale-repair.js';
import type { Sale } from '../../core/sale.js';
import type { SaleSnapshotCache } from '../../core/ports/sale-repository.js';
import { repairSale, type RepairOptions, type RepairPorts } from './repair-sale.js';

export interface ReshardPorts extends RepairPorts {
  readonly forgetSnapshot: SaleSnapshotCache['forget'];
}

export interface ReshardOrder {
  /** The actor, for the audit log. */
  readonly actor: string;
  readonly buckets: number;
}

/**
 * Splits the stock of a sale, which may be selling, into more buckets: a repair without loss. Locks, raises the epoch,
 * rebuilds all requests from the rows and the held requests, unlocks. If this process dies, the sale stays locked until
 * the keeper repairs it, with the number of buckets that MySQL has.
 * @throws OperationalError; the sale may be resharded, or locked until the keeper has repaired it
 */
export async function reshardSale(
  saleId: string,
  { actor, buckets }: ReshardOrder,
  ports: ReshardPorts,
  options: RepairOptions,
): Promise<Resharded> {
  // Read before the sale: if another reshard comes in between, the buckets are older than the sale, which is then in
  // repair. In the other order, the sale would be locked and left to its lease. Includes buckets to be made: if they
  // exist when they are to be locked, another reshard was faster.
  const statuses = await ports.repairs.statusOf(bucketRefsOf({ saleId, buckets }));
  const sale = await ports.sales.find(saleId);
  if (sale === null) return { outcome: 'not_found' };
  const no = refusalOf(sale, buckets);
  if (no !== null) return { outcome: no };
  if (repairNeedOf(sale, statuses.slice(0, sale.buckets)) !== null) return { outcome: 'in_repair' };
  const seenEpochs = statuses.map(({ epoch }) => epoch);
  const end = await repairSale(sale, ports, options, { actor, buckets, seenEpochs });
  if (end.outcome === 'busy') return { outcome: 'in_repair' };
  if (end.outcome === 'retired') return { outcome: 'closed' };
  if (end.outcome !== 'repaired') return { outcome: end.outcome };
  await dropSnapshot(saleId, ports);
  const { epoch, unitsLeft, tookMs: lockedMs } = end;
  return { outcome: 'resharded', buckets, epoch, unitsLeft, lockedMs };
}

function refusalOf(sale: Sale, buckets: number): NotResharded | null {
  if (sale.state === 'draft' || sale.state === 'closed') return sale.state;
  if (sale.buckets === buckets) return 'already_resharded';
  return buckets > sale.buckets && buckets % sale.buckets === 0 ? null : 'not_a_multiple';
}

/** If this fails, buyers lose at most one attempt: the scripts refuse requests with the old snapshot. */
async function dropSnapshot(saleId: string, { forgetSnapshot, log }: ReshardPorts): Promise<void> {
  try {
    await forgetSnapshot(saleId);
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error;
    log.warn({ saleId, error: error.message }, 'the snapshot of a resharded sale stays in Redis until it expires');
  }
}
