import type { Registry } from 'prom-client';
import { metricMakers } from '../../core/metric-makers.js';

export type ScheduleMetrics = ReturnType<typeof createScheduleMetrics>;

/** Maximum number of sales named. A single sale is enough for an alert. */
const SALES_MAX = 100;

export function createScheduleMetrics(registry: Registry) {
  const { gauge } = metricMakers(registry);
  const missing = gauge(
    'seckill_sale_not_ready',
    'Number of problems of a sale that the keeper opens soon, or should have opened. Alert on any.',
    ['sale'],
  );
  return {
    /** @param sales that are not ready, with the number of things missing */
    notReady(sales: readonly (readonly [saleId: string, missing: number])[]): void {
      missing.reset();
      for (const [saleId, things] of sales.slice(0, SALES_MAX)) missing.set({ sale: saleId }, things);
    },
  };
}
