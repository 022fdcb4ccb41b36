import type { Config } from '../../core/config/schema.js';
import type { WorkerProgress } from '../../core/ports/channels.js';
import type { Log } from '../../core/ports/log.js';
import type { PriceFault } from '../../core/ports/payment-provider.js';
import type { Sale } from '../../core/sale.js';
import type { Resharded } from '../../core/sale-repair.js';
import { recent } from '../../core/recent.js';
import { TOPICS } from '../../core/topics.js';
import { createReconcileRepository } from '../../mysql/reconcile-repository.js';
import type { MysqlPool } from '../../mysql/pool.js';
import { createRepairRepository } from '../../mysql/repair-repository.js';
import { createSaleEdits } from '../../mysql/sale-edits.js';
import { createSaleRepository } from '../../mysql/sale-repository.js';
import { createSaleSchedule } from '../../mysql/sale-schedule.js';
import { priceFaultOf } from '../../payment/price-fault.js';
import type { Connections } from '../../process/connections.js';
import { wrapped } from '../../process/seams.js';
import { systemClock as clock } from '../../process/system-clock.js';
import { repairAsked, type OrderedRepair } from '../../recovery/repair/repair-jobs.js';
import type { RepairOrder } from '../../recovery/repair/repair-sale.js';
import { reshardSale, type ReshardOrder } from '../../recovery/repair/reshard-sale.js';
import { createBatchStore } from '../../redis/batch-store.js';
import type { RedisConnection } from '../../redis/connection.js';
import { createRepairStore } from '../../redis/repair-store.js';
import { createSaleSnapshotCache, createSaleStore } from '../../redis/sale-store.js';
import { createStockStore } from '../../redis/stock-store.js';
import { createTransferStore } from '../../redis/transfer-store.js';
import { createWorkerProgress } from '../../rocketmq/admin/worker-progress.js';
import { brokerAccessOf } from '../../rocketmq/credentials.js';
import { SaleEditor } from '../../sales/edit-sale.js';
import type { PriceTerms } from '../../sales/new-sale.js';
import { SaleAdmin } from '../../sales/sale-admin.js';
import { readinessOf, type Readiness } from '../../sales/schedule/readiness.js';
import { planSales, type PlannedSale } from '../../sales/schedule/plan-sales.js';
import { readSaleBuckets } from './sale-buckets.js';

/** Sales that start together are checked one after the other and share one answer of the broker. */
const TOPICS_KNOWN_MS = 5000;

/** Opens the services that the routes of sales need. @throws OperationalError redis, as does every function below */
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

/** Opens the editor that changes, cancels and deletes sales. */
export async function openEditor(connections: Connections<'mysql' | 'redis' | 'payment'>): Promise<SaleEditor> {
  const { config, log } = connections;
  return openSaleEditor(await connections.redis(), connections.mysql(), priceFaultOf(config.payment), log);
}

/** Returns the sales that open within this time or have opened, and the preparations that each lacks. */
export async function planOfSales(
  connections: Connections<'mysql' | 'redis' | 'rocketmq' | 'brokerAccess'>,
  withinMs: number,
): Promise<readonly PlannedSale[]> {
  const readiness = openReadiness(await connections.redis(), connections.config, connections.log);
  const schedule = createSaleSchedule(connections.mysql());
  return planSales({ schedule, readiness, nowMs: () => clock.nowMs() }, withinMs);
}

/** Without `force` a sale is repaired only if it needs it. */
type ForcedOrder = RepairOrder & { readonly force: boolean };

/** Rebuilds a sale in Redis from MySQL. @throws OperationalError; the sale stays locked until the keeper has repaired it */
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

/**
 * Splits a sale into more buckets while it sells. @throws OperationalError; the sale may stay locked until the keeper has
 * repaired it
 */
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

export function openSaleAdmin(redis: RedisConnection, mysql: MysqlPool): SaleAdmin {
  return new SaleAdmin({
    repository: createSaleRepository(mysql),
    store: createSaleStore(redis),
    cache: createSaleSnapshotCache(redis),
  });
}

export function openSaleEditor(redis: RedisConnection, mysql: MysqlPool, faultOf: PriceFault, log: Log): SaleEditor {
  return new SaleEditor({
    edits: createSaleEdits(mysql),
    sales: createSaleRepository(mysql),
    admin: openSaleAdmin(redis, mysql),
    store: createSaleStore(redis),
    stock: createStockStore(redis, log),
    transfers: createTransferStore(redis),
    cache: createSaleSnapshotCache(redis),
    nowMs: () => clock.nowMs(),
    faultOf,
  });
}

/** Opens the stores that rebuild a sale in Redis from MySQL, for a repair or a split into more buckets. */
export function rebuildStores(redis: RedisConnection, mysql: MysqlPool) {
  const { orderPage, unlistedOrders, findSale } = createReconcileRepository(mysql);
  const repairs = createRepairStore(redis);
  const repository = { ...createRepairRepository(mysql), orderPage, unlistedOrders, findSale };
  return {
    repairs: wrapped('repair store', repairs),
    setState: createSaleStore(redis).setState,
    repository: wrapped('repair repository', repository),
    sales: createSaleRepository(mysql),
  };
}

/** Null without a known name server, because the broker cannot be asked. */
export const workerProgressOf = ({ repair, brokerAccess }: Config<'repair' | 'brokerAccess'>): WorkerProgress | null =>
  repair.namesrv === '' ? null : createWorkerProgress(repair.namesrv, brokerAccessOf(brokerAccess));

/** Returns the price rules of the shop, from its settings alone. */
export const priceTermsOf = ({ sale, payment }: Config<'sale' | 'payment'>): PriceTerms => ({
  currency: sale.currency,
  faultOf: priceFaultOf(payment),
});

/** Opens the readiness check of a sale, on real servers. */
export function openReadiness(
  redis: RedisConnection,
  { rocketmq, brokerAccess }: Config<'rocketmq' | 'brokerAccess'>,
  log: Log,
): (sale: Sale) => Promise<Readiness> {
  const store = createStockStore(redis, log);
  const cache = createSaleSnapshotCache(redis);
  const broker = { endpoint: rocketmq.endpoint, ...brokerAccessOf(brokerAccess) };
  const topics = recent(
    async () => {
      const { probeTopics } = await import('../../rocketmq/probe-topics.js'); // the broker client takes long to load
      return probeTopics(broker, Object.values(TOPICS));
    },
    TOPICS_KNOWN_MS,
    clock,
  );
  return (sale) => readinessOf(sale, store, cache, topics);
}
