import { expect } from 'chai';
import fc from 'fast-check';
import { LearnedRate } from '../../../../src/admission/breaker/call-window.js';

const HALF_LIFE_MS = 20_000;

/** The average of whole seconds, each weighing half as much per half-life that it is old. */
function usualOf(seconds: readonly number[]): number {
  const kept = 0.5 ** (1000 / HALF_LIFE_MS);
  const weights = seconds.map((_, index) => kept ** (seconds.length - 1 - index));
  const sum = seconds.reduce((all, calls, index) => all + calls * (weights[index] as number), 0);
  return seconds.length === 0 ? 0 : sum / weights.reduce((all, one) => all + one, 0);
}

describe('entry/breaker: learned rate', () => {
  it('is the weighted average of all whole seconds, quiet ones too', () => {
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

  it('a pause is not learned: neither its quiet nor the second in which it ends', () => {
    const rate = new LearnedRate(-1);
    for (let call = 0; call < 1000; call++) rate.count(call * 10, HALF_LIFE_MS);
    expect(rate.perSecond(10_000, HALF_LIFE_MS)).to.be.closeTo(100, 1e-9);
    rate.resume(500_400);
    rate.count(500_900, HALF_LIFE_MS);
    for (let call = 0; call < 100; call++) rate.count(501_000 + call * 10, HALF_LIFE_MS);
    expect(rate.perSecond(502_000, HALF_LIFE_MS)).to.be.closeTo(100, 1e-9);
  });
});
