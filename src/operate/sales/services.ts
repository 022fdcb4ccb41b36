import type { Config } from '../../core/config/schema.js';
import type { Sale } from '../../core/sale.js';
import type { Resharded } from '../../core/sale-repair.js';
import { createSaleSchedule } from '../../mysql/sale-schedule.js';
import { priceFaultOf } from '../../payment/price-fault.js';
import type { Connections } from '../../process/connections.js';
import {
  openReadiness,
  openSaleAdmin,
  openSaleEditor,
  rebuildStores,
  workerProgressOf,
} from '../../process/sale-parts.js';
import { systemClock as clock } from '../../process/system-clock.js';
import { repairAsked, type OrderedRepair } from '../../recovery/repair/repair-jobs.js';
import type { RepairOrder } from '../../recovery/repair/repair-sale.js';
import { reshardSale, type ReshardOrder } from '../../recovery/repair/reshard-sale.js';
import { createBatchStore } from '../../redis/batch-store.js';
import { createRepairStore } from '../../redis/repair-store.js';
import { createSaleSnapshotCache } from '../../redis/sale-store.js';
import { createStockStore } from '../../redis/stock-store.js';
import type { SaleEditor } from '../../sales/edit-sale.js';
import type { PriceTerms } from '../../sales/new-sale.js';
import type { SaleAdmin } from '../../sales/sale-admin.js';
import { planSales, type PlannedSale } from '../../sales/schedule/plan-sales.js';
import { readSaleBuckets } from './sale-buckets.js';

/** @throws OperationalError redis, like every function below */
export async function openSaleServices(
  connections: Connections<'mysql' | 'redis' | 'rocketmq' | 'brokerAccess' | 'repair' | 'payment'>,
) {
  const redis = await connections.redis();
  const stores = {
    stock: createStockStore(redis, connections.log),
    batches: createBatchStore(redis),
    repair: createRepairStore(redis),
  };
  return {
    editor: await openEditor(connections),
    plan: (withinMs: number) => planOfSales(connections, withinMs),
    reshard: (saleId: string, order: ReshardOrder) => splitIntoBuckets(connections, saleId, order),
    repair: (saleId: string, order: ForcedOrder) => repairSale(connections, saleId, order),
    bucketsOf: (sale: Sale) => readSaleBuckets(sale, stores),
  };
}
export type SaleServices = Awaited<ReturnType<typeof openSaleServices>>;

export const openSales = async (connections: Connections<'mysql' | 'redis'>): Promise<SaleAdmin> =>
  openSaleAdmin(await connections.redis(), connections.mysql());

export async function openEditor(connections: Connections<'mysql' | 'redis' | 'payment'>): Promise<SaleEditor> {
  const { config, log } = connections;
  return openSaleEditor(await connections.redis(), connections.mysql(), priceFaultOf(config.payment), log);
}

/** Returns the sales that have opened or will open within this time, with what each of them lacks. */
export async function planOfSales(
  connections: Connections<'mysql' | 'redis' | 'rocketmq' | 'brokerAccess'>,
  withinMs: number,
): Promise<readonly PlannedSale[]> {
  const readiness = openReadiness(await connections.redis(), connections.config, connections.log);
  const schedule = createSaleSchedule(connections.mysql());
  return planSales({ schedule, readiness, nowMs: () => clock.nowMs() }, withinMs);
}

/** Without `force`, only a sale that needs repair is repaired. */
type ForcedOrder = RepairOrder & { readonly force: boolean };

/** @throws OperationalError; the sale stays locked until the keeper has repaired it */
export async function repairSale(
  connections: Connections<'mysql' | 'redis' | 'repair' | 'brokerAccess'>,
  saleId: string,
  { force, ...order }: ForcedOrder,
): Promise<OrderedRepair> {
  const { config, log } = connections;
  const stores = rebuildStores(await connections.redis(), connections.mysql());
  const ports = { ...stores, progress: workerProgressOf(config), clock, log };
  return repairAsked(saleId, force, ports, config.repair, order);
}

/** Works while the sale sells. @throws OperationalError; it may stay locked until the keeper has repaired it */
export async function splitIntoBuckets(
  connections: Connections<'mysql' | 'redis' | 'repair' | 'brokerAccess'>,
  saleId: string,
  order: ReshardOrder,
): Promise<Resharded> {
  const { config, log } = connections;
  const redis = await connections.redis();
  const stores = rebuildStores(redis, connections.mysql());
  const forgetSnapshot = createSaleSnapshotCache(redis).forget;
  const progress = workerProgressOf(config);
  return reshardSale(saleId, order, { ...stores, forgetSnapshot, progress, clock, log }, config.repair);
}

/** Returns the price rules of the shop. They follow only from its settings. */
export const priceTermsOf = ({ sale, payment }: Config<'sale' | 'payment'>): PriceTerms => ({
  currency: sale.currency,
  faultOf: priceFaultOf(payment),
});
