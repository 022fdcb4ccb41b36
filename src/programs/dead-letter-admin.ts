import { randomBytes } from 'node:crypto';
import type { Config, Section } from '../core/config/schema.js';
import { createCouponRepository } from '../mysql/coupon-repository.js';
import { createDeadLetterRepository } from '../mysql/dead-letter-repository.js';
import { createOrderRepository } from '../mysql/order-repository.js';
import { createOrderStates } from '../mysql/order-repository.js';
import { openMysqlPool, type MysqlPool } from '../mysql/pool.js';
import { createWorkerSlots } from '../mysql/worker-slots.js';
import { DeadLetterAdmin } from '../recovery/dead-letters/dead-letter-admin.js';
import { createOrderIdMinter } from '../orders/order-id-minter.js';
import type { Log } from '../core/ports/log.js';
import type { RedisConnection } from '../redis/connection.js';
import { createBatchStore } from '../redis/batch-store.js';
import { lateChannels } from './late-channels.js';
import { openRedis } from './open-redis.js';
import { systemClock as clock } from './system-clock.js';

/** Renewed at every discard, so it need only outlive one. */
const SLOT_LEASE_MS = 60_000;

export interface DeadLetterAdminParts {
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  readonly rocketmq: Section<'rocketmq'>;
  readonly log: Log;
}

/** A desk that takes what few of its visitors need, a producer and a slot for order ids, when they need it. */
export function openDeadLetterAdmin({ redis, mysql, rocketmq, log }: DeadLetterAdminParts): {
  readonly admin: DeadLetterAdmin;
  /** Never rejects. */
  close(): Promise<void>;
} {
  const late = lateChannels(rocketmq, log);
  const [channel, deadlines, events] = [late.redrives(), late.deadlines(), late.events()];
  const owner = `dead-letters-${randomBytes(8).toString('hex')}`;
  const slots = createWorkerSlots(mysql, clock);
  const minter = createOrderIdMinter({ slots, clock, log }, { owner, leaseMs: SLOT_LEASE_MS });
  const admin = new DeadLetterAdmin({
    deadLetters: createDeadLetterRepository(mysql),
    repository: createOrderRepository(mysql),
    store: createBatchStore(redis),
    states: createOrderStates(mysql),
    coupons: createCouponRepository(mysql),
    ...{ channel, deadlines, events, minter, clock },
  });
  return {
    admin,
    async close(): Promise<void> {
      await Promise.all([channel, deadlines, events].map((one) => one.close()));
      await minter.close();
    },
  };
}

/** Opens a desk for one piece of work, as a command line needs it, and closes it again. */
export async function withDeadLetterAdmin<T>(
  config: Config<'mysql' | 'redis' | 'rocketmq'>,
  log: Log,
  work: (admin: DeadLetterAdmin) => Promise<T>,
): Promise<T> {
  const redis = await openRedis(config.redis, log); // first: a pool that is never closed keeps a process alive
  const mysql = openMysqlPool(config.mysql);
  const { admin, close } = openDeadLetterAdmin({ redis, mysql, rocketmq: config.rocketmq, log });
  try {
    return await work(admin);
  } finally {
    await close();
    await redis.close();
    await mysql.close();
  }
}
