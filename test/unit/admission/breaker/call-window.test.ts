import { expect } from 'chai';
import fc from 'fast-check';
import { CallWindow, SLOTS, EDGE_FACTOR } from '../../../../src/admission/breaker/call-window.js';

const WINDOW_MS = 5000;
const SLOT_MS = WINDOW_MS / SLOTS;

const step = fc.record({
  waitMs: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 3 * WINDOW_MS })),
  failed: fc.boolean(),
  latencyMs: fc.integer({ min: 1, max: 3000 }),
});

describe('entry/breaker: call window', () => {
  it('is what a list of all calls says of its last ten slots', () => {
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

  it('is empty again after its time, and says so without a call', () => {
    const window = new CallWindow(WINDOW_MS, 0);
    window.add(10, true, 100);
    expect(window.calls(WINDOW_MS - 1)).to.equal(1);
    expect(window.calls(WINDOW_MS)).to.equal(0);
    expect([window.failureShare(WINDOW_MS), window.p95Ms(WINDOW_MS), window.callsPerSecond(WINDOW_MS)]).to.deep.equal([
      0, 0, 0,
    ]);
  });

  it('a clock that goes back loses nothing', () => {
    const window = new CallWindow(WINDOW_MS, 100_000);
    window.add(100_000, true, 5);
    window.add(20_000, false, 5);
    expect(window.calls(20_000)).to.equal(2);
    expect(window.calls(100_000)).to.equal(2);
  });
});
