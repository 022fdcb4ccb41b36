import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import type { OrderState } from '../../../src/core/order.js';
import { encodeOrderEvents, type OrderEvent } from '../../../src/core/order-event.js';
import { encodePaymentDeadline } from '../../../src/core/payment-deadline.js';
import { expireByMessage } from '../../../src/orders/expire-orders.js';
import { issueCoupons } from '../../../src/orders/issue-coupons.js';
import type { OrderStates, OrderTransitions } from '../../../src/core/ports/order-transitions.js';
import { KeeperWorld } from './keeper-world.js';
import { partial } from '../../helpers/partial.js';

describe('keeper: order deadlines', () => {
  let world: KeeperWorld;
  let states: Map<string, OrderState>;
  let due: Set<string>;
  beforeEach(() => {
    world = new KeeperWorld();
    states = new Map();
    due = new Set();
  });

  const handle = (orders: readonly string[]) => {
    const ports = {
      transitions: partial<OrderTransitions>({
        expire: async (orderIds: readonly string[]) => {
          const ended = orderIds.filter((id) => states.get(id) === 'pending_payment' && due.has(id));
          for (const id of ended) states.set(id, 'expired');
          return ended.length;
        },
      }),
      orders: partial<OrderStates>({ statesOf: async () => states }),
      clocks: world.clocks,
      metrics: world.metrics,
    };
    return expireByMessage(ports)(encodePaymentDeadline({ batchId: 'b1', saleId: '7', deadlineAtMs: 1, orders }));
  };

  it('ends unpaid orders, and does not touch paid and cancelled orders', async () => {
    states = new Map([
      ['1', 'pending_payment'],
      ['2', 'paid'],
      ['3', 'cancelled'],
    ]);
    due = new Set(['1', '2', '3']);
    expect((await handle(['1', '2', '3'])).outcome).to.equal('done');
    expect([...states.values()]).to.deep.equal(['expired', 'paid', 'cancelled']);
    expect(world.counts.expired).to.equal(1);
    expect((await handle(['1', '2', '3'])).outcome, 'a repeat changes nothing').to.equal('done');
    expect(world.counts.expired).to.equal(1);
  });

  it('defers orders that are not due or not written, and ends the others now [M6]', async () => {
    states = new Map([
      ['1', 'pending_payment'],
      ['2', 'pending_payment'],
    ]);
    due = new Set(['1', '3']);
    expect(await handle(['1', '2', '3'])).to.deep.equal({
      outcome: 'later',
      why: '2 of 3 orders are not due, or not there',
    });
    expect(states.get('1')).to.equal('expired');
    states.set('3', 'pending_payment');
    due.add('2');
    expect((await handle(['1', '2', '3'])).outcome).to.equal('done');
    expect(world.counts.expired).to.equal(3);
  });

  it('ends nothing, and uses up no attempt, while a server clock is off [D10]', async () => {
    states = new Map([['1', 'pending_payment']]);
    due = new Set(['1']);
    for (const server of ['mysql', 'redis'] as const) {
      world.ahead[server] = 20 * 60_000;
      world.clock.advance(1_000);
      const error = await handle(['1']).catch((cause: unknown) => cause);
      expect(error, server).to.be.instanceOf(OperationalError).and.to.include({ retryable: true });
      world.ahead[server] = 0;
    }
    world.clock.advance(1_000);
    expect((await handle(['1'])).outcome).to.equal('done');
  });

  it('says what is wrong with a body that is not a deadline [M7]', async () => {
    const transitions = partial<OrderTransitions>({ expire: () => expect.fail() });
    const orders = partial<OrderStates>({ statesOf: () => expect.fail() });
    const ports = { transitions, orders, clocks: world.clocks, metrics: world.metrics };
    const outcome = await expireByMessage(ports)('{"v":9}');
    expect(outcome.outcome).to.equal('unknown_version');
  });
});

describe('keeper: coupons', () => {
  let world: KeeperWorld;
  let paid: Set<string>;
  let having: Set<string>;
  beforeEach(() => {
    world = new KeeperWorld();
    paid = new Set();
    having = new Set();
  });

  const event = (type: OrderEvent['type'], ...orders: string[]): OrderEvent => ({
    eventId: `1-${type.slice(6)}`,
    type,
    saleId: '7',
    orders,
    atMs: 1,
  });
  const handle = (...events: OrderEvent[]) => {
    const coupons = {
      issue: async (orderIds: readonly string[]) => {
        const fresh = orderIds.filter((id) => paid.has(id) && !having.has(id));
        for (const id of fresh) having.add(id);
        return { issued: fresh.length, unpaid: orderIds.filter((id) => !having.has(id)) };
      },
    };
    return issueCoupons(partial(coupons), world.metrics)(encodeOrderEvents(events));
  };

  it('issues no coupon for other events', async () => {
    paid = new Set(['1']);
    expect((await handle(event('order.created', '1'), event('order.expired', '2'))).outcome).to.equal('done');
    expect(having.size).to.equal(0);
  });

  it('retries an event that arrives before its row [M6]', async () => {
    paid = new Set(['1']);
    expect((await handle(event('order.paid', '1', '2'))).outcome).to.equal('later');
    expect([...having]).to.deep.equal(['1']);
    paid.add('2');
    expect((await handle(event('order.paid', '1', '2'))).outcome).to.equal('done');
    expect(world.counts.coupons).to.equal(2);
  });
});
