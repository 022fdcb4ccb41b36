import type { Config } from '../core/config/schema.js';
import type { Resharded } from '../core/resharded.js';
import { createReconcileRepository } from '../mysql/reconcile-repository.js';
import { createRepairRepository } from '../mysql/repair-repository.js';
import { openMysqlPool, type MysqlPool } from '../mysql/pool.js';
import { createSaleRepository } from '../mysql/sale-repository.js';
import type { KeeperMetrics } from '../core/ports/keeper-metrics.js';
import type { Log } from '../core/ports/log.js';
import type { RepairMetrics } from '../core/ports/repair-metrics.js';
import type { RedisConnection } from '../redis/connection.js';
import { createRepairStore } from '../redis/repair-store.js';
import { createSaleSnapshotCache } from '../redis/sale-snapshot-cache.js';
import { createSaleStore } from '../redis/sale-store.js';
import { alignGates } from '../recovery/repair/align-gates.js';
import {
  type OrderedRepair,
  repairAsked,
  repairClosedSales,
  type RepairJobPorts,
  repairSales,
  watchShut,
} from '../recovery/repair/repair-jobs.js';
import type { RepairOrder } from '../recovery/repair/repair-sale.js';
import { reshardSale, type ReshardOrder } from '../recovery/repair/reshard-sale.js';
import type { KeeperFailPoints } from './fail-points.js';
import { openRedis } from './open-redis.js';
import { NO_REBUILD_POINTS, type RebuildFailPoints } from './rebuild-fail-points.js';
import type { PlannedJob } from './order-jobs.js';
import { systemClock as clock } from './system-clock.js';

interface Stores {
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  readonly log: Log;
}

interface RepairJobParts extends Stores {
  readonly points: Pick<KeeperFailPoints, 'rebuilt' | 'raised'>;
  readonly metrics: RepairMetrics & Pick<KeeperMetrics, 'overdue'>;
}

/** The jobs of the keeper that rebuild sales, and the one that watches them. */
export function repairJobs(
  { repair, keeper, overdue }: Config<'repair' | 'keeper' | 'overdue'>,
  { points, metrics, ...stores }: RepairJobParts,
): PlannedJob[] {
  const { store, repository, sales, log } = portsOf(stores);
  const rebuilding: RepairJobPorts = {
    ...{ store: points.rebuilt(store), repository: points.raised(repository), sales, clock, metrics, log },
  };
  return [
    { everyMs: repair.everyMs, job: repairSales(rebuilding, repair) },
    { everyMs: keeper.everyMs, job: repairClosedSales(rebuilding, repair) },
    { everyMs: keeper.everyMs, job: alignGates({ store, sales }) },
    { everyMs: keeper.everyMs, job: watchShut({ store, sales, clock, metrics }, { afterMs: overdue.shutMs }) },
  ];
}

/** Opens what one repair needs, for somebody who asks for it, and closes it again. */
export async function repairOnce(
  config: Config<'mysql' | 'redis' | 'repair'>,
  log: Log,
  { saleId, force, ...order }: RepairOrder & { readonly saleId: string; readonly force: boolean },
): Promise<OrderedRepair> {
  const redis = await openRedis(config.redis, log); // first: a pool that is never closed keeps a process alive
  const mysql = openMysqlPool(config.mysql);
  try {
    return await repairAsked(saleId, force, portsOf({ redis, mysql, log }), config.repair, order);
  } finally {
    await redis.close();
    await mysql.close();
  }
}

/** Splits sales into more buckets, for whoever asks an api for it. */
export function createReshard(
  stores: Stores,
  { repair, gate }: Config<'repair' | 'gate'>,
  points: RebuildFailPoints = NO_REBUILD_POINTS,
): (saleId: string, order: ReshardOrder) => Promise<Resharded> {
  const { store, repository, ...others } = portsOf(stores);
  const cache = createSaleSnapshotCache(stores.redis, { ttlMs: gate.snapshotCacheMs });
  const ports = { ...others, store: points.rebuilt(store), repository: points.raised(repository), cache };
  return (saleId, order) => reshardSale(saleId, order, ports, repair);
}

/** Opens what that needs for one piece of work, and closes it again. */
export async function reshardOnce(
  config: Config<'mysql' | 'redis' | 'repair' | 'gate'>,
  log: Log,
  { saleId, ...order }: ReshardOrder & { readonly saleId: string },
): Promise<Resharded> {
  const redis = await openRedis(config.redis, log);
  const mysql = openMysqlPool(config.mysql);
  try {
    return await createReshard({ redis, mysql, log }, config)(saleId, order);
  } finally {
    await redis.close();
    await mysql.close();
  }
}

function portsOf({ redis, mysql, log }: Stores) {
  const { agedOrders } = createReconcileRepository(mysql);
  const { setState } = createSaleStore(redis);
  return {
    store: { ...createRepairStore(redis), setState },
    repository: { ...createRepairRepository(mysql), agedOrders },
    sales: createSaleRepository(mysql),
    ...{ clock, log },
  };
}
