import { expect } from 'chai';
import { Bug } from '../../../src/core/errors.js';
import { asList, readAnswers } from '../../../src/redis/replies.js';

describe('redis: replies of scripts', () => {
  it('reads triples into a slot per purchase, and null for a purchase that may pass', () => {
    const reply = [1, 10, 1, 'sold_out', '', 3, 'replayed', 'ordered:77:2'];
    expect(readAnswers(reply, 2, 5)).to.deep.equal([
      null,
      { outcome: 'sold_out' },
      null,
      { outcome: 'replayed', entry: { state: 'ordered', orderId: '77', quantity: 2 } },
      null,
    ]);
  });

  it('lets every purchase pass on an empty answer', () => {
    expect(readAnswers([1, 10], 2, 2)).to.deep.equal([null, null]);
  });

  it('throws on an unknown word instead of treating it as a refusal', () => {
    for (const word of ['', 'nope', 'deducted', 'accepted', 'toString']) {
      expect(() => readAnswers([0, word, ''], 0, 1), word).to.throw(Bug, 'a script returned the unknown word');
    }
  });

  it('throws on an unreadable entry', () => {
    expect(() => readAnswers([0, 'replayed', 'held'], 0, 1)).to.throw(Bug, 'the request entry held cannot be read');
  });

  it('throws on a reply that is not a list', () => {
    expect(asList(['x'])).to.deep.equal(['x']);
    for (const reply of [null, undefined, 'OK', 1, {}]) expect(() => asList(reply)).to.throw(Bug, 'instead of a list');
  });
});
