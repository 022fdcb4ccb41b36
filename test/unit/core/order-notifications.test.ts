import { expect } from 'chai';
import {
  decodeOrderNotifications,
  encodeOrderNotifications,
  type OrderNotification,
} from '../../../src/core/order-notifications.js';

const PAID: OrderNotification = { userId: 'u1', requestId: 'k1', orderId: '101', state: 'paid', reason: null };
const FAILED: OrderNotification = { ...PAID, orderId: '102', state: 'failed', reason: 'discarded' };

describe('order-notifications', () => {
  it('what was encoded is decoded', () => {
    expect(decodeOrderNotifications(encodeOrderNotifications([PAID, FAILED]))).to.deep.equal({
      outcome: 'decoded',
      notifications: [PAID, FAILED],
    });
    expect(encodeOrderNotifications([PAID])).to.equal('{"v":1,"orders":[["u1","k1","101","paid"]]}');
  });

  for (const [what, body, outcome] of [
    ['no JSON', '{', 'undecodable'],
    ['another version', '{"v":2,"orders":[]}', 'unknown_version'],
    ['no list', '{"v":1,"orders":{}}', 'undecodable'],
    ['an order that is no list', '{"v":1,"orders":[7]}', 'undecodable'],
    ['a user that is no id', '{"v":1,"orders":[["a/b","k1","1","paid"]]}', 'undecodable'],
    ['a state that nobody knows', '{"v":1,"orders":[["a","k1","1","lost"]]}', 'undecodable'],
    ['an order id that is none', '{"v":1,"orders":[["a","k1",1,"paid"]]}', 'undecodable'],
  ] as const) {
    it(`${what} is an answer: ${outcome}`, () => {
      expect(decodeOrderNotifications(body).outcome).to.equal(outcome);
    });
  }
});
