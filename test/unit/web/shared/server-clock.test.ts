import { expect } from 'chai';
import fc from 'fast-check';
import {
  clockErrorMs,
  clocksParted,
  learnTime,
  serverTimeMs,
  suspectTime,
  type ServerClock,
} from '../../../../web/shared/server-clock.js';

const SERVER = Date.UTC(2030, 0, 1, 19, 59);
/** Builds the answer of a server that is `aheadMs` ahead of the browser's clock. */
const sample = (aheadMs: number, sentMs: number, upMs: number, downMs: number, cachedMs = 0, keptMs = 0) => ({
  serverMs: Math.floor(sentMs + upMs + aheadMs - cachedMs),
  sentMs,
  receivedMs: sentMs + upMs + downMs,
  keptMs,
});

describe('server clock of a page', () => {
  it('differs from the server by at most one round trip, and tends to be behind', () => {
    const clock = learnTime(null, sample(SERVER, 1000, 40, 60));
    expect(clockErrorMs(clock)).to.be.closeTo(75, 1);
    expect(serverTimeMs(clock, 2000)).to.be.closeTo(SERVER + 2000 - 35, 1);
    const withConnection = learnTime(null, sample(SERVER, 1000, 300, 20));
    expect(serverTimeMs(withConnection, 2000), 'a slow request').to.be.closeTo(SERVER + 2000, 61);
  });

  it('improves with a quick answer, and is not worsened by a slow answer', () => {
    const slow = learnTime(null, sample(SERVER, 1000, 500, 100));
    const quick = learnTime(slow, sample(SERVER, 3000, 5, 5));
    expect(clockErrorMs(quick)).to.be.at.most(9);
    expect(clockErrorMs(learnTime(quick, sample(SERVER, 5000, 100, 900)))).to.be.at.most(10);
  });

  it('differs from the server by at most its stated error, even behind a cache', () => {
    const trip = fc.record({
      upMs: fc.integer({ min: 0, max: 3000 }),
      downMs: fc.integer({ min: 0, max: 3000 }),
      cachedMs: fc.integer({ min: 0, max: 1000 }),
    });
    fc.assert(
      fc.property(fc.array(trip, { minLength: 1, maxLength: 8 }), (trips) => {
        let clock: ServerClock | null = null;
        let atMs = 0;
        for (const { upMs, downMs, cachedMs } of trips) {
          clock = learnTime(clock, sample(SERVER, atMs, upMs, downMs, cachedMs, cachedMs > 0 ? 1000 : 0));
          atMs += upMs + downMs + 1000;
        }
        const known = clock as ServerClock;
        const wrongMs = Math.abs(serverTimeMs(known, atMs) - (SERVER + atMs));
        expect(wrongMs).to.be.at.most(clockErrorMs(known) + 1 + atMs * 200e-6);
      }),
    );
  });

  it('is closer after several cached answers than after one answer', () => {
    let clock: ServerClock | null = null;
    const errors: number[] = [];
    for (const [i, cachedMs] of [900, 100, 550, 20, 980].entries()) {
      clock = learnTime(clock, sample(SERVER, i * 1100, 10, 10, cachedMs, 1000));
      errors.push(clockErrorMs(clock));
    }
    expect(errors[0]).to.be.above(700);
    expect(errors.at(-1)).to.be.below(90);
  });

  it('follows a drifting clock', () => {
    let clock = learnTime(null, sample(SERVER, 0, 2, 2));
    for (let atMs = 60_000; atMs <= 3_600_000; atMs += 60_000) {
      clock = learnTime(clock, sample(SERVER + atMs * 80e-6, atMs, 20, 20));
    }
    expect(Math.abs(serverTimeMs(clock, 3_600_000) - (SERVER + 3_600_000 * (1 + 80e-6)))).to.be.at.most(31);
  });

  it('starts anew with the next answer after the clock was set or the tab slept', () => {
    const before = learnTime(null, sample(SERVER, 0, 5, 5));
    const set = learnTime(before, sample(SERVER + 90_000, 1000, 50, 50));
    expect(Math.abs(serverTimeMs(set, 1000) - (SERVER + 91_000))).to.be.at.most(76);
    // The monotonic clock stood still except for 40 ms. Both answers agree, but the first one is still not trusted.
    const slept = learnTime(suspectTime(before), sample(SERVER + 40, 1000, 50, 50));
    expect(slept.aheadMinMs).to.equal(sample(SERVER + 40, 1000, 50, 50).serverMs - 1100);
    expect(slept.isSuspect).to.equal(false);
    expect(suspectTime(null)).to.equal(null);
  });

  it('detects a sleep or a changed wall clock, and ignores a late timer', () => {
    const at = (monotonicMs: number, wallMs: number) => ({ monotonicMs, wallMs });
    expect(clocksParted(at(0, 5000), at(60_000, 65_000))).to.equal(false);
    expect(clocksParted(at(0, 5000), at(60_000, 65_900))).to.equal(false);
    expect(clocksParted(at(0, 5000), at(5000, 3_605_000)), 'monotonic time stood still').to.equal(true);
    expect(clocksParted(at(0, 5000), at(5000, 5000 - 3_600_000)), 'the clock was set back').to.equal(true);
  });
});
