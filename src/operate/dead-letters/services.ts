import type { Connections, PublishSections } from '../../process/connections.js';
import { createCouponRepository } from '../../mysql/coupon-repository.js';
import { createOrderRepository, createOrderStates } from '../../mysql/order-repository.js';
import { createBatchStore } from '../../redis/batch-store.js';
import { DeadLetterAdmin } from './dead-letter-admin.js';
import { createDeadLetterStore } from './dead-letter-store.js';

export interface DeadLetterServices {
  readonly deadLetters: Pick<DeadLetterAdmin, keyof DeadLetterAdmin>;
}

/** @throws OperationalError redis */
export async function openDeadLetters(
  connections: Connections<'mysql' | 'redis' | PublishSections>,
): Promise<{ readonly deadLetters: DeadLetterAdmin }> {
  const redis = await connections.redis();
  const mysql = connections.mysql();
  const deadLetters = new DeadLetterAdmin({
    deadLetters: createDeadLetterStore(mysql),
    repository: createOrderRepository(mysql),
    store: createBatchStore(redis),
    states: createOrderStates(mysql),
    coupons: createCouponRepository(mysql),
    channel: connections.redrives(),
    deadlines: connections.deadlines(),
    events: connections.events(),
    minter: connections.minter(),
    clock: connections.clock,
  });
  return { deadLetters };
}
