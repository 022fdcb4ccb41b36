import { setTimeout as sleep } from 'node:timers/promises';
import type { Batch } from '../../src/core/batch.js';
import type { NonceStore, PurchaseTokenStore } from '../../src/core/ports/admission-stores.js';
import type { LineStore } from '../../src/core/ports/line-store.js';
import type { ReconcileStore } from '../../src/core/ports/reconcile-store.js';
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
import { createLineStore } from '../../src/redis/line-store.js';
import { createNonceStore } from '../../src/redis/nonce-store.js';
import { createPurchaseTokenStore } from '../../src/redis/purchase-token-store.js';
import { createReconcileStore } from '../../src/redis/reconcile-store.js';
import { createRepairStore } from '../../src/redis/repair-store.js';
import { createSaleSnapshotCache, createSaleStore } from '../../src/redis/sale-store.js';
import { createBatchStore } from '../../src/redis/batch-store.js';
import { createStockStore } from '../../src/redis/stock-store.js';
import { createTransferStore } from '../../src/redis/transfer-store.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { MemoryNonceStore, MemoryPurchaseTokenStore } from '../helpers/memory/memory-admission-stores.js';
import { MemoryLineStore } from '../helpers/memory/memory-line-store.js';
import { MemoryReconcileStore } from '../helpers/memory/memory-reconcile.js';
import { MemoryRedis } from '../helpers/memory/memory-redis.js';
import { MemoryRepairStore } from '../helpers/memory/memory-repair-store.js';
import { MemorySaleSnapshotCache } from '../helpers/memory/memory-sale-snapshot-cache.js';
import { MemoryTransferStore } from '../helpers/memory/memory-transfer-store.js';
import { onRedisCluster } from '../helpers/redis-cluster.js';
import { saleOf } from '../helpers/sales.js';
import { redisIn } from '../helpers/servers.js';
import { stackEnv } from '../helpers/stack-env.js';
import type { Sale } from '../../src/core/sale.js';

/** All stores of Redis for the contract suites: on a server, on a cluster and in memory. */
export interface StoreWorld {
  readonly stock: StockStore;
  readonly sales: SaleStore;
  readonly edits: SaleStore;
  readonly batches: BatchStore;
  readonly snapshots: SaleSnapshotCache;
  readonly repair: RepairStore;
  readonly transfers: TransferStore;
  readonly reconcile: ReconcileStore;
  readonly nonces: NonceStore;
  readonly tokens: PurchaseTokenStore;
  readonly lines: LineStore;
  readonly notifications: PurchaseNotifications;
  /** Current time on the clock of the stores, ms. */
  nowMs(): Promise<number>;
  /** Advances the clock. */
  elapse(ms: number): Promise<void>;
  /** Makes the bucket look loaded on another server, as after a restart. */
  restart(ref: BucketRef): Promise<void>;
  /** Ends the repair lease of this bucket. */
  endLease(ref: BucketRef): Promise<void>;
  /** Delays the end of a repair lease, as if the clock had been set back. */
  stretchLease(ref: BucketRef, byMs: number): Promise<void>;
  /** Removes the marker of a batch. */
  removeMarker(batch: Batch): Promise<void>;
  close(): Promise<void>;
}

/** Short enough to wait for the end of a snapshot, and long enough for a busy machine. */
export const SNAPSHOT_TTL_MS = 2_000;

async function memoryWorld(): Promise<StoreWorld> {
  const clock = new ManualClock();
  const store = new MemoryRedis({ clock });
  return {
    stock: store,
    sales: store,
    edits: store,
    batches: store,
    snapshots: new MemorySaleSnapshotCache(clock, { ttlMs: SNAPSHOT_TTL_MS }),
    repair: new MemoryRepairStore(store),
    transfers: new MemoryTransferStore(store),
    reconcile: new MemoryReconcileStore(store),
    nonces: new MemoryNonceStore(clock),
    tokens: new MemoryPurchaseTokenStore(clock),
    lines: new MemoryLineStore(clock),
    notifications: store.notifications,
    nowMs: async () => clock.nowMs(),
    elapse: (ms) => clock.sleep(ms),
    restart: async () => void store.restart(),
    endLease: async (ref) => {
      const { repair } = store.bucket(ref);
      if (repair) repair.untilMs = clock.nowMs();
    },
    stretchLease: async (ref, byMs) => {
      const { repair } = store.bucket(ref);
      if (repair) repair.untilMs += byMs;
    },
    removeMarker: async (batch) => void store.bucket(batch).markers.delete(batch.batchId),
    close: async () => undefined,
  };
}

/** @param url of a server that belongs to this file; defaults to the server of the stack */
async function redisWorld(url?: string): Promise<StoreWorld> {
  const server = url === undefined ? redisIn(stackEnv()) : { url };
  const options = { ...server, replyTimeoutMs: 5000, connectTimeoutMs: 3000 };
  const connection = await connectRedis(options, silentLog);
  const notifications = openPurchaseNotifications(options, silentLog);
  return {
    stock: createStockStore(connection, silentLog),
    sales: createSaleStore(connection),
    edits: createSaleStore(connection),
    batches: createBatchStore(connection),
    snapshots: createSaleSnapshotCache(connection, { ttlMs: SNAPSHOT_TTL_MS }),
    repair: createRepairStore(connection),
    transfers: createTransferStore(connection),
    reconcile: createReconcileStore(connection),
    nonces: createNonceStore(connection),
    tokens: createPurchaseTokenStore(connection),
    lines: createLineStore(connection),
    notifications,
    nowMs: () => serverNowMs(connection.redis, 'any'), // All servers of a test are on this host.
    elapse: (ms) => sleep(ms),
    restart: async (ref) => {
      const { sale } = bucketKeys(ref); // instead of the run id of the server, which cannot change
      for (const stamp of ['run_id', 'repair_run']) {
        if (await connection.redis.hexists(sale, stamp)) await connection.redis.hset(sale, stamp, 'another');
      }
    },
    endLease: async (ref) => void (await connection.redis.hset(bucketKeys(ref).sale, 'repair_until', 1)),
    stretchLease: async (ref, byMs) =>
      void (await connection.redis.hincrby(bucketKeys(ref).sale, 'repair_until', byMs)),
    removeMarker: async (batch) => void (await connection.redis.del(bucketKeys(batch).tx + batch.batchId)),
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

/** Bucket 0, the only bucket of most sales here. */
export const firstBucket = ({ saleId }: Sale): BucketRef => ({ saleId, bucket: 0 });

/** Warms and opens a new sale with a wide window around the current time of the stores. */
export async function openSale(world: StoreWorld, parts: Partial<Sale> = {}): Promise<Sale> {
  const sale = saleOf(parts, await world.nowMs());
  await world.sales.warm(sale);
  await world.sales.setState(sale, 'open');
  return sale;
}
