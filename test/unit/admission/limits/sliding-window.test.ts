import { expect } from 'chai';
import fc from 'fast-check';
import { WINDOW_SLICES } from '../../../../src/core/limits.js';
import { SlidingWindow } from '../../../../src/admission/limits/local-limit-store.js';

const MANY = 1_000_000;
const BEGIN_US = 1_800_000_000_000_000;

interface Call {
  readonly atUs: number;
  readonly subject: string;
}

const limit = fc.integer({ min: 1, max: 8 });
const windowMs = fc.integer({ min: 10, max: 6000 }).map((tens) => tens * 10);
/** Pauses in parts of the window, so that calls fall together, side by side and far apart. */
const calls = fc.array(
  fc.record({
    part: fc.oneof(
      { weight: 5, arbitrary: fc.integer({ min: 0, max: 40 }) },
      { weight: 2, arbitrary: fc.integer({ min: 0, max: 400 }) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 3000 }) },
    ),
    subject: fc.constantFrom('a', 'a', 'a', 'b', 'c'),
  }),
  { maxLength: 200 },
);

const timed = (list: readonly { part: number; subject: string }[], ofMs: number): Call[] => {
  let atUs = BEGIN_US;
  return list.map(({ part, subject }) => ({ atUs: (atUs += part * ofMs), subject }));
};

const enter = (window: SlidingWindow, { atUs, subject }: Call, most: number, subjectsMax = MANY): boolean | null => {
  const counts = window.find(subject, subjectsMax, atUs);
  if (counts === null) return null;
  if (counts.total >= most) return false;
  window.add(subject, counts);
  return true;
};

describe('sliding window', () => {
  it('against an exact log: never more in a window than allowed, and no refusal that 1.1 windows do not explain', () => {
    fc.assert(
      fc.property(limit, windowMs, calls, (most, ofMs, list) => {
        const window = new SlidingWindow(ofMs);
        const log = new Map<string, number[]>();
        const windowUs = ofMs * 1000;
        for (const call of timed(list, ofMs)) {
          const own = log.get(call.subject) ?? [];
          const since = (spanUs: number): number => own.filter((us) => us > call.atUs - spanUs).length;
          if (enter(window, call, most)) {
            own.push(call.atUs);
            log.set(call.subject, own);
            expect(since(windowUs), 'let in during the last window').to.be.at.most(most);
          } else {
            expect(since(windowUs + windowUs / WINDOW_SLICES), 'let in before a refusal').to.be.at.least(most);
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  it('who waits as long as he is told is let in, and 1 µs sooner he is not', () => {
    fc.assert(
      fc.property(limit, windowMs, calls, (most, ofMs, list) => {
        const window = new SlidingWindow(ofMs);
        for (const call of timed(list, ofMs)) {
          if (enter(window, call, most) !== false) continue;
          const counts = window.find(call.subject, MANY, call.atUs);
          if (!counts) throw new Error('not counted');
          const oldest = counts.bySlice.findLastIndex((count) => count > 0);
          const freeUs = (counts.slice - oldest + WINDOW_SLICES + 1) * ofMs * 100;
          const copy = (atUs: number): number => window.find(call.subject, MANY, atUs)?.total ?? -1;
          expect(copy(freeUs - 1)).to.be.at.least(most);
          expect(copy(freeUs)).to.be.below(most);
          return;
        }
      }),
      { numRuns: 300 },
    );
  });

  it('keeps who came in the last two windows and nobody else', () => {
    const window = new SlidingWindow(1000);
    for (let i = 0; i < 5000; i++) enter(window, { atUs: BEGIN_US + i * 10_000, subject: `u${i}` }, 1);
    expect(window.size).to.be.at.most(200);
    enter(window, { atUs: BEGIN_US + 3_600_000_000, subject: 'late' }, 1);
    expect(window.size).to.equal(1);
  });

  it('a new subject beyond the cap is not counted, a known one still is', () => {
    const window = new SlidingWindow(1000);
    const at = (subject: string): boolean | null => enter(window, { atUs: BEGIN_US, subject }, 1, 2);
    expect([at('a'), at('b'), at('c'), at('a')]).to.deep.equal([true, true, null, false]);
    expect(window.size).to.equal(2);
  });

  it('a clock that is set back forgives nobody what he did before that time', () => {
    const window = new SlidingWindow(10_000);
    enter(window, { atUs: BEGIN_US, subject: 'a' }, 2);
    enter(window, { atUs: BEGIN_US + 1_500_000, subject: 'a' }, 2);
    expect(window.find('a', MANY, BEGIN_US + 500_000)?.total).to.equal(1);
  });
});
