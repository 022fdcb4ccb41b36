import type { Config } from '../core/config/schema.js';
import type { Scattered } from '../core/scattered.js';
import { createReconcileBook } from '../mysql/reconcile-book.js';
import { createRepairBook } from '../mysql/repair-book.js';
import { openMysqlPool, type MysqlPool } from '../mysql/pool.js';
import { createSaleBook } from '../mysql/sale-book.js';
import type { KeeperMeters } from '../core/ports/keeper-meters.js';
import type { Log } from '../core/ports/log.js';
import type { RepairMeters } from '../core/ports/repair-meters.js';
import type { RedisConnection } from '../redis/connection.js';
import { createRepairLedger } from '../redis/repair-ledger.js';
import { createSaleCardCache } from '../redis/sale-card-cache.js';
import { createSaleLedger } from '../redis/sale-ledger.js';
import { alignGates } from '../recovery/repair/align-gates.js';
import { repairAsked, type OrderedRepair } from '../recovery/repair/repair-asked.js';
import { repairClosedSales, repairSales, watchShut, type RepairJobPorts } from '../recovery/repair/repair-jobs.js';
import type { RepairOrder } from '../recovery/repair/repair-sale.js';
import { scatterSale, type ScatterOrder } from '../recovery/repair/scatter-sale.js';
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
  readonly meters: RepairMeters & Pick<KeeperMeters, 'overdue'>;
}

/** The jobs of the keeper that rebuild sales, and the one that watches them. */
export function repairJobs(
  { repair, keeper, overdue }: Config<'repair' | 'keeper' | 'overdue'>,
  { points, meters, ...stores }: RepairJobParts,
): PlannedJob[] {
  const { ledger, book, sales, log } = portsOf(stores);
  const rebuilding: RepairJobPorts = {
    ...{ ledger: points.rebuilt(ledger), book: points.raised(book), sales, clock, meters, log },
  };
  return [
    { everyMs: repair.everyMs, job: repairSales(rebuilding, repair) },
    { everyMs: keeper.everyMs, job: repairClosedSales(rebuilding, repair) },
    { everyMs: keeper.everyMs, job: alignGates({ ledger, sales }) },
    { everyMs: keeper.everyMs, job: watchShut({ ledger, sales, clock, meters }, { afterMs: overdue.shutMs }) },
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
export function createScatter(
  stores: Stores,
  { repair, gate }: Config<'repair' | 'gate'>,
  points: RebuildFailPoints = NO_REBUILD_POINTS,
): (saleId: string, order: ScatterOrder) => Promise<Scattered> {
  const { ledger, book, ...others } = portsOf(stores);
  const cache = createSaleCardCache(stores.redis, { ttlMs: gate.cardCacheMs });
  const ports = { ...others, ledger: points.rebuilt(ledger), book: points.raised(book), cache };
  return (saleId, order) => scatterSale(saleId, order, ports, repair);
}

/** Opens what that needs for one piece of work, and closes it again. */
export async function scatterOnce(
  config: Config<'mysql' | 'redis' | 'repair' | 'gate'>,
  log: Log,
  { saleId, ...order }: ScatterOrder & { readonly saleId: string },
): Promise<Scattered> {
  const redis = await openRedis(config.redis, log);
  const mysql = openMysqlPool(config.mysql);
  try {
    return await createScatter({ redis, mysql, log }, config)(saleId, order);
  } finally {
    await redis.close();
    await mysql.close();
  }
}

function portsOf({ redis, mysql, log }: Stores) {
  const { agedOrders } = createReconcileBook(mysql);
  const { gate } = createSaleLedger(redis);
  return {
    ledger: { ...createRepairLedger(redis), gate },
    book: { ...createRepairBook(mysql), agedOrders },
    sales: createSaleBook(mysql),
    ...{ clock, log },
  };
}
