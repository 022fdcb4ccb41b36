import { expect } from 'chai';
import fc from 'fast-check';
import {
  decodeOrderEvents,
  encodeOrderEvents,
  ORDER_EVENT_TYPES,
  type OrderEvent,
} from '../../../src/core/order-event.js';
import {
  decodePaymentDeadline,
  encodePaymentDeadline,
  ORDERS_PER_MESSAGE_MAX,
  type PaymentDeadline,
} from '../../../src/core/payment-deadline.js';

const ID = fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/);
const SALE_ID = fc.stringMatching(/^[1-9][0-9]{0,17}$/);
const ORDERS = fc.uniqueArray(fc.stringMatching(/^[1-9][0-9]{0,18}$/), { minLength: 1, maxLength: 30 });
const MS = fc.nat({ max: 4e12 });

const DEADLINE: PaymentDeadline = { batchId: 'b1', saleId: '7', deadlineAtMs: 1_700_000_900_000, orders: ['11', '12'] };
const EVENT: OrderEvent = {
  eventId: '41-created',
  type: 'order.created',
  saleId: '7',
  orders: ['11'],
  atMs: 1_700_000_000_000,
};

/** Lists that are not valid lists of orders. */
const BAD_ORDERS = [undefined, null, [], 'x', [11], ['0'], ['1', '1'], ['a'], [null]];
const TOO_MANY = Array.from({ length: ORDERS_PER_MESSAGE_MAX + 1 }, (_, i) => String(i + 1));

describe('payment deadline', () => {
  const bodyWith = (field: string, value: unknown): string =>
    JSON.stringify({ ...JSON.parse(encodePaymentDeadline(DEADLINE)), [field]: value });

  it('is encoded with its version and reads back unchanged', () => {
    expect(JSON.parse(encodePaymentDeadline(DEADLINE))).to.deep.equal({
      v: 1,
      batchId: 'b1',
      saleId: '7',
      deadlineAt: 1_700_000_900_000,
      orders: ['11', '12'],
    });
    const any = fc.record({ batchId: ID, saleId: SALE_ID, deadlineAtMs: MS, orders: ORDERS });
    fc.assert(
      fc.property(any, (deadline) => {
        expect(decodePaymentDeadline(encodePaymentDeadline(deadline))).to.deep.equal({ outcome: 'decoded', deadline });
      }),
      { numRuns: 100 },
    );
  });

  it('returns a result for any input and never throws [M7]', () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (body) => void decodePaymentDeadline(body)));
    expect(decodePaymentDeadline('{').outcome).to.equal('undecodable');
    expect(decodePaymentDeadline(bodyWith('v', 2)).outcome).to.equal('unknown_version');
  });

  it('checks every field [M7]', () => {
    const bad: [string, unknown[]][] = [
      ['batchId', [undefined, '', 'a b', 7, 'x'.repeat(65)]],
      ['saleId', [undefined, '0', '07', 7, 'x']],
      ['deadlineAt', [undefined, -1, 1.5, '1', null]],
      ['orders', [...BAD_ORDERS, TOO_MANY]],
    ];
    for (const [field, values] of bad) {
      for (const value of values) {
        const decoded = decodePaymentDeadline(bodyWith(field, value));
        expect(decoded.outcome, `${field} ${JSON.stringify(value)?.slice(0, 40)}`).to.equal('undecodable');
      }
    }
    expect(decodePaymentDeadline(bodyWith('orders', TOO_MANY.slice(1))).outcome).to.equal('decoded');
  });
});

describe('order events', () => {
  const bodyWith = (field: string, value: unknown): string => {
    const body = JSON.parse(encodeOrderEvents([EVENT])) as { v: number; events: object[] };
    return JSON.stringify({ ...body, events: [{ ...body.events[0], [field]: value }] });
  };

  it('are encoded with their version and read back unchanged', () => {
    expect(JSON.parse(encodeOrderEvents([EVENT]))).to.deep.equal({
      v: 1,
      events: [{ eventId: '41-created', type: 'order.created', saleId: '7', at: 1_700_000_000_000, orders: ['11'] }],
    });
    const noted = { ...EVENT, metadata: { '11': { cart: '42' } } };
    expect(JSON.parse(encodeOrderEvents([noted]))).to.deep.nested.include({
      'events[0].metadata': noted.metadata,
      v: 1,
    });
    expect(decodeOrderEvents(encodeOrderEvents([noted]))).to.deep.equal({ outcome: 'decoded', events: [noted] });
    const refunded = encodeOrderEvents([{ ...EVENT, type: 'order.refunded' }]);
    expect(JSON.parse(refunded), 'only of money after a payment').to.include({ v: 2 });
    const type = fc.constantFrom(...ORDER_EVENT_TYPES);
    const any = fc.record({ eventId: ID, type, saleId: SALE_ID, orders: ORDERS, atMs: MS });
    fc.assert(
      fc.property(fc.array(any, { minLength: 1, maxLength: 16 }), (events) => {
        expect(decodeOrderEvents(encodeOrderEvents(events))).to.deep.equal({ outcome: 'decoded', events });
      }),
      { numRuns: 100 },
    );
  });

  it('return a result for any input and never throw [M7]', () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (body) => void decodeOrderEvents(body)));
    for (const events of [undefined, null, [], {}, [1], [null], Array(17).fill(EVENT)]) {
      expect(decodeOrderEvents(JSON.stringify({ v: 1, events })).outcome).to.equal('undecodable');
    }
    expect(decodeOrderEvents('{"v":3}').outcome).to.equal('unknown_version');
  });

  it('check every field [M7]', () => {
    const bad: [string, unknown[]][] = [
      ['eventId', [undefined, '', 'a b', 7]],
      ['type', [undefined, 'created', 'order.eaten', 1]],
      ['saleId', [undefined, '0', 7]],
      ['at', [undefined, -1, 1.5]],
      ['orders', [...BAD_ORDERS, TOO_MANY]],
      ['metadata', [null, {}, [], 'x', { '12': { a: 'x' } }, { '11': {} }, { '11': { a: 1 } }, { '11': null }]],
    ];
    for (const [field, values] of bad) {
      for (const value of values) {
        const decoded = decodeOrderEvents(bodyWith(field, value));
        expect(decoded.outcome, `${field} ${JSON.stringify(value)?.slice(0, 40)}`).to.equal('undecodable');
      }
    }
  });
});
