import { expect } from 'chai';
import { Registry } from 'prom-client';
import { OperationalError } from '../../../src/core/errors.js';
import type { SaleRepository, SaleFilter } from '../../../src/core/ports/sale-repository.js';
import type { StockStore, StoredSale } from '../../../src/core/ports/stock-store.js';
import type { Sale } from '../../../src/core/sale.js';
import { createSaleMetrics } from '../../../src/sales/metrics.js';
import { OPEN_SALES_MAX, watchOpenSales } from '../../../src/sales/watch-open-sales.js';
import { saleOf } from '../../helpers/sales.js';
import { partial } from '../../helpers/partial.js';

describe('keeper: watch-open-sales', () => {
  let isOurs: boolean;
  let open: Sale[];
  let stored: Record<string, (Partial<StoredSale> | null)[]>;
  let asked: SaleFilter[];
  let fault: OperationalError | null;
  let awayFor: string;
  let registry: Registry;
  let runOnce: () => Promise<unknown>;
  beforeEach(() => {
    [isOurs, open, stored, asked, fault, awayFor] = [true, [], {}, [], null, ''];
    registry = new Registry();
    const ports = {
      leases: { hold: async () => isOurs },
      sales: partial<SaleRepository>({
        list: async (filter) => {
          if (fault !== null) throw fault;
          asked.push(filter);
          return open;
        },
      }),
      store: partial<StockStore>({
        readSale: async ({ saleId, bucket }) => {
          if (saleId === awayFor) throw new OperationalError('redis', 'no answer', { retryable: true });
          return (stored[saleId]?.[bucket] ?? null) as StoredSale | null;
        },
      }),
      metrics: createSaleMetrics(registry),
    };
    ({ runOnce } = watchOpenSales(ports, { owner: 'ann', everyMs: 5_000 }));
  });
  const published = async (): Promise<string[]> =>
    (await registry.metrics()).split('\n').filter((line) => line.startsWith('seckill_sale_units'));
  const sale = (saleId: string, parts: Partial<Sale>): Sale => saleOf({ saleId, stock: 100, ...parts }, 0);

  it('publishes the stock of a limited number of selling sales over all buckets', async () => {
    open = [sale('7', { sold: 30, buckets: 2 }), sale('8', { sold: 0, buckets: 1 })];
    stored = {
      7: [
        { state: 'open', unitsLeft: 40 },
        { state: 'open', unitsLeft: 20 },
      ],
      8: [{ state: 'open', unitsLeft: 100 }],
    };
    await runOnce();
    expect(await published()).to.deep.equal([
      'seckill_sale_units{sale="7",units="stock"} 100',
      'seckill_sale_units{sale="7",units="sold"} 30',
      'seckill_sale_units{sale="7",units="left"} 60',
      'seckill_sale_units{sale="7",units="held"} 10',
      'seckill_sale_units{sale="8",units="stock"} 100',
      'seckill_sale_units{sale="8",units="sold"} 0',
      'seckill_sale_units{sale="8",units="left"} 100',
      'seckill_sale_units{sale="8",units="held"} 0',
    ]);
    expect(asked).to.deep.equal([{ states: ['open', 'paused'], max: OPEN_SALES_MAX }]);
  });

  it('publishes the figures of MySQL for a sale that Redis lacks or is repairing', async () => {
    open = [sale('7', { sold: 30, buckets: 2 }), sale('8', { buckets: 1, sold: 0 })];
    stored = { 7: [{ state: 'open', unitsLeft: 40 }, null], 8: [{ state: 'repair', unitsLeft: 1 }] };
    await runOnce();
    expect(await published()).to.deep.equal([
      'seckill_sale_units{sale="7",units="stock"} 100',
      'seckill_sale_units{sale="7",units="sold"} 30',
      'seckill_sale_units{sale="8",units="stock"} 100',
      'seckill_sale_units{sale="8",units="sold"} 0',
    ]);
    open = [];
    await runOnce();
    expect(await published()).to.deep.equal([]);
  });

  it('asks and shows nothing while another keeper has the lease', async () => {
    open = [sale('8', { buckets: 1, sold: 0 })];
    stored = { 8: [{ state: 'open', unitsLeft: 1 }] };
    await runOnce();
    expect(await published()).to.have.length(4);
    isOurs = false;
    await runOnce();
    expect(await published()).to.deep.equal([]);
    expect(asked).to.have.length(1);
  });

  it('hides the sales of a silent Redis server, and everything while MySQL is down', async () => {
    open = [sale('7', { buckets: 1, sold: 0 }), sale('8', { buckets: 1, sold: 0 })];
    stored = { 7: [{ state: 'open', unitsLeft: 2 }], 8: [{ state: 'open', unitsLeft: 1 }] };
    awayFor = '8';
    await runOnce();
    expect(await published()).to.include('seckill_sale_units{sale="7",units="left"} 2');
    expect((await published()).filter((line) => line.includes('sale="8"'))).to.deep.equal([
      'seckill_sale_units{sale="8",units="stock"} 100',
      'seckill_sale_units{sale="8",units="sold"} 0',
    ]);
    fault = new OperationalError('mysql', 'no answer', { retryable: true });
    expect(await runOnce().catch((error: unknown) => error)).to.equal(fault);
    expect(await published(), 'no old figures').to.deep.equal([]);
  });
});
