import { expect } from 'chai';
import {
  decodeOrderNotifications,
  encodeOrderNotifications,
  type OrderNotification,
} from '../../../src/core/order-notifications.js';

const PAID: OrderNotification = { userId: 'u1', requestId: 'k1', orderId: '101', state: 'paid', reason: null };
const FAILED: OrderNotification = { ...PAID, orderId: '102', state: 'failed', reason: 'discarded' };

describe('order notifications', () => {
  it('decodes every encoded notification', () => {
    expect(decodeOrderNotifications(encodeOrderNotifications([PAID, FAILED]))).to.deep.equal({
      outcome: 'decoded',
      notifications: [PAID, FAILED],
    });
    const ordered = { ...PAID, state: 'pending_payment' as const };
    expect(encodeOrderNotifications([ordered, PAID])).to.equal(
      '{"v":2,"orders":[["u1/k1","101"],["u1/k1","101","paid"]]}',
    );
    expect(decodeOrderNotifications(encodeOrderNotifications([ordered]))).to.deep.include({ notifications: [ordered] });
  });

  it('allows slashes in a user id, because the request id begins after the last slash', () => {
    const hostile = { ...PAID, userId: 'a/b/{7:0}' };
    expect(decodeOrderNotifications(encodeOrderNotifications([hostile]))).to.deep.include({ notifications: [hostile] });
  });

  it('skips orders without waiting buyers, and checks the others', () => {
    const body = (state: string): string =>
      JSON.stringify({
        v: 2,
        orders: [
          ['a/k1', 7, 'lost'],
          ['b/k2', '9', state],
        ],
      });
    const wanted = (key: string): boolean => key === 'b/k2';
    const order = { userId: 'b', requestId: 'k2', orderId: '9', state: 'paid', reason: null };
    expect(decodeOrderNotifications(body('paid'), wanted)).to.deep.equal({
      outcome: 'decoded',
      notifications: [order],
    });
    expect(decodeOrderNotifications(body('lost'), wanted).outcome).to.equal('undecodable');
  });

  for (const [what, body, outcome] of [
    ['no JSON', '{', 'undecodable'],
    ['another version', '{"v":1,"orders":[]}', 'unknown_version'],
    ['no list', '{"v":2,"orders":{}}', 'undecodable'],
    ['an order that is no list', '{"v":2,"orders":[7]}', 'undecodable'],
    ['a key without a request', '{"v":2,"orders":[["a","1","paid"]]}', 'undecodable'],
    ['a key without a user', '{"v":2,"orders":[["/k1","1","paid"]]}', 'undecodable'],
    ['a user with a blank', '{"v":2,"orders":[["a b/k1","1","paid"]]}', 'undecodable'],
    ['a key that is no text', '{"v":2,"orders":[[7,"1","paid"]]}', 'undecodable'],
    ['an unknown state', '{"v":2,"orders":[["a/k1","1","lost"]]}', 'undecodable'],
    ['an order id that is none', '{"v":2,"orders":[["a/k1",1,"paid"]]}', 'undecodable'],
  ] as const) {
    it(`decodes ${what} as ${outcome}`, () => {
      expect(decodeOrderNotifications(body).outcome).to.equal(outcome);
    });
  }
});
