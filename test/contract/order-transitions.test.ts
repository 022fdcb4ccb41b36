import { expect } from 'chai';
import type { Order, OrderState } from '../../src/core/order.js';
import { homeBucket } from '../../src/core/bucket.js';
import { DUE_MS, LATER_MS, MOVES_WORLDS, ordersIn, paymentOf, type MovesWorld } from './order-transitions-worlds.js';
import { onEachWorld } from './on-each-world.js';

const names = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `u${index}/k*${1 + (index % 3)}`);

onEachWorld<MovesWorld>('contract OrderTransitions', MOVES_WORLDS, (world) => {
  const stateOf = async ({ orderId }: Order): Promise<OrderState | undefined> =>
    (await world.orders.findOrder(orderId))?.state;
  const soldOf = async (saleId: string): Promise<number | undefined> => (await world.sales.find(saleId))?.sold;
  const movesOf = async ({ orderId }: Order): Promise<string[]> =>
    (await world.moved()).filter(({ orders }) => orders.includes(orderId)).map(({ move }) => move);
  const releasesOf = async ({ orderId }: Order) =>
    (await world.releases()).filter((release) => release.orderId === orderId);
  const oneOrder = async (paymentWindowMs?: number): Promise<Order> => {
    const parts = paymentWindowMs === undefined ? {} : { paymentWindowMs };
    return (await ordersIn(world, ['ann/k*2'], parts)).orders[0] as Order;
  };
  const refundOf = async (paymentId: string): Promise<string | null | undefined> =>
    (await world.payments()).find((payment) => payment.paymentId === paymentId)?.refund;

  it('pay: pays the order once, keeps its units sold and returns nothing', async () => {
    const order = await oneOrder();
    const payment = paymentOf(order);
    expect(await world.transitions.pay(order.orderId, payment)).to.equal('paid');

    const paid = await world.orders.findOrder(order.orderId);
    expect(paid).to.include({ state: 'paid' });
    expect(paid?.paidAtMs).to.be.a('number');
    expect(await soldOf(order.saleId)).to.equal(2);
    expect([await movesOf(order), await releasesOf(order)]).to.deep.equal([['paid'], []]);
    expect(await refundOf(payment.paymentId)).to.equal(null);
    expect(await world.violations(order.saleId)).to.deep.equal([]);
  });

  it('names the metadata of the moved orders in every move, and omits orders without metadata', async () => {
    const metadata = { cart: '42' };
    for (const move of ['paid', 'cancelled', 'expired'] as const) {
      const paymentWindowMs = move === 'expired' ? DUE_MS : LATER_MS;
      const { orders } = await ordersIn(world, ['ann', 'bob'], { paymentWindowMs, metadata });
      const orderIds = orders.map(({ orderId }) => orderId);
      if (move === 'expired') await world.transitions.expire(orderIds);
      for (const order of orders) {
        if (move === 'paid') await world.transitions.pay(order.orderId, paymentOf(order));
        if (move === 'cancelled') await world.transitions.cancel(order.orderId);
      }
      const moved = (await world.moved()).filter((row) => row.orders.some((id) => orderIds.includes(id)));
      const noted = moved.flatMap((row) => Object.entries(row.metadata ?? {}));
      expect(noted, move).to.deep.equal([[orderIds[0], JSON.stringify(metadata)]]);
    }
  });

  it('pay: returns the same result and changes nothing when a payment is reported again, even concurrently', async () => {
    const order = await oneOrder();
    const payment = paymentOf(order);
    const answers = await Promise.all(Array.from({ length: 6 }, () => world.transitions.pay(order.orderId, payment)));
    expect(answers).to.deep.equal(Array(6).fill('paid'));
    expect(await movesOf(order)).to.deep.equal(['paid']);
    expect((await world.payments()).filter(({ orderId }) => orderId === order.orderId)).to.have.length(1);
  });

  it('pay: records one refund for the second payment of a paid order, however often it is reported', async () => {
    const order = await oneOrder();
    const second = paymentOf(order);
    expect(await world.transitions.pay(order.orderId, paymentOf(order))).to.equal('paid');
    for (let i = 0; i < 3; i++) expect(await world.transitions.pay(order.orderId, second)).to.equal('refund_due');
    expect(await refundOf(second.paymentId)).to.equal('already_paid');
    expect(await movesOf(order)).to.deep.equal(['paid']);
  });

  it('pay: records a refund for a payment of another amount or currency, and leaves the order unpaid', async () => {
    const order = await oneOrder();
    const wrong = paymentOf(order, { amountCents: order.amountCents - 1 });
    expect(await world.transitions.pay(order.orderId, wrong)).to.equal('refund_due');
    expect(await refundOf(wrong.paymentId)).to.equal('wrong_amount');
    const foreign = { ...paymentOf(order), currency: 'JPY' };
    expect(await world.transitions.pay(order.orderId, foreign)).to.equal('refund_due');
    expect(await refundOf(foreign.paymentId)).to.equal('wrong_currency');
    expect(await stateOf(order)).to.equal('pending_payment');
    expect(await world.transitions.pay(order.orderId, paymentOf(order))).to.equal('paid');
  });

  it('pay: records a refund for the payment of an ended order', async () => {
    const cancelled = await oneOrder();
    await world.transitions.cancel(cancelled.orderId);
    const expired = await oneOrder(DUE_MS);
    await world.transitions.expire([expired.orderId]);
    for (const [order, reason] of [
      [cancelled, 'order_cancelled'],
      [expired, 'order_expired'],
    ] as const) {
      const payment = paymentOf(order);
      expect(await world.transitions.pay(order.orderId, payment)).to.equal('refund_due');
      expect(await refundOf(payment.paymentId)).to.equal(reason);
      expect(await soldOf(order.saleId)).to.equal(0);
    }
  });

  it('pay: records no refund for a free order that has ended', async () => {
    const order = await oneOrder();
    await world.transitions.cancel(order.orderId);
    const free = { paymentId: `free-${order.orderId}`, amountCents: 0 };
    for (let i = 0; i < 2; i++) expect(await world.transitions.pay(order.orderId, free)).to.equal('refund_due');
    expect((await world.refunds.refundsOf(order.orderId)).map(({ state }) => state)).to.deep.equal(['refunded']);
  });

  it('pay: pays an order that is past its deadline but has not expired yet', async () => {
    const order = await oneOrder(DUE_MS);
    expect(await world.transitions.pay(order.orderId, paymentOf(order))).to.equal('paid');
    expect(await world.transitions.expire([order.orderId])).to.equal(0);
    expect(await stateOf(order)).to.equal('paid');
  });

  it('pay: pays one order per payment, and reports a conflict for another order or amount', async () => {
    const [first, second] = [await oneOrder(), await oneOrder()];
    const payment = paymentOf(first);
    expect(await world.transitions.pay(first.orderId, payment)).to.equal('paid');
    expect(await world.transitions.pay(second.orderId, payment)).to.equal('payment_conflict');
    expect(await world.transitions.pay(first.orderId, { ...payment, amountCents: 1 })).to.equal('payment_conflict');
    expect(await stateOf(second)).to.equal('pending_payment');
  });

  it('pay and cancel: report an unknown order', async () => {
    const order = await oneOrder();
    const payment = paymentOf(order);
    for (const orderId of ['1', `${order.orderId}x`, 'x', '']) {
      expect(await world.transitions.pay(orderId, payment), orderId).to.equal('not_found');
      expect(await world.transitions.cancel(orderId), orderId).to.equal('not_found');
    }
    expect(await refundOf(payment.paymentId)).to.equal(undefined);
    expect(await stateOf(order)).to.equal('pending_payment');
  });

  it('cancel: lowers `sold` and promises the return of the units once, whatever their batch', async () => {
    expect(homeBucket('ann', 7), 'not the first bucket').to.be.above(0);
    const { orders } = await ordersIn(world, ['ann/k*2', 'bob/k*3'], { sale: { buckets: 7 } });
    const [order, other] = orders as [Order, Order];
    for (let i = 0; i < 3; i++) expect(await world.transitions.cancel(order.orderId)).to.equal('cancelled');

    expect([await stateOf(order), await stateOf(other)]).to.deep.equal(['cancelled', 'pending_payment']);
    expect(await soldOf(order.saleId)).to.equal(3);
    expect(await movesOf(order)).to.deep.equal(['cancelled']);
    const { orderId, saleId } = order;
    expect(await releasesOf(order)).to.deep.equal([
      {
        saleId,
        bucket: homeBucket('ann', 7),
        userId: 'ann',
        requestId: 'k',
        orderId,
        batchId: '',
        withUnits: true,
      },
    ]);
    expect(await world.violations(saleId)).to.deep.equal([]);
  });

  it('cancel: lets a buyer with a limit of one buy again', async () => {
    const sale = { limitPerBuyer: 1 };
    const [order] = (await ordersIn(world, ['ann'], { sale })).orders as [Order];
    expect([...(await world.orders.liveBuyers(order.saleId, ['ann']))]).to.deep.equal(['ann']);
    await world.transitions.cancel(order.orderId);
    expect([...(await world.orders.liveBuyers(order.saleId, ['ann']))]).to.deep.equal([]);
  });

  it('cancel: leaves a paid, expired or failed order unchanged', async () => {
    const paid = await oneOrder();
    await world.transitions.pay(paid.orderId, paymentOf(paid));
    const expired = await oneOrder(DUE_MS);
    await world.transitions.expire([expired.orderId]);
    for (const order of [paid, expired]) {
      expect(await world.transitions.cancel(order.orderId)).to.equal('wrong_state');
      expect(await movesOf(order)).to.have.length(1);
    }
    expect([await stateOf(paid), await stateOf(expired)]).to.deep.equal(['paid', 'expired']);
  });

  it('expire: ends only the named orders that are unpaid and past their deadline [M6]', async () => {
    const early = await oneOrder();
    const { sale, orders } = await ordersIn(world, ['a', 'b*2', 'c', 'd'], { paymentWindowMs: DUE_MS });
    const [due, twice, paid, unnamed] = orders as [Order, Order, Order, Order];
    await world.transitions.pay(paid.orderId, paymentOf(paid));
    const ids = [due, twice, due, paid, early].map(({ orderId }) => orderId);

    expect(await world.transitions.expire([...ids, '1', 'no id'])).to.equal(2);
    expect(await world.transitions.expire(ids), 'again').to.equal(0);
    const states = await Promise.all([due, twice, paid, unnamed, early].map(stateOf));
    expect(states).to.deep.equal(['expired', 'expired', 'paid', 'pending_payment', 'pending_payment']);
    expect(await soldOf(sale.saleId)).to.equal(2);
    for (const order of [due, twice]) expect(await releasesOf(order)).to.have.length(1);
    expect(await world.violations(sale.saleId)).to.deep.equal([]);
    expect(await world.transitions.expire([])).to.equal(0);
  });

  it('expireDue: expires at most `max` orders of several sales, oldest first', async () => {
    await world.transitions.expireDue(10_000); // Expires orders of other tests first.
    const young = await ordersIn(world, names(3), { paymentWindowMs: DUE_MS });
    const old = await ordersIn(world, names(4), { paymentWindowMs: 2 * DUE_MS });
    const later = await oneOrder();

    expect(await world.transitions.expireDue(4)).to.equal(4);
    expect([await soldOf(old.sale.saleId), await soldOf(young.sale.saleId)]).to.deep.equal([0, 6]);
    expect(await world.transitions.expireDue(100)).to.equal(3);
    expect(await world.transitions.expireDue(100)).to.equal(0);
    expect(await soldOf(young.sale.saleId)).to.equal(0);
    expect(await stateOf(later)).to.equal('pending_payment');
    for (const order of [...young.orders, ...old.orders]) expect(await releasesOf(order)).to.have.length(1);
  });

  it('expireDue: expires each order once when four sweepers need several transactions', async () => {
    await world.transitions.expireDue(10_000);
    const { sale, orders } = await ordersIn(world, names(1100), {
      sale: { stock: 5000 },
      paymentWindowMs: DUE_MS,
    });
    expect(await world.transitions.expireDue(600), 'alone').to.equal(600);
    const ended = await Promise.all([1, 2, 3, 4].map(() => world.transitions.expireDue(10_000)));
    // A sweeper may end before the others release their rows.
    const rest = 600 + (await world.transitions.expireDue(10_000));
    expect(ended.reduce((sum, one) => sum + one, rest)).to.equal(orders.length);
    expect(await soldOf(sale.saleId)).to.equal(0);
    const released = (await world.releases()).filter(({ saleId }) => saleId === sale.saleId);
    expect(new Set(released.map(({ orderId }) => orderId)).size).to.equal(orders.length);
    expect(released).to.have.length(orders.length);
    expect(await world.violations(sale.saleId)).to.deep.equal([]);
  });
});
