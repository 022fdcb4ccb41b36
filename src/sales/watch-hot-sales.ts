import type { Job } from '../core/job.js';
import type { HotSale, HotSaleStore } from '../core/ports/hot-sales.js';
import type { SaleMetrics } from './metrics.js';

/** Maximum number of sales named, because each is a label of a metric. */
export const HOT_SALES_MAX = 10;

/** Returns the sales that are hot over all apis, hottest first, at most HOT_SALES_MAX. */
export function hotSalesOf(reports: readonly (readonly HotSale[])[], perSecondMin: number): HotSale[] {
  const sum = new Map<string, number>();
  for (const { saleId, perSecond } of reports.flat()) sum.set(saleId, (sum.get(saleId) ?? 0) + perSecond);
  return [...sum]
    .map(([saleId, perSecond]) => ({ saleId, perSecond }))
    .filter(({ perSecond }) => perSecond >= perSecondMin)
    .sort((a, b) => b.perSecond - a.perSecond)
    .slice(0, HOT_SALES_MAX);
}

/** Publishes hot sales with their rates. Removes sales that have cooled down. */
export function watchHotSales(
  { store, metrics }: { readonly store: HotSaleStore; readonly metrics: SaleMetrics },
  { perSecond }: { readonly perSecond: number },
): Job {
  return {
    name: 'watch-hot-sales',
    async runOnce(): Promise<void> {
      metrics.hotSales(hotSalesOf(await store.reports(), perSecond));
    },
  };
}
