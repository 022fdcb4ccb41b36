import { expect } from 'chai';
import { Bug } from '../../../src/core/errors.js';
import { asList, readAnswers } from '../../../src/redis/replies.js';

describe('redis: replies of scripts', () => {
  it('reads triples into one slot per purchase; a purchase without one may pass', () => {
    const reply = [1, 10, 1, 'sold_out', '', 3, 'replayed', 'ordered:77:2'];
    expect(readAnswers(reply, 2, 5)).to.deep.equal([
      null,
      { outcome: 'sold_out' },
      null,
      { outcome: 'replayed', entry: { state: 'ordered', orderId: '77', quantity: 2 } },
      null,
    ]);
  });

  it('an empty answer lets every purchase pass', () => {
    expect(readAnswers([1, 10], 2, 2)).to.deep.equal([null, null]);
  });

  it('an unknown word is a bug, never taken for a refusal', () => {
    for (const word of ['', 'nope', 'deducted', 'accepted', 'toString']) {
      expect(() => readAnswers([0, word, ''], 0, 1), word).to.throw(Bug, 'a script answered the word');
    }
  });

  it('an entry that cannot be read is a bug', () => {
    expect(() => readAnswers([0, 'replayed', 'held'], 0, 1)).to.throw(Bug, 'a request entry reads held');
  });

  it('what is no list is a bug', () => {
    expect(asList(['x'])).to.deep.equal(['x']);
    for (const reply of [null, undefined, 'OK', 1, {}]) expect(() => asList(reply)).to.throw(Bug, 'instead of a list');
  });
});
