import { expect } from 'chai';
import sinon from 'sinon';
import { steadyClock, systemClock } from '../../../src/programs/system-clock.js';

const HOUR_MS = 3_600_000;

describe('clocks of a program', () => {
  it('the monotonic time goes on when the clock of the machine is set back [T12]', () => {
    const before = { steadyMs: steadyClock.nowMs(), systemMs: systemClock.nowMs() };
    sinon.stub(Date, 'now').returns(before.systemMs - 80 * HOUR_MS);
    expect(systemClock.nowMs()).to.be.below(before.systemMs);
    expect(steadyClock.nowMs()).to.be.within(before.steadyMs, before.steadyMs + HOUR_MS);
  });

  it('both begin as Unix ms', () => {
    expect(Math.abs(steadyClock.nowMs() - systemClock.nowMs())).to.be.below(HOUR_MS);
  });
});
