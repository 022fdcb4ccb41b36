import { expect } from 'chai';
import fc from 'fast-check';
import {
  bucketOf,
  BUCKETS,
  EDGE_FACTOR,
  LAST_EDGE_MS,
  quantileMs,
} from '../../../../src/admission/breaker/call-window.js';

const latency = fc.oneof(
  fc.double({ min: 0, max: 5, noNaN: true }),
  fc.double({ min: 0, max: 2000, noNaN: true }),
  fc.double({ min: 0, max: LAST_EDGE_MS, noNaN: true }),
);

const countsOf = (latencies: readonly number[]): Uint32Array => {
  const counts = new Uint32Array(BUCKETS);
  for (const one of latencies) counts[bucketOf(one)] = (counts[bucketOf(one)] as number) + 1;
  return counts;
};

describe('entry/breaker: latency histogram', () => {
  it('a quantile is never too low, and at most one bucket too high', () => {
    fc.assert(
      fc.property(
        fc.array(latency, { minLength: 1, maxLength: 300 }),
        fc.constantFrom(0.5, 0.95, 0.99, 1),
        (all, quantile) => {
          const sorted = [...all].sort((a, b) => a - b);
          const exactMs = sorted[Math.ceil(quantile * all.length) - 1] as number;
          const told = quantileMs(countsOf(all), all.length, quantile);
          expect(told).to.be.at.least(exactMs * (1 - 1e-9));
          expect(told).to.be.at.most(Math.max(0.25, exactMs * EDGE_FACTOR * (1 + 1e-9)));
        },
      ),
      { numRuns: 500 },
    );
  });

  it('odd values have a bucket too: none is out of bounds', () => {
    for (const odd of [-1, 0, NaN]) expect(bucketOf(odd)).to.equal(0);
    for (const late of [LAST_EDGE_MS * 2, Infinity]) expect(bucketOf(late)).to.equal(BUCKETS - 1);
    expect(quantileMs(countsOf([]), 0, 0.95)).to.equal(0);
    expect(quantileMs(countsOf([1e9]), 1, 0.95)).to.equal(LAST_EDGE_MS);
  });
});
