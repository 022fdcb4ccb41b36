import { expect } from 'chai';
import fc from 'fast-check';
import {
  probeWaitMs,
  scoreOf,
  type Signals,
  AdaptiveBreaker,
} from '../../../../src/admission/breaker/adaptive-breaker.js';
import { rulesOf } from './rules-of.js';
import type { BreakerRules } from '../../../../src/admission/breaker/breaker-rules.js';
import type { BreakerState } from '../../../../src/core/ports/admission-stores.js';
import { ManualClock } from '../../../helpers/memory/manual-clock.js';

const rules = rulesOf();
const CALM: Signals = { calls: 1000, perSecond: 100, usualPerSecond: 100, failureShare: 0, p95Ms: 5 };

const signals: fc.Arbitrary<Signals> = fc.record({
  calls: fc.integer({ min: 0, max: 200 }),
  perSecond: fc.double({ min: 0, max: 1e6, noNaN: true }),
  usualPerSecond: fc.option(fc.double({ min: 0, max: 1e5, noNaN: true })),
  failureShare: fc.double({ min: 0, max: 1, noNaN: true }),
  p95Ms: fc.double({ min: 0, max: 65_536, noNaN: true }),
});

describe('breaker: score', () => {
  it('never falls when a signal rises, and is the weighted sum of all signals', () => {
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

  it('never opens on too few calls, whatever their results', () => {
    const bad = { ...CALM, failureShare: 1, p95Ms: 60_000 };
    expect(scoreOf({ ...bad, calls: rules.callsMin - 1 }, rules)).to.equal(0);
    expect(scoreOf({ ...bad, calls: rules.callsMin }, rules)).to.equal(1);
  });

  it('measures load against the usual rate once there are enough calls', () => {
    const slow = { ...CALM, p95Ms: 1000 };
    expect(scoreOf({ ...slow, perSecond: 5000, usualPerSecond: 1000 }, rules)).to.be.closeTo(0.6, 1e-9);
    expect(scoreOf({ ...slow, perSecond: 200, usualPerSecond: 1 }, rules)).to.be.closeTo(0.4, 1e-9);
    expect(scoreOf({ ...slow, perSecond: 5000, usualPerSecond: null }, rules)).to.be.closeTo(0.4, 1e-9);
  });

  it('doubles the wait up to a maximum, and only shortens the wait by jitter', () => {
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

interface Setting {
  readonly clock: ManualClock;
  readonly breaker: AdaptiveBreaker;
  readonly moves: BreakerState[];
  readonly refusals: { real: number; dry: number };
}

function settingOf(rules: () => BreakerRules, random = (): number => 0.5): Setting {
  const clock = new ManualClock(1_000_000);
  const moves: BreakerState[] = [];
  const refusals = { real: 0, dry: 0 };
  const breaker = new AdaptiveBreaker({
    rules,
    clock,
    random,
    moved: (state) => moves.push(state),
    refused: (mode) => (mode === 'dry_run' ? refusals.dry++ : refusals.real++),
  });
  return { clock, breaker, moves, refusals };
}

/** Makes calls of 5 ms, `everyMs` apart. */
function call({ clock, breaker }: Setting, times: number, failed: boolean, everyMs = 100): void {
  for (let i = 0; i < times; i++) {
    const era = breaker.begin();
    clock.advance(everyMs);
    breaker.end(era, failed, 5);
  }
}

describe('breaker of one process', () => {
  it('opens on failures, waits longer after each failed trial, and closes after a success', () => {
    const rules = rulesOf({ callsMin: 10, trial: { calls: 1 }, probe: { firstMs: 1000, capMs: 3000, jitter: 0 } });
    const setting = settingOf(() => rules);
    const { clock, breaker } = setting;
    call(setting, 9, true);
    expect(breaker.state(), 'too few calls').to.equal('closed');
    call(setting, 1, true);
    expect(breaker.state()).to.equal('open');

    for (const waitMs of [1000, 2000, 3000, 3000]) {
      clock.advance(waitMs - 1);
      expect(breaker.refuses(), `${waitMs} ms are not over`).to.equal(true);
      clock.advance(1);
      expect(breaker.refuses(), 'the request of the trial').to.equal(false);
      expect(breaker.refuses(), 'the next one').to.equal(true);
      call(setting, 1, true, 0);
      expect(breaker.state()).to.equal('open');
    }
    clock.advance(3000);
    call(setting, 1, false);
    expect(breaker.state()).to.equal('closed');
    expect(breaker.refuses()).to.equal(false);
    call(setting, 9, true);
    expect(breaker.state(), 'what was before the trial is forgotten').to.equal('closed');
  });

  it('returns to the first wait only after a calm period', () => {
    const probe = { firstMs: 1000, capMs: 60_000, jitter: 0, calmMs: 20_000 };
    const rules = rulesOf({ callsMin: 1, trial: { calls: 1 }, probe });
    const setting = settingOf(() => rules);
    const { clock, breaker } = setting;
    const waitMs = (): number => {
      const fromMs = clock.nowMs();
      while (breaker.state() === 'open') clock.advance(100);
      return clock.nowMs() - fromMs;
    };
    call(setting, 1, true);
    expect(waitMs()).to.equal(1000);
    call(setting, 1, false);
    call(setting, 1, true);
    expect(waitMs(), 'soon').to.equal(2000);
    call(setting, 1, false);
    clock.advance(20_000);
    call(setting, 1, true);
    expect(waitMs(), 'after calm').to.equal(1000);
  });

  it('opens on slowness together with load, but not on slowness or load alone', () => {
    const rules = rulesOf({ callsMin: 1, rate: { floorPerSecond: 1, warmUpMs: 20_000 } });
    const run = (latencyMs: number, everyMs: number): BreakerState => {
      const setting = settingOf(() => rules);
      call(setting, 3000, false, 100); // Ten calls a second for five minutes.
      for (let i = 0; i < 12_000 / everyMs && setting.breaker.state() === 'closed'; i++) {
        const era = setting.breaker.begin();
        setting.clock.advance(everyMs);
        setting.breaker.end(era, false, latencyMs);
      }
      return setting.breaker.state();
    };
    expect(run(5, 10), 'a crowd').to.equal('closed');
    expect(run(2000, 100), 'slow').to.equal('closed');
    expect(run(2000, 20), 'a slow crowd').to.equal('open');
  });

  it('ignores calls that end during a trial but began before the breaker opened', () => {
    const rules = rulesOf({ callsMin: 1, trial: { calls: 1 }, probe: { firstMs: 100, jitter: 0 } });
    const setting = settingOf(() => rules);
    const { clock, breaker } = setting;
    const old = breaker.begin();
    call(setting, 1, true);
    clock.advance(100);
    expect(breaker.state()).to.equal('half_open');
    breaker.end(old, false, 5);
    expect(breaker.state()).to.equal('half_open');
    breaker.end(breaker.begin(), false, 5);
    expect(breaker.state()).to.equal('closed');
  });

  it('admits more requests if the requests of a trial never reach the dependency', () => {
    const rules = rulesOf({ callsMin: 1, trial: { calls: 2, waitMs: 500 }, probe: { firstMs: 100, jitter: 0 } });
    const setting = settingOf(() => rules);
    const { clock, breaker } = setting;
    call(setting, 1, true);
    clock.advance(100);
    const asked = (): boolean[] => Array.from({ length: 4 }, () => breaker.refuses());
    expect(asked()).to.deep.equal([false, false, true, true]);
    clock.advance(499);
    expect(asked()).to.deep.equal([true, true, true, true]);
    clock.advance(1);
    expect(asked()).to.deep.equal([false, false, true, true]);
  });

  it('opens and closes with the quorum, but reports only its own state', () => {
    const rules = rulesOf();
    const { clock, breaker } = settingOf(() => rules);
    breaker.followQuorum(true, clock.monotonicMs() + 1000);
    expect(breaker.refuses()).to.equal(true);
    expect(breaker.state()).to.equal('closed');
    clock.advance(1000);
    expect(breaker.refuses()).to.equal(false);
    breaker.followQuorum(true, clock.monotonicMs() + 1000);
    breaker.followQuorum(false, clock.monotonicMs() + 1000);
    expect(breaker.refuses()).to.equal(false);
  });

  it('learns nothing while off, and counts without refusing in a dry run', () => {
    let rules = rulesOf({ mode: 'off', callsMin: 1 });
    const setting = settingOf(() => rules);
    const { breaker, refusals, moves } = setting;
    call(setting, 100, true);
    breaker.followQuorum(true, Infinity);
    expect([breaker.refuses(), breaker.begin(), moves.length]).to.deep.equal([false, 0, 0]);
    breaker.followQuorum(false, 0);

    rules = rulesOf({ mode: 'dry_run', callsMin: 1 });
    call(setting, 1, true);
    expect([breaker.state(), breaker.refuses()]).to.deep.equal(['open', false]);
    expect(refusals).to.deep.equal({ real: 0, dry: 1 });

    rules = rulesOf({ callsMin: 1 });
    expect(breaker.refuses()).to.equal(true);
    expect(refusals).to.deep.equal({ real: 1, dry: 1 });
  });

  it('uses a new window length from the next call on', () => {
    let rules = rulesOf({ callsMin: 3, windowMs: 60_000 });
    const setting = settingOf(() => rules);
    call(setting, 2, true);
    rules = rulesOf({ callsMin: 3, windowMs: 1000 });
    call(setting, 2, true);
    expect(setting.breaker.state(), 'the window is a new one').to.equal('closed');
    call(setting, 1, true);
    expect(setting.breaker.state()).to.equal('open');
  });
});
