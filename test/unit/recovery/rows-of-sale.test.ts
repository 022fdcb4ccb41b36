import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import type { AgedOrder, OrderCursor, OrderPage } from '../../../src/core/ports/reconcile-repository.js';
import type { Sale } from '../../../src/core/sale.js';
import { rowsOfSale } from '../../../src/recovery/rows-of-sale.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { saleOf } from '../../helpers/sales.js';

const SALE = saleOf({ sold: 3 });
const order = (orderId: string): AgedOrder => ({
  orderId,
  userId: `u${orderId}`,
  requestId: 'k1',
  batchId: 'b',
  quantity: 1,
  state: 'paid',
  reason: null,
  ageMs: 0,
});

/** Three pages of one order each. Some pages have no note of their order, and some calls fail. */
class Orders {
  failures = 0;
  searched = 0;
  noted = ['1', '2', '3'];
  readonly pages: string[] = [];
  soldAfter = SALE.sold;

  async orderPage(_saleId: string, from: OrderCursor | null): Promise<OrderPage> {
    const at = from === null ? 0 : this.noted.indexOf(from.readTo) + 1;
    const orderId = this.noted[at] as string;
    this.pages.push(orderId);
    if (orderId === '2' && this.failures-- > 0) throw new OperationalError('mysql', 'gone', { retryable: true });
    const next = at + 1 < this.noted.length ? { afterFirst: orderId, readTo: orderId } : null;
    return { rows: [order(orderId)], next };
  }

  async *unlistedOrders(): AsyncGenerator<AgedOrder[]> {
    this.searched++;
    yield ['1', '2', '3'].filter((orderId) => !this.noted.includes(orderId)).map(order);
  }

  findSale = async (): Promise<Sale> => ({ ...SALE, sold: this.soldAfter });
}

describe('rows of a sale', () => {
  const clock = new ManualClock();
  let orders: Orders;
  beforeEach(() => (orders = new Orders()));

  async function read(sale = SALE): Promise<string[]> {
    const found: string[] = [];
    for await (const rows of rowsOfSale(sale, { repository: orders, clock }))
      found.push(...rows.map((row) => row.orderId));
    return found;
  }

  it('read all pages, and search nothing if the pages add up to `sold`', async () => {
    expect(await read()).to.deep.equal(['1', '2', '3']);
    expect(orders.searched).to.equal(0);
  });

  it('read again only the page that MySQL refused for a moment', async () => {
    orders.failures = 3;
    expect(await read()).to.deep.equal(['1', '2', '3']);
    expect(orders.pages).to.deep.equal(['1', '2', '2', '2', '2', '3']);
  });

  it('throw after a lasting outage', async () => {
    orders.failures = 100;
    const startedMs = clock.nowMs();
    expect(await read().catch((error: Error) => error)).to.be.instanceOf(OperationalError);
    expect(clock.nowMs() - startedMs).to.be.within(5_000, 30_000);
  });

  it('search for rows that no writer noted if `sold` exceeds the pages', async () => {
    orders.noted = ['1', '3'];
    expect(await read()).to.deep.equal(['1', '3', '2']);
  });

  it('search if `sold` moved but exceeded the found rows before and after', async () => {
    orders.noted = ['1', '3'];
    orders.soldAfter = 4;
    expect(await read()).to.deep.equal(['1', '3', '2']);
  });

  it('are not searched if an order ended or was written between the two reads of `sold`', async () => {
    orders.noted = ['1', '3'];
    orders.soldAfter = 2;
    expect(await read()).to.deep.equal(['1', '3']);
    expect(orders.searched).to.equal(0);
  });
});
