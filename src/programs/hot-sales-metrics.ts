import { Gauge, type Registry } from 'prom-client';

/**
 * Shows the sales that are hot right now, each with its rate; one that has cooled down is gone. At most ten of them.
 */
export function showHotSales(
  registry: Registry,
  hottest: () => readonly { readonly saleId: string; readonly perSecond: number }[],
): void {
  new Gauge({
    name: 'seckill_hot_sale_purchases_per_second',
    help: 'Purchases a second in this process, over the last ten seconds, of each sale that is hot.',
    labelNames: ['sale'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { saleId, perSecond } of hottest()) this.set({ sale: saleId }, perSecond);
    },
  });
}
