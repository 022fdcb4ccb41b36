import type { Config } from '../core/config/schema.js';
import type { WorkerProgress } from '../core/ports/channels.js';
import type { Log } from '../core/ports/log.js';
import type { PriceFault } from '../core/ports/payment-provider.js';
import type { TraceBroker } from '../core/ports/trace-sources.js';
import type { Resharded } from '../core/sale-repair.js';
import { createAuditLog } from '../mysql/audit-log.js';
import { createCompensationRepository } from '../mysql/compensation-repository.js';
import { createTracedDeadLetters } from '../mysql/dead-letters.js';
import { createOrderRepository } from '../mysql/order-repository.js';
import { createOutbox } from '../mysql/outbox.js';
import type { MysqlPool } from '../mysql/pool.js';
import { createReconcileRepository } from '../mysql/reconcile-repository.js';
import { createReconcileRuns } from '../mysql/reconcile-runs.js';
import { createRepairRepository } from '../mysql/repair-repository.js';
import { createSaleRepository } from '../mysql/sale-repository.js';
import { createSaleEdits } from '../mysql/sale-edits.js';
import { createSaleSchedule } from '../mysql/sale-schedule.js';
import { createTraceRepository } from '../mysql/trace-repository.js';
import { ReconcileAdmin } from '../recovery/reconcile/reconcile-admin.js';
import { repairAsked, type OrderedRepair } from '../recovery/repair/repair-jobs.js';
import type { RepairOrder } from '../recovery/repair/repair-sale.js';
import { reshardSale, type ReshardOrder } from '../recovery/repair/reshard-sale.js';
import { priceFaultOf } from '../payment/price-fault.js';
import { TracePurchase } from '../recovery/trace/trace-purchase.js';
import { createBatchStore } from '../redis/batch-store.js';
import type { RedisConnection } from '../redis/connection.js';
import { createReconcileStore } from '../redis/reconcile-store.js';
import { createRepairStore } from '../redis/repair-store.js';
import { createSaleSnapshotCache, createSaleStore } from '../redis/sale-store.js';
import { createStockStore } from '../redis/stock-store.js';
import { createTraceStore } from '../redis/trace-store.js';
import { createTransferStore } from '../redis/transfer-store.js';
import { createWorkerProgress } from '../rocketmq/admin/worker-progress.js';
import { brokerAccessOf } from '../rocketmq/credentials.js';
import { SaleEditor } from '../sales/edit-sale.js';
import { SaleAdmin } from '../sales/sale-admin.js';
import { planSales, type PlannedSale } from '../sales/schedule/plan-sales.js';
import { openReadiness } from './sale-readiness.js';
import { wrapped } from './seams.js';
import type { Connections, PublishSections } from '../process/connections.js';
import { systemClock as clock } from '../process/system-clock.js';

const RECONCILE_LIMITS = {
  /** An older outbox row is stuck. After an outage a keeper needs minutes. */
  outboxAgeMs: 600_000,
  /** Reports a batch that the keeper has published again for longer than this. An hour is longer than most outages. */
  waitingMaxMs: 3_600_000,
  /** Requests of one sale and kind that a run reads again, one by one. The next run reads the rest. */
  readsMax: 1000,
};

/** @throws OperationalError redis, as does every function below */
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
): Promise<PlannedSale[]> {
  const readiness = openReadiness(await connections.redis(), connections.config, connections.log);
  const schedule = createSaleSchedule(connections.mysql());
  return planSales({ schedule, readiness, nowMs: () => clock.nowMs() }, withinMs);
}

export async function openReconcile(
  connections: Connections<'mysql' | 'redis' | PublishSections | 'reconcile'>,
): Promise<ReconcileAdmin> {
  const redis = await connections.redis();
  const mysql = connections.mysql();
  return new ReconcileAdmin(
    {
      batches: createBatchStore(redis),
      store: createReconcileStore(redis),
      repairs: createRepairStore(redis),
      repository: createReconcileRepository(mysql),
      jobs: createCompensationRepository(mysql),
      runs: createReconcileRuns(mysql, clock),
      sales: createSaleRepository(mysql),
      outbox: createOutbox(mysql),
      fail: {
        repository: wrapped('order repository', createOrderRepository(mysql)),
        minter: connections.minter(),
        clock,
      },
      channel: connections.redrives(),
      clock,
      log: connections.log,
    },
    { ...connections.config.reconcile, ...RECONCILE_LIMITS },
  );
}

/**
 * Opens the trace of a purchase, which only reads.
 * @param broker null: the broker is not asked
 */
export async function openTrace(
  connections: Connections<'mysql' | 'redis' | 'keeper'>,
  broker: TraceBroker | null,
): Promise<TracePurchase> {
  const redis = await connections.redis();
  const mysql = connections.mysql();
  return new TracePurchase(
    {
      sales: createSaleRepository(mysql),
      stock: createStockStore(redis, connections.log),
      store: createTraceStore(redis),
      repository: createTraceRepository(mysql),
      deadLetters: createTracedDeadLetters(mysql),
      jobs: createCompensationRepository(mysql),
      audit: createAuditLog(mysql),
      broker,
    },
    { redriveAfterMs: connections.config.keeper.redriveAfterMs },
  );
}

/** Rebuilds a sale in Redis from MySQL. Without `force` only if the sale needs it. */
export async function repairSale(
  connections: Connections<'mysql' | 'redis' | 'repair' | 'brokerAccess'>,
  saleId: string,
  { force, ...order }: RepairOrder & { readonly force: boolean },
): Promise<OrderedRepair> {
  const { config, log } = connections;
  const stores = rebuildStores(await connections.redis(), connections.mysql());
  const ports = { ...stores, progress: workerProgressOf(config), clock, log };
  return repairAsked(saleId, force, ports, config.repair, order);
}

/** Splits a sale into more buckets. */
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
