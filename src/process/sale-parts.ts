import type { Config } from '../core/config/schema.js';
import type { WorkerProgress } from '../core/ports/channels.js';
import type { Log } from '../core/ports/log.js';
import type { PriceFault } from '../core/ports/payment-provider.js';
import { recent } from '../core/recent.js';
import type { Sale } from '../core/sale.js';
import { TOPICS } from '../core/topics.js';
import type { MysqlPool } from '../mysql/pool.js';
import { createReconcileRepository } from '../mysql/reconcile-repository.js';
import { createRepairRepository } from '../mysql/repair-repository.js';
import { createSaleEdits } from '../mysql/sale-edits.js';
import { createSaleRepository } from '../mysql/sale-repository.js';
import type { RedisConnection } from '../redis/connection.js';
import { createRepairStore } from '../redis/repair-store.js';
import { createSaleSnapshotCache, createSaleStore } from '../redis/sale-store.js';
import { createStockStore } from '../redis/stock-store.js';
import { createTransferStore } from '../redis/transfer-store.js';
import { createWorkerProgress } from '../rocketmq/admin/worker-progress.js';
import { brokerAccessOf } from '../rocketmq/credentials.js';
import { SaleEditor } from '../sales/edit-sale.js';
import { SaleAdmin } from '../sales/sale-admin.js';
import { readinessOf, type Readiness } from '../sales/schedule/readiness.js';
import { wrapped } from './seams.js';
import { systemClock as clock } from './system-clock.js';

// Parts of sales that the keeper and the commands of operators open in the same way.

/** Sales that start at the same time are checked one after the other, and share one answer of the broker. */
const TOPICS_KNOWN_MS = 5000;

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

/** Opens the stores that rebuild a sale in Redis from MySQL, for a repair or for a split into more buckets. */
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

/** Null if no name server is known, because the broker cannot be asked then. */
export const workerProgressOf = ({ repair, brokerAccess }: Config<'repair' | 'brokerAccess'>): WorkerProgress | null =>
  repair.namesrv === '' ? null : createWorkerProgress(repair.namesrv, brokerAccessOf(brokerAccess));

/** Opens the check of a sale's readiness, on real servers. */
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
      const { probeTopics } = await import('../rocketmq/probe-topics.js'); // the broker client takes long to load
      return probeTopics(broker, Object.values(TOPICS));
    },
    TOPICS_KNOWN_MS,
    clock,
  );
  return (sale) => readinessOf(sale, store, cache, topics);
}
