import type { Connections, PublishSections } from '../../process/connections.js';
import { createCouponRepository } from '../../mysql/coupon-repository.js';
import { createOrderRepository, createOrderStates } from '../../mysql/order-repository.js';
import { createBatchStore } from '../../redis/batch-store.js';
import { createDeadLetterAdmin, type DeadLetterAdmin } from './dead-letter-admin.js';
import { createDeadLetterStore } from './dead-letter-store.js';

export interface DeadLetterServices {
  readonly deadLetters: DeadLetterAdmin;
}

/** @throws OperationalError redis */
export async function openDeadLetters(
  connections: Connections<'mysql' | 'redis' | PublishSections>,
): Promise<DeadLetterServices> {
  const redis = await connections.redis();
  const mysql = connections.mysql();
  const deadLetters = createDeadLetterAdmin({
    deadLetters: createDeadLetterStore(mysql),
    repository: createOrderRepository(mysql),
    store: createBatchStore(redis),
    dueOf: createOrderStates(mysql).dueOf,
    withoutCoupon: createCouponRepository(mysql).withoutCoupon,
    channel: connections.redrives(),
    deadlines: connections.deadlines(),
    events: connections.events(),
    minter: connections.minter(),
    clock: connections.clock,
  });
  return { deadLetters };
}
