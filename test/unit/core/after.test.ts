import { expect } from 'chai';
import fc from 'fast-check';
import sinon, { type SinonFakeTimers } from 'sinon';
import { after, pause } from '../../../src/core/after.js';
import { systemClock } from '../../../src/process/system-clock.js';

const TIMER_MAX_MS = 2 ** 31 - 1;
const STEP_MS = 1_000_000_000;

describe('wait of any length', () => {
  let clock: SinonFakeTimers;
  beforeEach(() => {
    clock = sinon.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  });
  afterEach(() => clock.restore());

  /** Advances in steps that the fake clock counts exactly. */
  const pass = (ms: number): void => {
    for (let leftMs = ms; leftMs > 0; leftMs -= STEP_MS) clock.tick(Math.min(leftMs, STEP_MS));
  };
  /** Waits of up to some years, and around the overflow of timers in Node.js and browsers. */
  const lengths = fc.oneof(
    fc.integer({ min: 1, max: 4 * TIMER_MAX_MS }),
    fc
      .tuple(fc.integer({ min: 1, max: 40 }), fc.integer({ min: -2, max: 2 }))
      .map(([n, off]) => n * TIMER_MAX_MS + off),
  );

  it('ends exactly on time', () => {
    fc.assert(
      fc.property(lengths, (ms) => {
        const ring = sinon.fake();
        after(ms, ring);
        pass(ms - 1);
        expect(ring.callCount, 'before').to.equal(0);
        pass(1);
        expect(ring.callCount, 'when it is over').to.equal(1);
      }),
    );
  });

  it('does not end a fraction of a millisecond early', () => {
    const ring = sinon.fake();
    after(499.4, ring);
    pass(499);
    expect(ring.callCount, 'before').to.equal(0);
    pass(1);
    expect(ring.callCount, 'when it is over').to.equal(1);
  });

  it('never ends if it is infinite or was cancelled', () => {
    const ring = sinon.fake();
    const ends = [after(Infinity, ring), after(3 * TIMER_MAX_MS, ring)];
    pass(2 * TIMER_MAX_MS);
    ends[1]?.();
    pass(100 * TIMER_MAX_MS);
    expect(ring.callCount).to.equal(0);
    ends[0]?.();
    expect(clock.countTimers()).to.equal(0);
  });

  it('ends early with its signal and leaves no timer', async () => {
    for (const waiting of [pause, systemClock.sleep]) {
      const early = new AbortController();
      const slept = waiting(Infinity, early.signal);
      await clock.tickAsync(TIMER_MAX_MS);
      early.abort();
      await slept;
      await waiting(Infinity, early.signal);
      expect(clock.countTimers()).to.equal(0);
    }
  });
});
