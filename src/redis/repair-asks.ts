import type { RepairAsks } from '../core/ports/repair-stores.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { REPAIR_ASKS_KEY } from './keys.js';

/** Sales that were asked for. In a cluster the key has a server of its own: while that is down, nobody can ask. */
export function createRepairAsks({ redis }: Pick<RedisConnection, 'redis'>): RepairAsks {
  return {
    async askForRepair(saleId): Promise<void> {
      await redis.sadd(REPAIR_ASKS_KEY, saleId).catch(() => undefined);
    },
    asked: (max) =>
      asOperationalError('read which sales were asked for', () => redis.srandmember(REPAIR_ASKS_KEY, max)),
    async answered(saleId): Promise<void> {
      await asOperationalError('forget that a sale was asked for', () => redis.srem(REPAIR_ASKS_KEY, saleId));
    },
  };
}
