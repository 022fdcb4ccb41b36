import { Gauge, type Registry } from 'prom-client';
import type { HotSale } from '../core/ports/hot-sales.js';

export type SaleMetrics = ReturnType<typeof createSaleMetrics>;

/** Metrics of the keeper about sales that sell. */
export function createSaleMetrics(registry: Registry) {
  const hot = new Gauge({
    name: 'seckill_hot_sale_purchases_per_second',
    help: 'Attempts to buy per second, all apis together, over the last ten seconds, of each sale that is hot.',
    labelNames: ['sale'],
    registers: [registry],
  });
  return {
    /** @param sales all that are hot */
    hotSales(sales: readonly HotSale[]): void {
      hot.reset();
      for (const { saleId, perSecond } of sales) hot.set({ sale: saleId }, perSecond);
    },
  };
}
