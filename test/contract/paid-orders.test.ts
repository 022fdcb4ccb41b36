import { expect } from 'chai';
import { composeOrderId } from '../../src/core/order-id.js';
import type { OrderFilter } from '../../src/core/ports/order-search.js';
import { createOrderSearch } from '../../src/mysql/order-search.js';
import { createOrderTransitions } from '../../src/mysql/order-transitions.js';
import { silentLog } from '../helpers/silent-log.js';
import { batchOf, purchasesOf } from '../helpers/sales.js';
import { newSale, ownMysqlWorld, systemClock, type MysqlWorld } from './repository-worlds.js';

const START_MS = Date.UTC(2030, 0, 1);
const at = (minute: number): Date => new Date(START_MS + 60_000 * minute);

const BY_PAYMENT = ['bob', 'eve', 'cid', 'dan', 'ann'];

describe('search for paid orders in MySQL', () => {
  let world: MysqlWorld;
  let saleId: string;
  /** Order ids by buyer. */
  const ids = new Map<string, string>();
  before(async () => {
    world = await ownMysqlWorld();
    const sale = await world.sales.create(newSale({ sku: 'mug', title: 'A mug', stock: 100, limitPerBuyer: 10 }));
    ({ saleId } = sale);
    const batch = batchOf(sale, purchasesOf('ann*2', 'bob', 'cid', 'dan', 'eve', 'fay'));
    const orders = batch.purchases.map((purchase, nth) => {
      const orderId = composeOrderId(START_MS + nth, 9, purchase.userId, nth);
      ids.set(purchase.userId, orderId);
      return { orderId, batch, purchase, failure: null };
    });
    const terms = await world.orders.termsOf([saleId]);
    const plan = { terms, orders, releases: [], oneByOne: new Set<string>(), paymentWindowMs: 900_000 };
    expect((await world.orders.write(plan)).outcome).to.equal('written');
    const { pay } = createOrderTransitions(world.pool, { clock: systemClock, log: silentLog });
    /** Pays at the given minute. The payment is stored 20 ms before the order is paid. */
    const paid = async (user: string, paymentId: string, minute: number, amountCents = 1999): Promise<void> => {
      const orderId = ids.get(user) as string;
      const outcome = await pay(orderId, { paymentId, amountCents });
      await world.pool.execute('UPDATE payments SET created_at = ? WHERE payment_id = ?', [at(minute), paymentId]);
      if (outcome !== 'paid') return;
      const paidAt = new Date(at(minute).getTime() + 20);
      await world.pool.execute('UPDATE orders SET paid_at = ? WHERE id = ?', [paidAt, orderId]);
    };
    await paid('dan', 'dan-1', 4);
    await paid('cid', 'cid-low', 1, 5); // another amount than his order's, so the money is owed back
    await paid('cid', 'cid-1', 3);
    await paid('cid', 'cid-again', 6);
    await paid('bob', 'bob-1', 2);
    await paid('ann', 'ann-1', 5, 3998);
    await paid('eve', 'eve-1', 2);
    await world.cancelOrder(ids.get('fay') as string);
    await paid('fay', 'fay-late', 3);
    // bob and his payment are archived
    const columns =
      'id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, state, reason, one_per_buyer, created_at, updated_at, expires_at, paid_at';
    const bob = ids.get('bob') as string;
    for (const [table, key, names] of [
      ['orders', 'id', columns],
      ['payments', 'order_id', 'payment_id, order_id, amount_cents, created_at'],
    ] as const) {
      await world.pool.execute(
        `INSERT INTO ${table}_archive (${names}) SELECT ${names} FROM ${table} WHERE ${key} = CAST(? AS UNSIGNED)`,
        [bob],
      );
      await world.pool.execute(`DELETE FROM ${table} WHERE ${key} = CAST(? AS UNSIGNED)`, [bob]);
    }
  });
  after(() => world.close());

  async function buyers(filter: OrderFilter, max: number): Promise<string[]> {
    const search = createOrderSearch(world.pool);
    const found: string[] = [];
    let after: string | null = null;
    do {
      const page = await search.page(filter, after, max);
      found.push(...(page?.orders ?? []).map(({ userId }) => userId));
      after = page?.next ?? null;
    } while (after !== null);
    return found;
  }

  it('returns each paid order once, in the order of their payments, for any page size', async () => {
    for (const max of [1, 2, 3, 100]) {
      expect(await buyers({ paidFromMs: START_MS }, max), `${max} per page`).to.deep.equal(BY_PAYMENT);
    }
  });

  it('selects orders by the time at which they became paid, not by the payment time', async () => {
    const minute = (n: number): number => at(n).getTime();
    expect(await buyers({ paidFromMs: minute(3), paidToMs: minute(5) }, 2)).to.deep.equal(['cid', 'dan']);
    expect(await buyers({ paidFromMs: minute(3) + 20, paidToMs: minute(4) + 20 }, 2)).to.deep.equal(['cid']);
    expect(await buyers({ paidFromMs: minute(3) + 21, paidToMs: minute(4) + 21 }, 2)).to.deep.equal(['dan']);
    expect(await buyers({ paidFromMs: minute(7) }, 2), 'a second payment pays nothing').to.deep.equal([]);
    // adjacent spans together contain each order once
    const spans = [0, 1, 2, 3, 4, 5].map((n) => buyers({ paidFromMs: minute(n), paidToMs: minute(n + 1) }, 2));
    expect((await Promise.all(spans)).flat()).to.have.members(BY_PAYMENT);
  });

  it('combines the time span with buyer, sale, state and time of the order', async () => {
    const paidFromMs = START_MS;
    expect(await buyers({ paidFromMs, userId: 'cid' }, 2)).to.deep.equal(['cid']);
    expect(await buyers({ paidFromMs, saleId: '999999999' }, 2)).to.deep.equal([]);
    expect(await buyers({ paidFromMs, saleId, state: 'paid' }, 2)).to.have.length(5);
    expect(await buyers({ paidFromMs, state: 'cancelled' }, 2)).to.deep.equal([]);
    expect(await buyers({ paidFromMs, fromMs: START_MS + 2, toMs: START_MS + 4 }, 2)).to.deep.equal(['cid', 'dan']);
  });

  it('names the sku, the title and the payment of an order, even if it is archived', async () => {
    const search = createOrderSearch(world.pool);
    const found = await search.page({ saleId }, null, 100);
    const details = await search.detailsOf(found?.orders ?? []);
    const shown = [...ids].map(([user, id]) => [user, details.get(id)?.paymentId]);
    expect(shown).to.have.deep.members([
      ['ann', 'ann-1'],
      ['bob', 'bob-1'],
      ['cid', 'cid-1'],
      ['dan', 'dan-1'],
      ['eve', 'eve-1'],
      ['fay', null],
    ]);
    expect([...details.values()].every(({ sku, title }) => sku === 'mug' && title === 'A mug')).to.equal(true);
  });

  it('refuses a cursor that no page returned', async () => {
    const search = createOrderSearch(world.pool);
    for (const after of ['x', '7', '7.', '.p', '7.a b', '-1.p']) {
      expect(await search.page({ paidFromMs: START_MS }, after, 1), after).to.equal(null);
    }
  });
});
