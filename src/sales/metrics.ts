import type { Registry } from 'prom-client';
import { metricMakers } from '../core/metric-makers.js';
import type { HotSale } from '../core/ports/hot-sales.js';
import { heldUnits } from './sale-units.js';
import type { SaleUnits } from './watch-open-sales.js';

export type SaleMetrics = ReturnType<typeof createSaleMetrics>;

export function createSaleMetrics(registry: Registry) {
  const { gauge } = metricMakers(registry);
  const hot = gauge(
    'seckill_hot_sale_purchases_per_second',
    'Purchase attempts per second of each hot sale, over all apis and the last ten seconds.',
    ['sale'],
  );
  const units = gauge(
    'seckill_sale_units',
    'Units of each running sale: stock, left, sold (in MySQL), held (left Redis, not in MySQL yet). One keeper reports them.',
    ['sale', 'units'],
  );
  return {
    /** @param sales all sales to publish; a missing sale has ended */
    openSales(sales: readonly SaleUnits[]): void {
      units.reset();
      for (const { saleId: sale, stock, sold, left } of sales) {
        units.set({ sale, units: 'stock' }, stock);
        units.set({ sale, units: 'sold' }, sold);
        if (left === null) continue;
        units.set({ sale, units: 'left' }, left);
        units.set({ sale, units: 'held' }, heldUnits({ stock, sold }, left));
      }
    },
    /** @param sales all hot sales */
    hotSales(sales: readonly HotSale[]): void {
      hot.reset();
      for (const { saleId, perSecond } of sales) hot.set({ sale: saleId }, perSecond);
    },
  };
}
