import { expect } from 'chai';
import { compareIds } from '../../../src/core/ids.js';
import { idBelow, ORDER_ID_MAX } from '../../../src/core/order-id.js';

describe('decimal ids', () => {
  it('are ordered by value, so that all programs lock sale rows in the same order', () => {
    const ascending = ['1', '2', '9', '10', '11', '99', '100', '9007199254740992', '9007199254740993', ORDER_ID_MAX];
    expect([...ascending].reverse().sort(compareIds)).to.deep.equal(ascending);
    for (const one of ascending) {
      for (const other of ascending) {
        const byValue = BigInt(one) < BigInt(other) ? -1 : BigInt(one) > BigInt(other) ? 1 : 0;
        expect(Math.sign(compareIds(one, other)), `${one} and ${other}`).to.equal(byValue);
      }
    }
  });

  it('have a predecessor that is never below 0', () => {
    expect(idBelow('1000')).to.equal('999');
    expect(idBelow(ORDER_ID_MAX)).to.equal('9223372036854775806');
    expect(idBelow('1')).to.equal('0');
    expect(idBelow('0')).to.equal('0');
  });
});
