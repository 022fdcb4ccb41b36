import { expect } from 'chai';
import { recent } from '../../../src/core/recent.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';

describe('recent value', () => {
  it('is not cached if the request fails', async () => {
    let asked = 0;
    const ask = async (): Promise<number> => {
      if (++asked === 1) throw new Error('away');
      return asked;
    };
    const read = recent(ask, 1000, new ManualClock());
    const [first, sameTime] = await Promise.allSettled([read(), read()]);
    expect([first.status, sameTime.status, asked]).to.deep.equal(['rejected', 'rejected', 1]);
    expect(await read()).to.equal(2);
    expect(await read(), 'kept').to.equal(2);
  });

  it('is shared only by callers of one running request if caching is off', async () => {
    let asked = 0;
    const read = recent(async () => ++asked, 0, new ManualClock());
    expect(await Promise.all([read(), read()])).to.deep.equal([1, 1]);
    expect(await read()).to.equal(2);
  });
});
