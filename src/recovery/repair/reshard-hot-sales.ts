import { BUCKETS_MAX, bucketRefsOf } from '../../core/bucket.js';
import type { Job } from '../../core/job.js';
import type { HotSale, HotSaleStore } from '../../core/ports/hot-sales.js';
import type { Log } from '../../core/ports/log.js';
import type { RepairRepository, RepairStore } from '../../core/ports/repair-stores.js';
import type { SaleRepository } from '../../core/ports/sale-repository.js';
import type { StockStore } from '../../core/ports/stock-store.js';
import type { Sale } from '../../core/sale.js';
import type { Resharded } from '../../core/sale-repair.js';
import { hotSalesOf } from '../../sales/watch-hot-sales.js';
import type { RecoveryMetrics } from '../metrics.js';
import type { ReshardOrder } from './reshard-sale.js';
import { repairNeedIn } from './sale-status.js';

/** Buckets per master. More than 1, because some buckets share a master by chance. */
const BUCKETS_PER_MASTER = 2;
/** Minimum time until a sale sells out or ends. Otherwise a split gains less than the locked sale costs. */
const WORTH_MS = 15_000;

export interface HotReshardPorts {
  readonly hot: HotSaleStore;
  readonly sales: SaleRepository;
  readonly stock: StockStore;
  readonly repairs: RepairStore;
  readonly repository: RepairRepository;
  /** Number of Redis servers that can hold buckets. */
  readonly masters: () => number;
  readonly reshard: (saleId: string, order: ReshardOrder) => Promise<Resharded>;
  readonly metrics: RecoveryMetrics;
  readonly log: Log;
}

const ACTOR = 'keeper';

/** @returns the new number of buckets, or null if more would not help or are not allowed */
export function bucketsForHot(buckets: number, masters: number, bucketsMax: number): number | null {
  if (masters < 2) return null; // one server sells no faster from several buckets
  const wanted = Math.ceil((BUCKETS_PER_MASTER * masters) / buckets) * buckets;
  const allowed = Math.floor(Math.min(bucketsMax, BUCKETS_MAX) / buckets) * buckets;
  const split = Math.min(wanted, allowed);
  return split > buckets ? split : null;
}

/**
 * Splits hot sales into more buckets, one per run, the hottest first. A sale is split at most once in its life, even if
 * the split fails. The first keeper to write its claim to the audit log does it (docs/decisions/0017).
 * @param perSecond purchase attempts per second, over all apis, from which a sale is split
 * @param bucketsMax maximum number of buckets of a sale
 */
export function reshardHotSales(
  ports: HotReshardPorts,
  { perSecond, bucketsMax }: { readonly perSecond: number; readonly bucketsMax: number },
): Job {
  const { hot, sales, repository, masters, reshard, metrics, log } = ports;
  /** Sales that this process may not split again. MySQL decides. */
  const had = new Set<string>();
  let isReported = false;

  const splitOf = async (sale: HotSale): Promise<{ readonly from: number; readonly to: number } | null> => {
    const found = await sales.find(sale.saleId);
    if (found === null) return null;
    const to = bucketsForHot(found.buckets, masters(), bucketsMax);
    if (to === null || !(await isWorthIt(found, sale.perSecond, ports))) return null;
    return { from: found.buckets, to };
  };

  return {
    name: 'reshard-hot-sales',
    async runOnce(): Promise<void> {
      if (masters() < 2 && !isReported) {
        log.warn({}, 'HOT_SALE_AUTO has no effect, because one Redis server does not sell faster with several buckets');
        isReported = true;
      }
      const found = hotSalesOf(await hot.reports(), perSecond);
      for (const sale of found.filter(({ saleId }) => !had.has(saleId))) {
        const { saleId } = sale;
        const split = await splitOf(sale);
        if (split === null) continue;
        const isOurs = await repository.claimReshard(saleId, split, ACTOR, Math.round(sale.perSecond));
        had.add(saleId);
        if (!isOurs) continue;
        metrics.hotSaleResharded('begun');
        const end = await reshard(saleId, { actor: ACTOR, buckets: split.to }).catch((error: unknown) => {
          metrics.hotSaleResharded('failed');
          throw error;
        });
        if (end.outcome === 'resharded') {
          metrics.hotSaleResharded('resharded');
          log.info({ ...sale, buckets: split.to, lockedMs: end.lockedMs }, 'split a hot sale into more buckets');
        } else {
          metrics.hotSaleResharded('failed');
          log.warn({ ...sale, outcome: end.outcome }, 'could not split a hot sale; the keeper does not retry');
        }
        return;
      }
    },
  };
}

/** Whether the sale is selling, whole, and lasts long enough, by the clock of its Redis server. */
async function isWorthIt(sale: Sale, perSecond: number, { stock, repairs }: HotReshardPorts): Promise<boolean> {
  if (sale.state !== 'open' || (await repairNeedIn(sale, repairs)) !== null) return false;
  const { buckets } = sale;
  const stored = await Promise.all(bucketRefsOf(sale).map((ref) => stock.readSale({ ...ref, buckets })));
  let unitsLeft = 0;
  for (const bucket of stored) {
    if (bucket === null || bucket.state !== 'open' || bucket.epoch !== sale.epoch) return false;
    if (bucket.nowMs < bucket.opensAtMs || bucket.nowMs + WORTH_MS > bucket.closesAtMs) return false;
    unitsLeft += bucket.unitsLeft;
  }
  return unitsLeft * 1000 >= perSecond * WORTH_MS;
}
