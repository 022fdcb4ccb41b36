import { Gauge, type Registry } from 'prom-client';

export type ScheduleMetrics = ReturnType<typeof createScheduleMetrics>;

/** More sales at once are not named; an alert needs one. */
const SALES_MAX = 100;

/** Metrics of the keeper about sales that it runs. */
export function createScheduleMetrics(registry: Registry) {
  const missing = new Gauge({
    name: 'seckill_sale_not_ready',
    help: 'Things that are missing for a sale that the keeper opens soon, or should have opened. Alert on any.',
    labelNames: ['sale'],
    registers: [registry],
  });
  return {
    /** @param sales each with the number of things that it lacks; all others lack nothing */
    notReady(sales: readonly (readonly [saleId: string, missing: number])[]): void {
      missing.reset();
      for (const [saleId, things] of sales.slice(0, SALES_MAX)) missing.set({ sale: saleId }, things);
    },
  };
}
