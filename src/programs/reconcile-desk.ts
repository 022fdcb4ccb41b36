import { randomBytes } from 'node:crypto';
import type { Config, Section } from '../core/config/schema.js';
import { createCompensationBook } from '../mysql/compensation-book.js';
import { createOrderBook } from '../mysql/order-book.js';
import { createOutbox } from '../mysql/outbox.js';
import { openMysqlPool, type MysqlPool } from '../mysql/pool.js';
import { createReconcileBook } from '../mysql/reconcile-book.js';
import { createReconcileRuns } from '../mysql/reconcile-runs.js';
import { createSaleBook } from '../mysql/sale-book.js';
import { createWorkerSlots } from '../mysql/worker-slots.js';
import { createOrderIdMinter } from '../orders/order-id-minter.js';
import type { Log } from '../core/ports/log.js';
import type { OrderBook } from '../core/ports/order-book.js';
import type { RedriveChannel } from '../core/ports/purchase-channel.js';
import { ReconcileDesk } from '../recovery/reconcile/reconcile-desk.js';
import type { RedisConnection } from '../redis/connection.js';
import { createReconcileLedger } from '../redis/reconcile-ledger.js';
import { createRepairLedger } from '../redis/repair-ledger.js';
import { createSettlementLedger } from '../redis/settlement-ledger.js';
import { lateChannels } from './late-channels.js';
import { openRedis } from './open-redis.js';
import { systemClock as clock } from './system-clock.js';

/** Renewed whenever a purchase is given up, so it need only outlive one. */
const SLOT_LEASE_MS = 60_000;

export interface ReconcileDeskParts {
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  readonly channel: RedriveChannel;
  readonly options: Section<'reconcile'>;
  readonly log: Log;
  /** Wraps the book that a purchase is given up in. */
  readonly wrapBook?: (book: OrderBook) => OrderBook;
}

/** A desk that takes a slot for order ids when it has to give a purchase up. */
export function openReconcileDesk({
  redis,
  mysql,
  channel,
  options,
  log,
  wrapBook = (book) => book,
}: ReconcileDeskParts): {
  readonly desk: ReconcileDesk;
  /** Never rejects. */
  close(): Promise<void>;
} {
  const owner = `reconcile-${randomBytes(8).toString('hex')}`;
  const slots = createWorkerSlots(mysql, clock);
  const minter = createOrderIdMinter({ slots, clock, log }, { owner, leaseMs: SLOT_LEASE_MS });
  const desk = new ReconcileDesk(
    {
      ledger: { ...createSettlementLedger(redis), ...createReconcileLedger(redis), ...createRepairLedger(redis) },
      book: createReconcileBook(mysql),
      jobs: createCompensationBook(mysql),
      runs: createReconcileRuns(mysql),
      sales: createSaleBook(mysql),
      outbox: createOutbox(mysql),
      fail: { book: wrapBook(createOrderBook(mysql)), minter, clock },
      ...{ channel, clock, log },
    },
    options,
  );
  return { desk, close: () => minter.close() };
}

/** Opens a desk for one piece of work, as a command line needs it, and closes it again. */
export async function withReconcileDesk<T>(
  config: Config<'mysql' | 'redis' | 'rocketmq' | 'reconcile'>,
  log: Log,
  work: (desk: ReconcileDesk) => Promise<T>,
): Promise<T> {
  const redis = await openRedis(config.redis, log); // first: a pool that is never closed keeps a process alive
  const mysql = openMysqlPool(config.mysql);
  const channel = lateChannels(config.rocketmq, log).redrives();
  const { desk, close } = openReconcileDesk({ redis, mysql, channel, options: config.reconcile, log });
  try {
    return await work(desk);
  } finally {
    await close();
    await channel.close();
    await redis.close();
    await mysql.close();
  }
}
