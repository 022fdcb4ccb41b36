import type { RepairStore } from '../../src/core/ports/repair-stores.js';
import type { BatchStore } from '../../src/core/ports/batch-store.js';
import type { SaleSnapshotCache } from '../../src/core/ports/sale-repository.js';
import type { PurchaseNotifications } from '../../src/core/ports/purchase-notifications.js';
import type { TransferStore } from '../../src/core/ports/transfer-store.js';
import type { SaleStore, StockStore } from '../../src/core/ports/stock-store.js';
import type { BucketRef } from '../../src/core/bucket.js';
import { silentLog } from '../helpers/silent-log.js';
import { connectRedis, serverNowMs } from '../../src/redis/connection.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { openPurchaseNotifications } from '../../src/redis/purchase-notifications.js';
import { createRepairStore } from '../../src/redis/repair-store.js';
import { createSaleSnapshotCache, createSaleStore } from '../../src/redis/sale-store.js';
import { createBatchStore } from '../../src/redis/batch-store.js';
import { createStockStore } from '../../src/redis/stock-store.js';
import { createTransferStore } from '../../src/redis/transfer-store.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { MemoryRedis } from '../helpers/memory/memory-redis.js';
import { MemoryRepairStore } from '../helpers/memory/memory-repair-store.js';
import { MemorySaleSnapshotCache } from '../helpers/memory/memory-sale-snapshot-cache.js';
import { MemoryTransferStore } from '../helpers/memory/memory-transfer-store.js';
import { onRedisCluster } from '../helpers/redis-cluster.js';
import { saleOf } from '../helpers/sales.js';
import { stackEnv } from '../helpers/stack-env.js';
import type { Sale } from '../../src/core/sale.js';

/** A ledger as the contract suites see it: Redis and the one in memory look the same from here. */
export interface StoreWorld {
  readonly stock: StockStore;
  readonly sales: SaleStore;
  readonly settlement: BatchStore;
  readonly snapshots: SaleSnapshotCache;
  readonly repair: RepairStore;
  readonly transfers: TransferStore;
  /** What buyers who wait receive. */
  readonly notifications: PurchaseNotifications;
  /** Now on the clock of the ledger, ms. */
  nowMs(): Promise<number>;
  /** Lets time pass. */
  elapse(ms: number): Promise<void>;
  /** From now on the bucket is on another server than before, with all its data. */
  restart(ref: BucketRef): Promise<void>;
  /** The repair of the bucket has let its lease run out. */
  endLease(ref: BucketRef): Promise<void>;
  close(): Promise<void>;
}

/** Life of a card in these worlds; short, so that a test can see its end; long enough for a busy machine. */
export const SNAPSHOT_TTL_MS = 600;

async function memoryWorld(): Promise<StoreWorld> {
  const clock = new ManualClock();
  const store = new MemoryRedis({ clock });
  return {
    stock: store,
    sales: store,
    settlement: store,
    snapshots: new MemorySaleSnapshotCache(clock, { ttlMs: SNAPSHOT_TTL_MS }),
    repair: new MemoryRepairStore(store),
    transfers: new MemoryTransferStore(store),
    notifications: store.notifications,
    nowMs: async () => clock.nowMs(),
    elapse: (ms) => clock.sleep(ms),
    restart: async () => void store.restart(),
    endLease: async (ref) => {
      const { repair } = store.bucket(ref);
      if (repair) repair.untilMs = clock.nowMs();
    },
    close: async () => undefined,
  };
}

async function redisWorld(url = stackEnv().REDIS_URL): Promise<StoreWorld> {
  const options = { url, replyTimeoutMs: 5000, connectTimeoutMs: 3000 };
  const connection = await connectRedis(options, silentLog);
  const notifications = openPurchaseNotifications(options, silentLog);
  return {
    stock: createStockStore(connection, silentLog),
    sales: createSaleStore(connection),
    settlement: createBatchStore(connection),
    snapshots: createSaleSnapshotCache(connection, { ttlMs: SNAPSHOT_TTL_MS }),
    repair: createRepairStore(connection),
    transfers: createTransferStore(connection),
    notifications,
    nowMs: () => serverNowMs(connection.redis, 'any'), // all servers of a test are on this host
    elapse: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    restart: async (ref) => {
      const { sale } = bucketKeys(ref); // the server cannot get another name here, so the bucket remembers another one
      for (const stamp of ['run_id', 'repair_run']) {
        if (await connection.redis.hexists(sale, stamp)) await connection.redis.hset(sale, stamp, 'another');
      }
    },
    endLease: async (ref) => void (await connection.redis.hset(bucketKeys(ref).sale, 'repair_until', 1)),
    async close() {
      await notifications.close();
      await connection.close();
    },
  };
}

export const STORE_WORLDS = [
  ['memory', memoryWorld],
  ['redis', () => redisWorld()],
  ['a Redis cluster', () => onRedisCluster(redisWorld)],
] as const;

/** Warms a fresh sale and opens it; its window lies wide around now on the ledger's clock. */
export async function openSale(world: StoreWorld, parts: Partial<Sale> = {}): Promise<Sale> {
  const sale = saleOf(parts, await world.nowMs());
  await world.sales.warm(sale);
  await world.sales.setState(sale, 'open');
  return sale;
}
