import { expect } from 'chai';
import { groupBy } from '../../../src/core/group-by.js';

describe('groupBy', () => {
  it('keeps the order of keys and of items', () => {
    const groups = groupBy(['b1', 'a1', 'b2', 'c1', 'a2'], (item) => item[0]);
    expect([...groups]).to.deep.equal([
      ['b', ['b1', 'b2']],
      ['a', ['a1', 'a2']],
      ['c', ['c1']],
    ]);
    expect(groupBy([], String).size).to.equal(0);
  });
});
