import type { RepairAsks } from '../core/ports/repair-stores.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { REPAIR_ASKS_KEY } from './keys.js';

/** A single server of a cluster has the key. While that server is down, no repair can be requested. */
export function createRepairAsks(redis: RedisConnection['redis']): RepairAsks {
  return {
    async askForRepair(saleId): Promise<void> {
      await redis.sadd(REPAIR_ASKS_KEY, saleId).catch(() => undefined);
    },
    asked: (max) => asOperationalError('read which sales need a repair', () => redis.srandmember(REPAIR_ASKS_KEY, max)),
    async answered(saleId): Promise<void> {
      await asOperationalError('forget that a sale needs a repair', () => redis.srem(REPAIR_ASKS_KEY, saleId));
    },
  };
}
