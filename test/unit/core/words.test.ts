import { expect } from 'chai';
import fc from 'fast-check';
import { assert, assertNever, Bug, OperationalError } from '../../../src/core/errors.js';
import { isId, isOrderId, isPaymentId, isSaleId, isUserId } from '../../../src/core/ids.js';
import {
  ORDER_STATES,
  ORDER_TRANSITIONS,
  isLive,
  isUnpaid,
  stateOf,
  statesBefore,
  storedAs,
  wasPaid,
} from '../../../src/core/order.js';
import { composeOrderId, ORDER_ID_EPOCH_MS } from '../../../src/core/order-id.js';
import { explainOrderId } from '../../helpers/explain-order-id.js';
import { formatRequestEntry, parseRequestEntry, type RequestEntry } from '../../../src/core/outcome.js';
import { isQuantity, purchaseKey, splitPurchaseKey } from '../../../src/core/purchase.js';
import { SALE_STATES, SALE_TRANSITIONS } from '../../../src/core/sale.js';
import { hash32, homeBucket } from '../../../src/core/bucket.js';

const id = fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/);
const userId = fc.oneof(fc.stringMatching(/^[!-~]{1,128}$/), fc.stringMatching(/^[a/]{1,4}$/));

describe('id syntax', () => {
  it('accepts no id that could break a key, a path or a log line [S6]', () => {
    for (const good of ['a', 'A-b_9', 'x'.repeat(64), '0']) expect(isId(good), good).to.equal(true);
    const odd = [
      '',
      'x'.repeat(65),
      'a b',
      'a/b',
      'a:b',
      '{a}',
      'a}',
      "a'b",
      'a"b',
      'a\nb',
      'a\r',
      'a\0',
      'ä',
      '%41',
      '..',
      'a\n',
    ];
    for (const bad of [...odd, 7, null, undefined, ['a'], {}]) expect(isId(bad), JSON.stringify(bad)).to.equal(false);
  });

  it('accepts user ids of identity providers without blanks, because MySQL ignores trailing blanks [S6]', () => {
    const good = [
      'auth0|507f1f77bcf86cd799439011',
      'a@b.com',
      'urn:x:1',
      'CN=a,O=b',
      '{7:0}',
      "o'x",
      '/',
      'x'.repeat(128),
    ];
    for (const one of good) expect(isUserId(one), one).to.equal(true);
    for (const bad of [
      '',
      ' a',
      'a ',
      'a b',
      'a\n',
      'a\0',
      '\u007f',
      'ä',
      '\u202ea',
      'x'.repeat(129),
      7,
      null,
      ['a'],
    ]) {
      expect(isUserId(bad), JSON.stringify(bad)).to.equal(false);
    }
  });

  it('accepts payment ids of providers if they fit a column and a path [S6]', () => {
    const good = ['pi_3MtwBwLkdIwHu7ix28a3tqPa', 'ch.1:2', 'PAY-1AB~2', 'a='.repeat(32), 'simulated-x', '_x'];
    for (const one of good) expect(isPaymentId(one), one).to.equal(true);
    for (const bad of ['', '.', '..', ':a', 'a/b', 'a b', 'a%2F', 'a?b', 'a#b', 'ä', 'a\n', 'x'.repeat(65), 7, null]) {
      expect(isPaymentId(bad), JSON.stringify(bad)).to.equal(false);
    }
  });

  it('accepts a sale id only in the one spelling that MySQL generates', () => {
    for (const good of ['1', '7', '999999999999999999']) expect(isSaleId(good), good).to.equal(true);
    for (const bad of ['', '0', '07', '-1', '1.0', '1e3', ' 1', '1 ', '1\n', '1234567890123456789', 7]) {
      expect(isSaleId(bad), JSON.stringify(bad)).to.equal(false);
    }
  });

  it('accepts an order id with up to 19 digits', () => {
    expect(isOrderId('9223372036854775807')).to.equal(true);
    for (const bad of ['0', '01', '92233720368547758070', 'x', 1]) expect(isOrderId(bad)).to.equal(false);
  });
});

describe('purchase', () => {
  it('accepts only whole numbers from 1 to 1000 as a quantity', () => {
    for (const good of [1, 2, 1000]) expect(isQuantity(good)).to.equal(true);
    for (const bad of [0, -1, 1001, 1.5, NaN, Infinity, '1', null, undefined, true]) {
      expect(isQuantity(bad), String(bad)).to.equal(false);
    }
  });

  it('gives two purchases the same key only if buyer and request are equal', () => {
    fc.assert(
      fc.property(userId, id, userId, id, (userId, requestId, otherUser, otherRequest) => {
        const same = userId === otherUser && requestId === otherRequest;
        const keys = [
          { userId, requestId },
          { userId: otherUser, requestId: otherRequest },
        ].map(purchaseKey);
        expect(keys[0] === keys[1]).to.equal(same);
        expect(splitPurchaseKey(String(keys[0]))).to.deep.equal({ userId, requestId });
      }),
    );
    expect(purchaseKey({ userId: 'a/b', requestId: 'c' })).not.to.equal(purchaseKey({ userId: 'a', requestId: 'b-c' }));
    expect(purchaseKey({ userId: 'a-b', requestId: 'c' })).not.to.equal(purchaseKey({ userId: 'a', requestId: 'b-c' }));
  });
});

describe('request entry', () => {
  it('reads back unchanged', () => {
    const quantity = fc.integer({ min: 1, max: 1000 });
    const entry: fc.Arbitrary<RequestEntry> = fc.oneof(
      fc.record({ state: fc.constant('held' as const), batchId: id, quantity }),
      fc.record({ state: fc.constantFrom('ordered' as const, 'released' as const), orderId: id, quantity }),
    );
    fc.assert(fc.property(entry, (one) => void expect(parseRequestEntry(formatRequestEntry(one))).to.deep.equal(one)));
  });

  it('has the format that the scripts write', () => {
    expect(formatRequestEntry({ state: 'held', batchId: 'b1', quantity: 2 })).to.equal('held:b1:2');
    expect(formatRequestEntry({ state: 'ordered', orderId: '9', quantity: 1 })).to.equal('ordered:9:1');
    expect(formatRequestEntry({ state: 'released', orderId: '9', quantity: 1 })).to.equal('released:9:1');
  });

  it('is null for any other text', () => {
    for (const text of [
      '',
      'held',
      'held:b1',
      'held::1',
      'held:b1:x',
      'sold:b1:1',
      'aborted',
      'held:b1:1.5',
      'held:b1:',
      'held:b1:0',
      'held:b1:1:1',
    ]) {
      expect(parseRequestEntry(text), text).to.equal(null);
    }
  });
});

describe('order', () => {
  it('never leaves an ended state, and after payment only changes the state of its money [I8]', () => {
    for (const state of ORDER_STATES) {
      const isFinal = ['cancelled', 'expired', 'failed', 'returned'].includes(state);
      expect(ORDER_TRANSITIONS[state].length === 0, state).to.equal(isFinal);
      expect(ORDER_TRANSITIONS[state]).not.to.include(state);
      if (wasPaid(state))
        for (const to of ORDER_TRANSITIONS[state]) expect(wasPaid(to), `${state} to ${to}`).to.equal(true);
      expect(isUnpaid(state), state).to.equal(state === 'pending_payment');
    }
    expect(ORDER_TRANSITIONS.pending_payment).to.deep.equal(['paid', 'cancelled', 'expired']);
  });

  it('is stored in two columns, and read back the same', () => {
    for (const state of ORDER_STATES) expect(stateOf(...storedAs(state)), state).to.equal(state);
    expect(storedAs('returned')).to.deep.equal(['cancelled', 'returned']);
    expect(statesBefore('paid')).to.deep.equal(['pending_payment']);
  });

  it('counts as live only while its units count as sold', () => {
    expect(ORDER_STATES.filter(isLive)).to.have.members([
      ...['pending_payment', 'paid', 'refunding', 'refunded', 'disputed'],
    ]);
  });
});

describe('order id', () => {
  const parts = fc.record({
    atMs: fc.integer({ min: ORDER_ID_EPOCH_MS + 1, max: ORDER_ID_EPOCH_MS + 2 ** 41 - 1 }),
    slot: fc.integer({ min: 0, max: 255 }),
    userId: id,
    sequence: fc.integer({ min: 0, max: 255 }),
  });

  it('splits into its parts, and fits BIGINT and the routes', () => {
    fc.assert(
      fc.property(parts, ({ atMs, slot, userId, sequence }) => {
        const orderId = composeOrderId(atMs, slot, userId, sequence);
        expect(isOrderId(orderId)).to.equal(true);
        expect(BigInt(orderId) <= 9_223_372_036_854_775_807n).to.equal(true);
        expect(explainOrderId(orderId)).to.deep.equal({ atMs, slot, sequence, userHash: hash32(userId) & 63 });
      }),
    );
  });

  it('is greater when it is generated later, even in another process', () => {
    fc.assert(
      fc.property(parts, parts, (a, b) => {
        fc.pre(a.atMs < b.atMs);
        const [one, two] = [a, b].map((p) => BigInt(composeOrderId(p.atMs, p.slot, p.userId, p.sequence)));
        expect((one as bigint) < (two as bigint)).to.equal(true);
      }),
    );
  });
});

describe('sale', () => {
  it('follows the transitions draft → warm → open ⇄ paused → closed [I8]', () => {
    expect(SALE_TRANSITIONS).to.deep.equal({
      draft: ['warm'],
      warm: ['open', 'closed'],
      open: ['paused', 'closed'],
      paused: ['open', 'closed'],
      closed: [],
    });
    expect(Object.keys(SALE_TRANSITIONS)).to.have.members(SALE_STATES);
  });

  it('assigns a buyer to the same home bucket for ever [R12]', () => {
    // FNV-1a test vectors published by its authors. Stored data depends on them.
    expect([hash32(''), hash32('a'), hash32('foobar')]).to.deep.equal([0x811c9dc5, 0xe40c292c, 0xbf9cf968]);
    expect(homeBucket('anybody', 1)).to.equal(0);
    expect(homeBucket('a', 16)).to.equal(0xe40c292c % 16);
  });

  it('spreads buyers evenly over buckets [R12]', () => {
    const counts = new Array<number>(8).fill(0);
    for (let i = 0; i < 8000; i++) counts[homeBucket(`user-${i}`, 8)]!++;
    for (const count of counts) expect(count).to.be.within(800, 1200);
  });
});

describe('errors', () => {
  it('carry their dependency, their cause and whether to retry', () => {
    const cause = new Error('ECONNRESET');
    const fault = new OperationalError('redis', 'precheck: ECONNRESET', { retryable: true, cause });
    expect(fault).to.include({ name: 'OperationalError', dependency: 'redis', retryable: true, cause });
  });

  it('report an unexpected word or a broken assumption as a bug', () => {
    expect(() => assertNever('x' as never)).to.throw(Bug, /unexpected value: "x"/);
    expect(() => assert(false, 'it holds')).to.throw(Bug, 'it holds');
    expect(() => assert(1, 'it holds')).not.to.throw();
  });
});
