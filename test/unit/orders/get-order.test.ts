import { expect } from 'chai';
import type { ShownOrder } from '../../../src/core/order.js';
import { redeliveryDelayMs } from '../../../src/core/back-off.js';
import { getOrder } from '../../../src/orders/buyer-orders.js';
import { partial } from '../../helpers/partial.js';

describe('get-order', () => {
  const order = { orderId: '123', userId: 'ann' } as ShownOrder;
  const repository = { findOrder: async (orderId: string) => (orderId === '123' ? order : null) };

  it('shows an order only to its buyer, and nothing to other buyers [S4]', async () => {
    expect(await getOrder('123', 'ann', partial(repository))).to.equal(order);
    expect(await getOrder('123', 'bob', partial(repository))).to.equal(null);
    expect(await getOrder('124', 'ann', partial(repository))).to.equal(null);
  });

  it('does not query MySQL for an invalid order id [S6]', async () => {
    const asked: string[] = [];
    const repository = { findOrder: async (orderId: string) => (asked.push(orderId), order) };
    for (const text of ['', '0', '-1', '1e3', ' 123', "1' OR 1", '99999999999999999999']) {
      expect(await getOrder(text, 'ann', partial(repository))).to.equal(null);
    }
    expect(asked).to.deep.equal([]);
  });
});

describe('back-off', () => {
  it('grows with the attempts, with jitter, up to a maximum', () => {
    const bounds = [1, 2, 3, 4, 5, 6, 50].map((attempt) => {
      const delays = Array.from({ length: 200 }, () => redeliveryDelayMs(attempt));
      return [Math.min(...delays), Math.max(...delays)] as const;
    });
    for (const [index, seconds] of [1, 5, 15, 30, 60, 60, 60].entries()) {
      const [least, most] = bounds[index] as (typeof bounds)[number];
      expect(least).to.be.within(seconds * 800, seconds * 1000);
      expect(most).to.be.within(seconds * 1000, seconds * 1200);
    }
  });
});
