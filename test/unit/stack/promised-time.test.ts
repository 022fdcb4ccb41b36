import { expect } from 'chai';
import type { GrantedTime } from '../../../deploy/local/stack/granted-time.js';
import { expectPromise } from '../../helpers/promised-time.js';

describe('promises about time', () => {
  const skipped = new Error('skipped');
  const test = {
    skip: (): never => {
      throw skipped;
    },
  };
  /** @param tries time of each attempt, and its share of the machine */
  const judge = async (...tries: [tookMs: number, share: number][]): Promise<string | undefined> => {
    let place = -1;
    const startTime = (): GrantedTime => ({ share: tries[++place]?.[1], readMs: () => 0 }) as unknown as GrantedTime;
    const measure = async (): Promise<number> => tries[place]?.[0] ?? Number.NaN;
    const end = await expectPromise(test, 1000, measure, { startTime }).catch((error: Error) => error);
    expect(place, 'all tries were needed').to.equal(tries.length - 1);
    return end === undefined ? 'kept' : end === skipped ? 'not judged' : end.message;
  };

  it('are kept if any of three attempts is in time', async () => {
    expect(await judge([999, 1])).to.equal('kept');
    expect(await judge([1000, 1], [5000, 1], [10, 0.1])).to.equal('kept');
  });

  it('are broken if an attempt with enough of the machine was late and no attempt was in time', async () => {
    expect(await judge([2000, 0.3], [1500, 0.8], [1800, 1])).to.match(/expected 1500 to be below 1000/);
  });

  it('are not judged if the machine was busy in each late attempt', async () => {
    expect(await judge([2000, 0.3], [1500, 0.79], [1800, 0.1])).to.equal('not judged');
  });
});
