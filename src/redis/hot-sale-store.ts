import type { HotSale, HotSaleStore } from '../core/ports/hot-sales.js';
import { isSaleId } from '../core/ids.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { HOT_PROCESSES_KEY, hotReportKey } from './keys.js';

/** Api processes whose reports are read; more than this system is made for. */
const PROCESSES_MAX = 1000;
/** Nobody reports any more: the list goes too. */
const LIST_LIFE_MS = 3_600_000;

/** Reports are keys that expire by themselves, and a set of the processes that have one. All share a slot. */
export function createHotSaleStore({ redis }: RedisConnection): HotSaleStore {
  return {
    async report(processId, sales, lifeMs): Promise<void> {
      const text = JSON.stringify(sales.map(({ saleId, perSecond }) => [saleId, perSecond]));
      await asOperationalError('report hot sales', () =>
        Promise.all([
          redis.set(hotReportKey(processId), text, 'PX', lifeMs),
          redis.sadd(HOT_PROCESSES_KEY, processId),
          redis.pexpire(HOT_PROCESSES_KEY, LIST_LIFE_MS),
        ]),
      );
    },

    async withdraw(processId): Promise<void> {
      await asOperationalError('withdraw a report of hot sales', () =>
        Promise.all([redis.unlink(hotReportKey(processId)), redis.srem(HOT_PROCESSES_KEY, processId)]),
      );
    },

    reports: () =>
      asOperationalError('read which sales are hot', async () => {
        const processIds = await redis.srandmember(HOT_PROCESSES_KEY, PROCESSES_MAX);
        if (processIds.length === 0) return [];
        const texts = await redis.mget(processIds.map(hotReportKey));
        const gone = processIds.filter((_, index) => texts[index] === null);
        // one that reports at this moment is back with its next report
        if (gone.length > 0) await redis.srem(HOT_PROCESSES_KEY, ...gone);
        return texts.flatMap((text) => (text === null ? [] : [readReport(text)]));
      }),
  };
}

/** What another release wrote, and cannot be read, counts nothing. */
function readReport(text: string): HotSale[] {
  return parsedList(text).flatMap((one) => {
    const [saleId, perSecond] = Array.isArray(one) ? (one as readonly unknown[]) : [];
    if (!isSaleId(saleId) || typeof perSecond !== 'number' || !(perSecond >= 0)) return [];
    return [{ saleId, perSecond }];
  });
}

function parsedList(text: string): readonly unknown[] {
  try {
    const read: unknown = JSON.parse(text);
    return Array.isArray(read) ? read : [];
  } catch {
    return [];
  }
}
