import { expect } from 'chai';
import fc from 'fast-check';
import { Timer, TimingWheel } from '../../../../src/admission/queue/timing-wheel.js';

const TICK_MS = 100;
const START_MS = 1_767_225_600_000;

type Step =
  | { readonly do: 'schedule'; readonly id: number; readonly inMs: number; readonly everyMs: number | null }
  | { readonly do: 'cancel'; readonly id: number }
  | { readonly do: 'advance'; readonly byMs: number };

interface Admission {
  readonly id: number;
  readonly dueTick: number;
  readonly made: number;
  readonly everyMs: number | null;
}

/** The wheel as anybody would write it who had all the time in the world: a list, sorted each time it is looked at. */
class PlainList {
  entries: Admission[] = [];
  fired: string[] = [];
  #made = 0;
  #tick = 0;

  schedule(id: number, atMs: number, everyMs: number | null): void {
    this.cancel(id);
    const dueTick = Math.max(this.#tick + 1, Math.ceil((atMs - START_MS) / TICK_MS));
    this.entries.push({ id, dueTick, made: this.#made++, everyMs });
  }

  cancel(id: number): void {
    this.entries = this.entries.filter((entry) => entry.id !== id);
  }

  advance(nowMs: number): void {
    const target = Math.floor((nowMs - START_MS) / TICK_MS);
    for (;;) {
      const [first] = this.entries.sort((a, b) => a.dueTick - b.dueTick || a.made - b.made);
      if (first === undefined || first.dueTick > target) break;
      this.#tick = first.dueTick;
      this.cancel(first.id);
      this.fired.push(`${first.id} at ${nowMs}`);
      if (first.everyMs !== null) this.schedule(first.id, nowMs + first.everyMs, first.everyMs);
    }
    this.#tick = Math.max(this.#tick, target);
  }
}

class Bell extends Timer {
  readonly ring: (nowMs: number) => void;
  constructor(ring: (nowMs: number) => void) {
    super();
    this.ring = ring;
  }
  fire(nowMs: number): void {
    this.ring(nowMs);
  }
}

/** Short ones, those around the borders of the levels, and those beyond the last one. */
const spanMs = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: -500, max: 3000 }) },
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 64 ** 2 * TICK_MS * 2 }) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.constantFrom(1, 2, 3, 4), fc.integer({ min: 1, max: 3 }), fc.integer({ min: -2, max: 2 }))
      .map(([level, times, off]) => (64 ** level * times + off) * TICK_MS),
  },
);
const id = fc.nat({ max: 11 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('schedule' as const), id, inMs: spanMs, everyMs: fc.option(spanMs) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), id }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('advance' as const), byMs: spanMs.map(Math.abs) }) },
);

/** Two of one tick, beyond the last level when they were made, at different times. */
const BEYOND: Step[] = [
  { do: 'schedule', id: 0, inMs: (64 ** 4 + 2) * TICK_MS, everyMs: null },
  { do: 'schedule', id: 1, inMs: 0, everyMs: 0 },
  { do: 'advance', byMs: TICK_MS + 1 },
  { do: 'advance', byMs: 64 ** 4 * TICK_MS },
  { do: 'advance', byMs: 64 * TICK_MS },
];

describe('timing wheel', () => {
  it('fires what a sorted list fires, when it fires it and in its order', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let nowMs = START_MS;
        const list = new PlainList();
        const wheel = new TimingWheel(TICK_MS, START_MS);
        const fired: string[] = [];
        const bells = new Map<number, Bell>();
        const schedule = (bell: number, inMs: number, everyMs: number | null): void => {
          const known = bells.get(bell);
          if (known) wheel.cancel(known);
          const made = new Bell((at) => {
            fired.push(`${bell} at ${at}`);
            if (everyMs !== null) wheel.schedule(made, at + everyMs);
          });
          bells.set(bell, made);
          wheel.schedule(made, nowMs + inMs);
        };
        for (const one of steps) {
          if (one.do === 'schedule') {
            list.schedule(one.id, nowMs + one.inMs, one.everyMs);
            schedule(one.id, one.inMs, one.everyMs);
          } else if (one.do === 'cancel') {
            list.cancel(one.id);
            const known = bells.get(one.id);
            if (known) wheel.cancel(known);
          } else {
            nowMs += one.byMs;
            list.advance(nowMs);
            wheel.advance(nowMs);
            expect(fired).to.deep.equal(list.fired);
          }
          expect(wheel.size).to.equal(list.entries.length);
        }
      }),
      { numRuns: 600, examples: [[BEYOND]] },
    );
  });

  it('is never early and at most one tick late, when it is advanced each tick', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 500_000 }), { minLength: 1, maxLength: 40 }), (delays) => {
        const wheel = new TimingWheel(TICK_MS, START_MS);
        const late: number[] = [];
        for (const delayMs of delays) {
          wheel.schedule(new Bell((at) => late.push(at - START_MS - delayMs)), START_MS + delayMs);
        }
        for (let ms = 0; ms <= 500_000 + TICK_MS; ms += TICK_MS) wheel.advance(START_MS + ms);
        expect(late).to.have.length(delays.length);
        for (const lateMs of late) expect(lateMs).to.be.within(0, TICK_MS);
      }),
      { numRuns: 50 },
    );
  });

  it('a timer that is set again is due once, at its new time', () => {
    const wheel = new TimingWheel(TICK_MS, START_MS);
    const fired: number[] = [];
    const bell = new Bell((at) => fired.push(at));
    wheel.schedule(bell, START_MS + 1000);
    wheel.schedule(bell, START_MS + 5000);
    wheel.advance(START_MS + 4900);
    expect(fired).to.deep.equal([]);
    wheel.advance(START_MS + 9000);
    wheel.cancel(bell); // long gone
    expect([fired, wheel.size]).to.deep.equal([[START_MS + 9000], 0]);
  });

  it('a clock that steps back fires nothing, and nothing twice', () => {
    const wheel = new TimingWheel(TICK_MS, START_MS);
    const fired: number[] = [];
    wheel.schedule(new Bell((at) => fired.push(at)), START_MS + 1000);
    wheel.advance(START_MS + 1000);
    wheel.advance(START_MS - 5000);
    wheel.schedule(new Bell((at) => fired.push(at)), START_MS - 5000);
    wheel.advance(START_MS - 5000);
    expect(fired).to.have.length(1);
    wheel.advance(START_MS + 1100);
    expect(fired).to.have.length(2);
  });

  it('an empty wheel, and one with a far timer, take any jump at once', () => {
    const wheel = new TimingWheel(1, START_MS);
    wheel.advance(START_MS + 1e12);
    const fired: number[] = [];
    wheel.schedule(new Bell((at) => fired.push(at)), START_MS + 1e12 + 5e10);
    wheel.advance(START_MS + 2e12);
    expect(fired).to.have.length(1);
  });
});
