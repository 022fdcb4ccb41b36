import { randomBytes } from 'node:crypto';
import type { Config, Section } from '../core/config/schema.js';
import { createCompensationRepository } from '../mysql/compensation-repository.js';
import { createOrderRepository } from '../mysql/order-repository.js';
import { createOutbox } from '../mysql/outbox.js';
import { openMysqlPool, type MysqlPool } from '../mysql/pool.js';
import { createReconcileRepository } from '../mysql/reconcile-repository.js';
import { createReconcileRuns } from '../mysql/reconcile-runs.js';
import { createSaleRepository } from '../mysql/sale-repository.js';
import { createWorkerSlots } from '../mysql/worker-slots.js';
import { createOrderIdMinter } from '../orders/order-id-minter.js';
import type { Log } from '../core/ports/log.js';
import type { OrderRepository } from '../core/ports/order-repository.js';
import type { RedriveChannel } from '../core/ports/channels.js';
import { ReconcileAdmin } from '../recovery/reconcile/reconcile-admin.js';
import type { RedisConnection } from '../redis/connection.js';
import { createReconcileStore } from '../redis/reconcile-store.js';
import { createRepairStore } from '../redis/repair-store.js';
import { createBatchStore } from '../redis/batch-store.js';
import { lateChannels } from './late-channels.js';
import { openRedis } from './open-redis.js';
import { systemClock as clock } from './system-clock.js';

/** Renewed whenever a purchase is given up, so it need only outlive one. */
const SLOT_LEASE_MS = 60_000;

export interface ReconcileAdminParts {
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  readonly channel: RedriveChannel;
  readonly options: Section<'reconcile'>;
  readonly log: Log;
  /** Wraps the book that a purchase is given up in. */
  readonly wrapRepository?: (repository: OrderRepository) => OrderRepository;
}

/** A desk that takes a slot for order ids when it has to give a purchase up. */
export function openReconcileAdmin({
  redis,
  mysql,
  channel,
  options,
  log,
  wrapRepository = (repository) => repository,
}: ReconcileAdminParts): {
  readonly admin: ReconcileAdmin;
  /** Never rejects. */
  close(): Promise<void>;
} {
  const owner = `reconcile-${randomBytes(8).toString('hex')}`;
  const slots = createWorkerSlots(mysql, clock);
  const minter = createOrderIdMinter({ slots, clock, log }, { owner, leaseMs: SLOT_LEASE_MS });
  const admin = new ReconcileAdmin(
    {
      store: { ...createBatchStore(redis), ...createReconcileStore(redis), ...createRepairStore(redis) },
      repository: createReconcileRepository(mysql),
      jobs: createCompensationRepository(mysql),
      runs: createReconcileRuns(mysql),
      sales: createSaleRepository(mysql),
      outbox: createOutbox(mysql),
      fail: { repository: wrapRepository(createOrderRepository(mysql)), minter, clock },
      ...{ channel, clock, log },
    },
    options,
  );
  return { admin, close: () => minter.close() };
}

/** Opens a desk for one piece of work, as a command line needs it, and closes it again. */
export async function withReconcileAdmin<T>(
  config: Config<'mysql' | 'redis' | 'rocketmq' | 'reconcile'>,
  log: Log,
  work: (admin: ReconcileAdmin) => Promise<T>,
): Promise<T> {
  const redis = await openRedis(config.redis, log); // first: a pool that is never closed keeps a process alive
  const mysql = openMysqlPool(config.mysql);
  const channel = lateChannels(config.rocketmq, log).redrives();
  const { admin, close } = openReconcileAdmin({ redis, mysql, channel, options: config.reconcile, log });
  try {
    return await work(admin);
  } finally {
    await close();
    await channel.close();
    await redis.close();
    await mysql.close();
  }
}
