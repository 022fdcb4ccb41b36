import { repairNeedOf, type RepairNeed } from '../../core/repair-need.js';
import type { Sale } from '../../core/sale.js';
import type { RepairStore } from '../../core/ports/repair-store.js';
import type { SaleRepository } from '../../core/ports/sale-repository.js';
import { bucketRefsOf } from './repair-sale.js';

export interface NeedPorts {
  readonly store: Pick<RepairStore, 'standing'>;
  readonly sales: Pick<SaleRepository, 'list' | 'find'>;
}

export interface SaleInNeed {
  readonly sale: Sale;
  readonly need: RepairNeed;
  /** Of each bucket, as it was seen. */
  readonly seenEpochs: readonly number[];
}

/** More sales at once are no use of this system; of those that are over, so many that ended last. */
const SALES_MAX = 10_000;
/** By then nothing of a sale is under way, its markers are removed, and nobody asks Redis for it. */
const FORGOTTEN_AFTER_MS = 8 * 24 * 3_600_000;

/**
 * Sales that buyers can come to.
 * @throws OperationalError
 */
export async function liveInNeed(ports: NeedPorts): Promise<SaleInNeed[]> {
  return inNeed(await ports.sales.list({ states: ['warm', 'open', 'paused'], max: SALES_MAX }), ports);
}

/**
 * Closed sales, those first that ended last. Of one that ended long ago Redis need know nothing.
 * @throws OperationalError
 */
export async function closedInNeed(ports: NeedPorts, nowMs: number): Promise<SaleInNeed[]> {
  const closed = await ports.sales.list({ states: ['closed'], max: SALES_MAX, order: 'closed_last' });
  const found = await inNeed(closed, ports);
  const isForgotten = ({ sale, need }: SaleInNeed): boolean =>
    need === 'not_loaded' && nowMs - sale.closesAtMs > FORGOTTEN_AFTER_MS;
  return found.filter((one) => !isForgotten(one));
}

/** @throws OperationalError */
export async function isInNeed(saleId: string, ports: NeedPorts): Promise<boolean> {
  const sale = await ports.sales.find(saleId);
  return sale !== null && (await inNeed([sale], ports)).length > 0;
}

/** The sales are read before their buckets: an epoch only grows, so one that was just rebuilt is not taken for old. */
async function inNeed(sales: readonly Sale[], { store }: Pick<NeedPorts, 'store'>): Promise<SaleInNeed[]> {
  const standings = await store.standing(sales.flatMap(bucketRefsOf));
  const found: SaleInNeed[] = [];
  let at = 0;
  for (const sale of sales) {
    const buckets = standings.slice(at, (at += sale.buckets));
    const need = repairNeedOf(sale, buckets);
    if (need !== null) found.push({ sale, need, seenEpochs: buckets.map(({ epoch }) => epoch) });
  }
  return found;
}
