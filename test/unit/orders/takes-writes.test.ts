import { expect } from 'chai';
import { takesWrites } from '../../../src/orders/takes-writes.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';

describe('keeper: check whether MySQL accepts writes', () => {
  it('asks at most twice a second for all consumers, and at once after a refusal', async () => {
    const clock = new ManualClock();
    const asked: [job: string, owner: string, leaseMs: number][] = [];
    let isReadOnly = false;
    const hold = async (...lease: (typeof asked)[number]): Promise<boolean> => {
      asked.push(lease);
      if (isReadOnly) throw new Error('read-only');
      return false; // another keeper also asks
    };
    const ready = takesWrites({ hold }, 'keeper 1', clock);
    await Promise.all(Array.from({ length: 50 }, ready));
    clock.advance(499);
    for (let receives = 0; receives < 50; receives++) await ready();
    expect(asked).to.deep.equal([['consumers', 'keeper 1', 0]]);
    clock.advance(1);
    isReadOnly = true;
    for (const nth of [2, 3]) {
      expect(await ready().catch((error: Error) => error.message)).to.equal('read-only');
      expect(asked).to.have.length(nth);
    }
    isReadOnly = false;
    await ready();
    expect(asked).to.have.length(4);
  });
});
