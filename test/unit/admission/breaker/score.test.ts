import { expect } from 'chai';
import fc from 'fast-check';
import { probeWaitMs, scoreOf, type Signals } from '../../../../src/admission/breaker/adaptive-breaker.js';
import { rulesOf } from './rules-of.js';

const rules = rulesOf();
const CALM: Signals = { calls: 1000, perSecond: 100, usualPerSecond: 100, failureShare: 0, p95Ms: 5 };

const signals: fc.Arbitrary<Signals> = fc.record({
  calls: fc.integer({ min: 0, max: 200 }),
  perSecond: fc.double({ min: 0, max: 1e6, noNaN: true }),
  usualPerSecond: fc.option(fc.double({ min: 0, max: 1e5, noNaN: true })),
  failureShare: fc.double({ min: 0, max: 1, noNaN: true }),
  p95Ms: fc.double({ min: 0, max: 65_536, noNaN: true }),
});

describe('entry/breaker: score', () => {
  it('a crowd alone never opens, however large', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e9, noNaN: true }), (perSecond) => {
        expect(scoreOf({ ...CALM, perSecond }, rules)).to.be.below(rules.openAt);
      }),
    );
  });

  it('more of any signal never makes the score less, and all of them add up to the weights', () => {
    fc.assert(
      fc.property(signals, fc.double({ min: 1, max: 10, noNaN: true }), (one, factor) => {
        const score = scoreOf(one, rules);
        expect(score).to.be.within(0, 0.2 + 0.6 + 0.4 + 1e-9);
        for (const key of ['perSecond', 'failureShare', 'p95Ms'] as const) {
          expect(scoreOf({ ...one, [key]: one[key] * factor }, rules)).to.be.at.least(score);
        }
      }),
    );
  });

  it('few calls say nothing, whatever became of them', () => {
    const bad = { ...CALM, failureShare: 1, p95Ms: 60_000 };
    expect(scoreOf({ ...bad, calls: rules.callsMin - 1 }, rules)).to.equal(0);
    expect(scoreOf({ ...bad, calls: rules.callsMin }, rules)).to.equal(1);
  });

  it('failures alone open; slowness opens together with failures or a crowd', () => {
    expect(scoreOf({ ...CALM, failureShare: 0.43 }, rules)).to.be.below(0.5);
    expect(scoreOf({ ...CALM, failureShare: 0.44 }, rules)).to.be.at.least(0.5);
    expect(scoreOf({ ...CALM, p95Ms: 60_000 }, rules)).to.equal(0.4);
    expect(scoreOf({ ...CALM, p95Ms: 1000, failureShare: 0.2 }, rules)).to.be.closeTo(0.55, 1e-9);
    expect(scoreOf({ ...CALM, p95Ms: 1000, perSecond: 350 }, rules)).to.be.closeTo(0.5, 1e-9);
  });

  it('a crowd is measured by what is usual, by the floor below it, and not before something was learned', () => {
    const slow = { ...CALM, p95Ms: 1000 };
    expect(scoreOf({ ...slow, perSecond: 5000, usualPerSecond: 1000 }, rules)).to.be.closeTo(0.6, 1e-9);
    expect(scoreOf({ ...slow, perSecond: 200, usualPerSecond: 1 }, rules)).to.be.closeTo(0.4, 1e-9);
    expect(scoreOf({ ...slow, perSecond: 5000, usualPerSecond: null }, rules)).to.be.closeTo(0.4, 1e-9);
  });

  it('the wait doubles, is jittered downwards only, and has a cap', () => {
    const probe = { firstMs: 100, capMs: 1000, jitter: 0.5, calmMs: 0 };
    expect([0, 1, 2, 3, 4, 2000].map((failed) => probeWaitMs(failed, 0, probe))).to.deep.equal([
      100, 200, 400, 800, 1000, 1000,
    ]);
    fc.assert(
      fc.property(fc.nat(200), fc.double({ min: 0, max: 1, noNaN: true }), (failed, random) => {
        const full = probeWaitMs(failed, 0, probe);
        expect(probeWaitMs(failed, random, probe)).to.be.within(full / 2, full);
      }),
    );
  });
});
