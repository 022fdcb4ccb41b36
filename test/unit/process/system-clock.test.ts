import { expect } from 'chai';
import sinon from 'sinon';
import { systemClock } from '../../../src/process/system-clock.js';

const HOUR_MS = 3_600_000;

describe('the clock of a program', () => {
  it('keeps its monotonic time running if the machine clock is set back [T12]', () => {
    const before = { monotonicMs: systemClock.monotonicMs(), nowMs: systemClock.nowMs() };
    sinon.stub(Date, 'now').returns(before.nowMs - 80 * HOUR_MS);
    expect(systemClock.nowMs()).to.be.below(before.nowMs);
    expect(systemClock.monotonicMs()).to.be.within(before.monotonicMs, before.monotonicMs + HOUR_MS);
  });

  it('returns wall time as Unix ms', () => {
    expect(Math.abs(systemClock.nowMs() - Date.now())).to.be.below(1000);
  });
});
