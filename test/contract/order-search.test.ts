import { expect } from 'chai';
import { composeOrderId } from '../../src/core/order-id.js';
import type { Order } from '../../src/core/order.js';
import type { OrderFilter } from '../../src/core/ports/order-search.js';
import type { Purchase } from '../../src/core/purchase.js';
import { createOrderSearch } from '../../src/mysql/order-search.js';
import { batchOf, purchasesOf } from '../helpers/sales.js';
import { newSale, ownMysqlWorld } from './repository-worlds.js';
import { useWorld } from './on-each-world.js';

/** So small that matches span several pages of the primary key. */
const READ_MAX = 3;

describe('contract OrderSearch on mysql', () => {
  const world = useWorld(async () => {
    const own = await ownMysqlWorld();
    return { ...own, search: createOrderSearch(own.pool, READ_MAX) };
  });
  const fromMs = Date.now() - 1_000_000;
  const all: Order[] = [];
  before(async () => {
    for (let at = 0; at < 3; at++) {
      const sale = await world.sales.create(
        newSale({ stock: 100, limitPerBuyer: 10, opensAtMs: fromMs, currency: at === 0 ? 'USD' : 'EUR' }),
      );
      const [first, ...others] = purchasesOf('ann/k1', 'bob/k1', 'ann/k2', 'cid/k1', 'ann/k3');
      const batch = batchOf(sale, [{ ...(first as Purchase), metadata: { cart: '42' } }, ...others]);
      const orders = batch.purchases.map((purchase, index) => ({
        orderId: composeOrderId(fromMs + 1000 * (3 * index + at), 9, purchase.userId, index),
        batch,
        purchase,
        failure: purchase.userId === 'cid' ? ('discarded' as const) : null,
      }));
      const terms = await world.orders.termsOf([sale.saleId]);
      const plan = { terms, orders, releases: [], oneByOne: new Set<string>(), paymentWindowMs: 900_000 };
      expect((await world.orders.write(plan)).outcome).to.equal('written');
      for (const { orderId } of orders) all.push((await world.orders.findOrder(orderId)) as Order);
    }
    await world.cancelOrder(all[0]?.orderId ?? '');
    all[0] = (await world.orders.findOrder(all[0]?.orderId ?? '')) as Order;
  });

  async function pages(filter: OrderFilter, max: number): Promise<Order[]> {
    const found: Order[] = [];
    let after: string | null = null;
    do {
      const page = await world.search.page(filter, after, max);
      expect(page?.orders.length).to.be.at.most(max);
      found.push(...(page?.orders ?? []));
      after = page?.next ?? null;
    } while (after !== null);
    return found;
  }
  const byId = (a: Order, b: Order): number => (BigInt(a.orderId) < BigInt(b.orderId) ? -1 : 1);

  it('returns the currency of orders, and omits an unknown order or an invalid id', async () => {
    const some = all.map(({ orderId }) => orderId);
    const currencies = await world.search.currenciesOf([...some, '7', 'x', some[0] ?? '']);
    const usd = all[0]?.saleId;
    expect([...currencies].sort()).to.deep.equal(
      all.map(({ orderId, saleId }) => [orderId, saleId === usd ? 'USD' : 'EUR']).sort(),
    );
    expect((await world.search.currenciesOf([])).size).to.equal(0);
  });

  it('finds every matching order once for any page size, in order of time', async () => {
    const saleId = all[7]?.saleId ?? '';
    const half = { fromMs: fromMs + 4000, toMs: fromMs + 9000 };
    for (const max of [1, 2, 4, 100]) {
      expect(await pages({ fromMs }, max)).to.deep.equal([...all].sort(byId));
      expect(await pages({ saleId }, max)).to.deep.equal(all.filter((order) => order.saleId === saleId).sort(byId));
      const failed = all.filter(({ state }) => state === 'failed').sort(byId);
      expect(await pages({ fromMs, state: 'failed' }, max)).to.deep.equal(failed);
      expect(await pages({ saleId, state: 'paid' }, max)).to.deep.equal([]);
      expect(await pages({ saleId: '999999999' }, max), 'no such sale').to.deep.equal([]);
      const at = (order: Order): number => all.indexOf(order);
      const mintedAt = (order: Order): number => fromMs + 1000 * (3 * (at(order) % 5) + Math.floor(at(order) / 5));
      const inTime = all.filter((order) => mintedAt(order) >= half.fromMs && mintedAt(order) < half.toMs);
      expect(await pages(half, max)).to.deep.equal(inTime.sort(byId));
      const ofSale = inTime.filter((order) => order.saleId === saleId);
      expect(await pages({ saleId, ...half }, max), 'of a sale').to.deep.equal(ofSale.sort(byId));
    }
  });

  it('finds the orders of a buyer, newest first, and the orders of a sale or state', async () => {
    const ann = all.filter(({ userId }) => userId === 'ann').sort((a, b) => byId(b, a));
    for (const max of [1, 2, 100]) {
      expect(await pages({ userId: 'ann' }, max)).to.deep.equal(ann);
      expect(await pages({ userId: 'ann', state: 'cancelled' }, max)).to.deep.equal([all[0]]);
      const saleId = all[7]?.saleId ?? '';
      expect(await pages({ userId: 'ann', saleId }, max)).to.deep.equal(ann.filter((order) => order.saleId === saleId));
      expect(await pages({ userId: 'nobody' }, max)).to.deep.equal([]);
    }
  });

  it('counts an order as paid while only a part of it is refunded', async () => {
    const { orderId, saleId, amountCents } = all[1] as Order; // of bob
    const set = 'UPDATE orders SET state = ?, after_paid = ?, refunded_cents = ? WHERE id = CAST(? AS UNSIGNED)';
    for (const [afterPaid, refunded, isPaid] of [
      [null, null, true],
      ['refunded', amountCents - 1, true],
      ['refunded', amountCents, false],
      ['refunding', 1, false],
    ] as const) {
      await world.pool.execute(set, ['paid', afterPaid, refunded, orderId]);
      for (const filter of [{ saleId }, { userId: 'bob' }, { fromMs }]) {
        const found = (await pages({ ...filter, state: 'paid' }, 1)).map((order) => order.orderId);
        expect(found, `${afterPaid} ${refunded}`).to.deep.equal(isPaid ? [orderId] : []);
      }
    }
    await world.pool.execute(set, ['pending_payment', null, null, orderId]);
  });

  it('refuses a cursor that no page returned', async () => {
    for (const after of ['x', '7.k1', '-1', '']) {
      expect(await world.search.page({ userId: 'ann' }, after, 1), after).to.equal(null);
      expect(await world.search.page({ fromMs }, after, 1), after).to.equal(null);
      expect(await world.search.page({ saleId: '7' }, after, 1), after).to.equal(null);
    }
  });
});
