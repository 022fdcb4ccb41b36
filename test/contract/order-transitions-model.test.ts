import { expect } from 'chai';
import fc from 'fast-check';
import type { Order } from '../../src/core/order.js';
import { DUE_MS, LATER_MS, MOVES_WORLDS, ordersIn, type MovesWorld } from './order-transitions-worlds.js';
import { onEachWorld } from './on-each-world.js';

/** Few, so that orders and payments collide. */
const ORDERS = 4;
const PAYMENTS = 5;

type Step =
  | { readonly do: 'pay'; readonly order: number; readonly payment: number; readonly extraCents: number }
  | { readonly do: 'cancel'; readonly order: number }
  | { readonly do: 'expire'; readonly orders: readonly number[] }
  | { readonly do: 'expireDue'; readonly max: number };

const order = fc.integer({ min: 0, max: ORDERS - 1 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('pay' as const),
      order,
      payment: fc.integer({ min: 0, max: PAYMENTS - 1 }),
      extraCents: fc.constantFrom(0, 0, 0, 1),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('cancel' as const), order }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('expire' as const), orders: fc.array(order, { maxLength: 4 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('expireDue' as const), max: fc.integer({ min: 1, max: 3 }) }) },
);

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);

onEachWorld<MovesWorld>('OrderTransitions: random concurrent moves', MOVES_WORLDS, (world) => {
  let runs = 0;
  /** Results that occurred. Histories without effects fail the test. */
  const met = new Set<string>();

  function run(one: Step, orders: readonly Order[]): Promise<string | number> {
    const idOf = (index: number): string => orders[index]?.orderId ?? '';
    switch (one.do) {
      case 'pay': {
        const amountCents = (orders[one.order]?.amountCents ?? 0) + one.extraCents;
        return world.transitions.pay(idOf(one.order), { paymentId: `model-${runs}-${one.payment}`, amountCents });
      }
      case 'cancel':
        return world.transitions.cancel(idOf(one.order));
      case 'expire':
        return world.transitions.expire(one.orders.map(idOf));
      case 'expireDue':
        return world.transitions.expireDue(one.max);
    }
  }

  it('have one winner per order, and units, payments and outbox rows that add up [C4]', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 14 }), fc.boolean(), async (steps, isDue) => {
        runs++;
        const texts = ['a/k*1', 'b/k*2', 'c/k*3', 'd/k*4'];
        const paymentWindowMs = isDue ? DUE_MS : LATER_MS;
        const { sale, orders } = await ordersIn(world, texts, { paymentWindowMs });
        const answers = await Promise.all(steps.map((one) => run(one, orders)));
        for (const [index, answer] of answers.entries()) met.add(`${steps[index]?.do} ${answer}`);
        await expectConsistent(sale.saleId, orders, isDue);
        if (isDue) await world.transitions.expireDue(ORDERS); // Otherwise the next run would sweep the remaining orders.
      }),
      { numRuns: 120 },
    );
    expect([...met]).to.include.members(['pay paid', 'pay refund_due', 'pay payment_conflict', 'cancel wrong_state']);
    expect([...met]).to.include.members(['cancel cancelled', 'expire 1', 'expireDue 2']);
  });

  async function expectConsistent(saleId: string, before: readonly Order[], isDue: boolean): Promise<void> {
    const orders = (await Promise.all(before.map(({ orderId }) => world.orders.findOrder(orderId)))) as Order[];
    const inState = (...states: string[]): Order[] => orders.filter(({ state }) => states.includes(state));
    const ids = new Set(orders.map(({ orderId }) => orderId));
    expect(await world.violations(saleId)).to.deep.equal([]);
    if (!isDue) expect(inState('expired')).to.deep.equal([]);
    for (const { state, paidAtMs } of orders) expect(paidAtMs !== null).to.equal(state === 'paid');

    const payments = (await world.payments()).filter(({ orderId }) => ids.has(orderId));
    const accepted = payments.filter(({ refund }) => refund === null);
    const centsOf = (list: readonly { amountCents: number }[]): number => sum(list.map((one) => one.amountCents));
    expect(centsOf(accepted), 'payments less refunds').to.equal(centsOf(inState('paid')));
    expect(accepted).to.have.length(inState('paid').length);

    const moves = (await world.moved()).filter((row) => row.saleId === saleId);
    const moved = moves.flatMap(({ move, orders: list }) => list.map((orderId) => `${orderId} ${move}`));
    const ended = inState('paid', 'cancelled', 'expired').map(({ orderId, state }) => `${orderId} ${state}`);
    expect(moved).to.have.members(ended);
    const released = (await world.releases()).filter((release) => release.saleId === saleId);
    const gone = inState('cancelled', 'expired').map(({ orderId }) => orderId);
    expect(released.map(({ orderId }) => orderId)).to.have.members(gone);
    expect((await world.sales.find(saleId))?.sold).to.equal(
      sum(inState('pending_payment', 'paid').map(({ quantity }) => quantity)),
    );
  }
});
