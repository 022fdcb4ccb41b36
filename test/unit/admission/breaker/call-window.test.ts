import { expect } from 'chai';
import fc from 'fast-check';
import {
  bucketOf,
  BUCKETS,
  LAST_EDGE_MS,
  quantileMs,
  CallWindow,
  SLOTS,
  LearnedRate,
} from '../../../../src/admission/breaker/call-window.js';

/** A quantile is too high by at most this factor, because a bucket is a quarter of an octave wide. */
const EDGE_FACTOR = 2 ** (1 / 4);

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

describe('breaker: latency histogram', () => {
  it('returns a quantile that is never too low and at most one bucket too high', () => {
    fc.assert(
      fc.property(
        fc.array(latency, { minLength: 1, maxLength: 300 }),
        fc.constantFrom(0.5, 0.95, 0.99, 1),
        (all, quantile) => {
          const sorted = [...all].sort((a, b) => a - b);
          const exactMs = sorted[Math.ceil(quantile * all.length) - 1] as number;
          const estimate = quantileMs(countsOf(all), all.length, quantile);
          expect(estimate).to.be.at.least(exactMs * (1 - 1e-9));
          expect(estimate).to.be.at.most(Math.max(0.25, exactMs * EDGE_FACTOR * (1 + 1e-9)));
        },
      ),
      { numRuns: 500 },
    );
  });

  it('counts zero, negative and NaN in its first bucket and huge values in its last', () => {
    for (const odd of [-1, 0, NaN]) expect(bucketOf(odd)).to.equal(0);
    for (const late of [LAST_EDGE_MS * 2, Infinity]) expect(bucketOf(late)).to.equal(BUCKETS - 1);
    expect(quantileMs(countsOf([]), 0, 0.95)).to.equal(0);
    expect(quantileMs(countsOf([1e9]), 1, 0.95)).to.equal(LAST_EDGE_MS);
  });
});

const WINDOW_MS = 5000;
const SLOT_MS = WINDOW_MS / SLOTS;

const step = fc.record({
  waitMs: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 3 * WINDOW_MS })),
  failed: fc.boolean(),
  latencyMs: fc.integer({ min: 1, max: 3000 }),
});

describe('breaker: call window', () => {
  it('agrees with a list of all calls in its last ten slots', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 100_000 }), fc.array(step, { maxLength: 80 }), (startMs, steps) => {
        let nowMs = startMs;
        const window = new CallWindow(WINDOW_MS, nowMs);
        const calls: { slot: number; failed: boolean; latencyMs: number }[] = [];
        for (const { waitMs, failed, latencyMs } of steps) {
          nowMs += waitMs;
          window.add(nowMs, failed, latencyMs);
          calls.push({ slot: Math.floor(nowMs / SLOT_MS), failed, latencyMs });

          const oldest = Math.floor(nowMs / SLOT_MS) - SLOTS + 1;
          const live = calls.filter(({ slot }) => slot >= oldest);
          expect(window.calls(nowMs)).to.equal(live.length);
          const failures = live.filter((call) => call.failed).length;
          expect(window.failureShare(nowMs)).to.be.closeTo(failures / live.length, 1e-12);
          const sorted = live.map((call) => call.latencyMs).sort((a, b) => a - b);
          const exactMs = sorted[Math.ceil(0.95 * sorted.length) - 1] as number;
          expect(window.p95Ms(nowMs)).to.be.within(exactMs * (1 - 1e-9), exactMs * EDGE_FACTOR * (1 + 1e-9));
          const seenMs = Math.max(SLOT_MS, nowMs - Math.max(startMs, oldest * SLOT_MS));
          expect(window.callsPerSecond(nowMs)).to.be.closeTo((1000 * live.length) / seenMs, 1e-9);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('is empty once its time has passed, even without a call', () => {
    const window = new CallWindow(WINDOW_MS, 0);
    window.add(10, true, 100);
    expect(window.calls(WINDOW_MS - 1)).to.equal(1);
    expect(window.calls(WINDOW_MS)).to.equal(0);
    expect([window.failureShare(WINDOW_MS), window.p95Ms(WINDOW_MS), window.callsPerSecond(WINDOW_MS)]).to.deep.equal([
      0, 0, 0,
    ]);
  });

  it('loses nothing when the clock is set back', () => {
    const window = new CallWindow(WINDOW_MS, 100_000);
    window.add(100_000, true, 5);
    window.add(20_000, false, 5);
    expect(window.calls(20_000)).to.equal(2);
    expect(window.calls(100_000)).to.equal(2);
  });
});

const HALF_LIFE_MS = 20_000;

/** Returns the average over whole seconds. The weight of a second halves with each half-life of its age. */
function usualOf(seconds: readonly number[]): number {
  const decay = 0.5 ** (1000 / HALF_LIFE_MS);
  const weights = seconds.map((_, index) => decay ** (seconds.length - 1 - index));
  const sum = seconds.reduce((all, calls, index) => all + calls * (weights[index] as number), 0);
  return seconds.length === 0 ? 0 : sum / weights.reduce((all, one) => all + one, 0);
}

describe('breaker: learned rate', () => {
  it('is the weighted average of all whole seconds, including seconds without calls', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 5000 }),
        fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 60 })), { maxLength: 60 }),
        (startMs, seconds) => {
          const rate = new LearnedRate(startMs);
          const fromMs = (Math.floor(startMs / 1000) + 1) * 1000;
          for (const [second, calls] of seconds.entries()) {
            for (let call = 0; call < calls; call++) rate.count(fromMs + second * 1000 + call * 16, HALF_LIFE_MS);
          }
          const endMs = fromMs + seconds.length * 1000;
          expect(rate.perSecond(endMs, HALF_LIFE_MS)).to.be.closeTo(usualOf(seconds), 1e-6);
          expect(rate.learnedMs).to.equal(seconds.length * 1000);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('learns neither from a pause nor from the second in which a pause ends', () => {
    const rate = new LearnedRate(-1);
    for (let call = 0; call < 1000; call++) rate.count(call * 10, HALF_LIFE_MS);
    expect(rate.perSecond(10_000, HALF_LIFE_MS)).to.be.closeTo(100, 1e-9);
    rate.resume(500_400);
    rate.count(500_900, HALF_LIFE_MS);
    for (let call = 0; call < 100; call++) rate.count(501_000 + call * 10, HALF_LIFE_MS);
    expect(rate.perSecond(502_000, HALF_LIFE_MS)).to.be.closeTo(100, 1e-9);
  });
});
