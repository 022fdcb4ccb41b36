import { expect } from 'chai';
import fc from 'fast-check';
import { hasRecovered, isOpenForAll, quorumOf } from '../../../../src/admission/breaker/shared-breakers.js';
import { BREAKER_STATES, type BreakerState, type LiveReport } from '../../../../src/core/ports/admission-stores.js';

const reportsOf = (...states: readonly BreakerState[]): LiveReport[] =>
  states.map((redis, index) => ({
    processId: `p${index}`,
    report: { redis, rocketmq: 'closed', mysql: redis === 'open' ? 'closed' : 'open' },
  }));

describe('entry/breaker: quorum', () => {
  it('is the share of the live processes, two at least, and one where there is only one', () => {
    expect([1, 2, 3, 4, 5, 10].map((live) => quorumOf(live, 0.5))).to.deep.equal([1, 2, 2, 2, 3, 5]);
    expect([1, 2, 3, 10].map((live) => quorumOf(live, 1))).to.deep.equal([1, 2, 3, 10]);
    expect([1, 2, 50, 100].map((live) => quorumOf(live, 0.07))).to.deep.equal([1, 2, 4, 7]);
  });

  it('opens for all exactly when the share of those that are open is reached', () => {
    const states = fc.array(fc.constantFrom(...BREAKER_STATES), { maxLength: 40 });
    fc.assert(
      fc.property(states, fc.integer({ min: 1, max: 100 }), (all, percent) => {
        const open = all.filter((state) => state === 'open').length;
        const isShare = open * 100 >= percent * all.length;
        const expected = all.length === 1 ? open === 1 : open >= 2 && isShare;
        expect(isOpenForAll(reportsOf(...all), 'redis', percent / 100)).to.equal(expected);
      }),
      { numRuns: 1000 },
    );
  });

  it('counts each dependency for itself, and a trial as no trouble', () => {
    const reports = reportsOf('open', 'open', 'closed', 'half_open', 'closed');
    expect(isOpenForAll(reports, 'redis', 0.4)).to.equal(true);
    expect(isOpenForAll(reports, 'redis', 0.6)).to.equal(false);
    expect(isOpenForAll(reports, 'mysql', 0.6)).to.equal(true);
    expect(isOpenForAll(reports, 'rocketmq', 0.1)).to.equal(false);
    expect(isOpenForAll([], 'redis', 0.5)).to.equal(false);
  });

  it('a process has recovered when it was not closed and is closed now; who went or came has not', () => {
    const before = reportsOf('open', 'half_open', 'closed');
    expect(hasRecovered(before, reportsOf('open', 'closed', 'closed'), 'redis')).to.equal(true);
    expect(hasRecovered(before, reportsOf('closed', 'half_open', 'open'), 'redis')).to.equal(true);
    expect(hasRecovered(before, reportsOf('half_open', 'open', 'closed'), 'redis')).to.equal(false);
    expect(hasRecovered(before, before.slice(2), 'redis'), 'two have gone').to.equal(false);
    expect(hasRecovered([], before, 'redis')).to.equal(false);
  });
});
