import type { HotSale, HotSaleStore } from '../core/ports/hot-sales.js';
import { isSaleId } from '../core/ids.js';
import { jsonOrNull } from '../core/parse-json.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { HOT_PROCESSES_KEY, hotReportKey } from './keys.js';
import { createLiveReports } from './live-reports.js';

export function createHotSaleStore({ redis }: RedisConnection): HotSaleStore {
  const reports = createLiveReports(redis, HOT_PROCESSES_KEY, hotReportKey);
  return {
    async report(processId, sales, lifeMs): Promise<void> {
      const text = JSON.stringify(sales.map(({ saleId, perSecond }) => [saleId, perSecond]));
      await asOperationalError('report hot sales', () => reports.put(processId, text, lifeMs));
    },

    async withdraw(processId): Promise<void> {
      await asOperationalError('withdraw a report of hot sales', () => reports.remove(processId));
    },

    reports: () =>
      asOperationalError('read which sales are hot', async () =>
        (await reports.live()).map(([, text]) => readReport(text)),
      ),
  };
}

/** Ignores an unreadable report, such as that of another release. */
function readReport(text: string): HotSale[] {
  const read = jsonOrNull(text);
  if (!Array.isArray(read)) return [];
  return (read as readonly unknown[]).flatMap((one) => {
    const [saleId, perSecond] = Array.isArray(one) ? (one as readonly unknown[]) : [];
    if (!isSaleId(saleId) || typeof perSecond !== 'number' || !(perSecond >= 0)) return [];
    return [{ saleId, perSecond }];
  });
}
