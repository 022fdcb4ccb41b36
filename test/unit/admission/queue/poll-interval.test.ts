import { expect } from 'chai';
import { INTERVAL_MAX_MS, pollInterval } from '../../../../src/admission/queue/waiting-rooms.js';
import { queueRules } from '../../../../src/admission/queue/queue-rules.js';

const { pollMs } = queueRules.parse({});
/** Returns how often all buyers of a room together poll per second. */
const requestsPerSecond = (waiting: number, placeOf: (nth: number) => number | null): number => {
  let sum = 0;
  for (let nth = 1; nth <= waiting; nth++) sum += 1000 / pollInterval(placeOf(nth), waiting, pollMs);
  return sum;
};

describe('the poll interval', () => {
  it('keeps 500,000 waiting buyers below 30,000 requests per second', () => {
    expect(requestsPerSecond(500_000, (nth) => nth)).to.be.within(10_000, 30_000);
    expect(requestsPerSecond(500_000, () => null)).to.be.within(10_000, 30_000);
  });

  it('grows with the number of buyers ahead, from the shortest interval to the longest', () => {
    expect(pollInterval(1, 10, pollMs)).to.equal(2000);
    expect(pollInterval(10_000, 10_000, pollMs)).to.equal(3500);
    expect(pollInterval(1_000_000, 1_000_000, pollMs)).to.equal(INTERVAL_MAX_MS);
    expect(pollInterval(null, 10, pollMs), 'few buyers before the draw').to.equal(2000);
    expect(pollInterval(null, 10_000_000, pollMs)).to.equal(INTERVAL_MAX_MS);
  });
});
