import { expect } from 'chai';
import { backOffMs } from '../../../web/client/back-off.js';

describe('pause before a page retries', () => {
  it('is never shorter than the pause that the server asks for', () => {
    for (const random of [0, 0.5, 0.999]) {
      for (let tries = 1; tries < 12; tries++) expect(backOffMs(tries, 3000, random)).to.be.at.least(3000);
    }
  });

  it('differs between pages by at least half of its length', () => {
    for (const retryAfterMs of [null, 1000, 20_000]) {
      for (const tries of [1, 3, 10]) {
        const [first, last] = [backOffMs(tries, retryAfterMs, 0), backOffMs(tries, retryAfterMs, 0.999)];
        expect(last / first).to.be.at.least(1.49);
      }
    }
  });

  it('grows with each attempt up to fifteen seconds, unless the server asks for a pause', () => {
    const pauses = [1, 2, 3, 4, 5, 6, 7, 8, 20].map((tries) => backOffMs(tries, null, 0));
    expect(pauses).to.deep.equal([250, 500, 1000, 2000, 4000, 5000, 5000, 5000, 5000]);
    expect(backOffMs(20, null, 0.999)).to.be.below(15_000);
  });
});
