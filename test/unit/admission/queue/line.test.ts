import { expect } from 'chai';
import fc from 'fast-check';
import { Line, type InLine } from '../../../../src/admission/queue/line.js';
import { Pace } from '../../../../src/admission/queue/room.js';

interface Waiter extends InLine {
  readonly name: number;
}
const waiter = (name: number, order = name): Waiter => ({ name, order, block: null });

/** A source of chance that begins the same each time. */
function chance(seed: number): (max: number) => number {
  let state = seed;
  return (max) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * max);
  };
}

describe('line', () => {
  it('has the order of a sorted array after any additions, removals and reads', () => {
    const step = fc.oneof(
      {
        weight: 5,
        arbitrary: fc.record({
          do: fc.constant('add' as const),
          order: fc.nat({ max: 20 }),
          times: fc.nat({ max: 300 }),
        }),
      },
      {
        weight: 3,
        arbitrary: fc.record({ do: fc.constant('remove' as const), at: fc.nat(), times: fc.nat({ max: 300 }) }),
      },
      { weight: 3, arbitrary: fc.record({ do: fc.constant('shift' as const), times: fc.nat({ max: 300 }) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('shuffle' as const) }) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), fc.nat(), (steps, seed) => {
        const line = new Line<Waiter>();
        let plain: Waiter[] = [];
        let named = 0;
        let ordered = true; // after a draw the orders are equal, as those of a crowd that waited for it
        for (const one of steps) {
          for (let time = 0; time < ('times' in one ? one.times : 1); time++) {
            if (one.do === 'add') {
              const added = waiter(named++, ordered ? one.order : 0);
              line.add(added);
              const at = plain.findIndex(({ order }) => order > added.order);
              plain.splice(at === -1 ? plain.length : at, 0, added);
            } else if (one.do === 'remove' && plain.length > 0) {
              const [gone] = plain.splice(one.at % plain.length, 1);
              line.remove(gone as Waiter);
              line.remove(gone as Waiter); // twice is once
            } else if (one.do === 'shift') {
              const [first, expected] = [line.shift(), plain.shift()];
              if (first !== expected) expect(first).to.equal(expected); // `expect` itself is slow
            } else if (one.do === 'shuffle') {
              const equal = plain.map(({ name }) => waiter(name, 0));
              for (const each of plain) line.remove(each);
              for (const each of equal) line.add(each);
              line.shuffle(chance(seed));
              plain = equal.sort((a, b) => line.ahead(a) - line.ahead(b));
              ordered = false;
            }
          }
          expect(line.size).to.equal(plain.length);
          for (let at = 0; at < plain.length; at += 37) {
            const ahead = line.ahead(plain[at] as Waiter);
            if (ahead !== at) expect(ahead).to.equal(at);
          }
        }
        expect(plain.map(() => line.shift()?.name)).to.deep.equal(plain.map(({ name }) => name));
        expect(line.shift()).to.equal(undefined);
      }),
      { numRuns: 100 },
    );
  });

  it('a draw keeps every buyer once, and every order is equally likely', () => {
    const pick = chance(7);
    const seen = new Map<string, number>();
    const DRAWS = 6000;
    for (let draw = 0; draw < DRAWS; draw++) {
      const line = new Line<Waiter>();
      for (const name of [1, 2, 3]) line.add(waiter(name, 0));
      line.shuffle(pick);
      const order = [line.shift(), line.shift(), line.shift()].map((one) => one?.name).join('');
      seen.set(order, (seen.get(order) ?? 0) + 1);
    }
    expect([...seen.keys()].sort()).to.deep.equal(['123', '132', '213', '231', '312', '321']);
    for (const [order, times] of seen) expect(times, order).to.be.within(900, 1100); // 1000; σ is 29
  });
});

describe('pace', () => {
  it('admits rate × time, however often it is called', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.1, max: 5000, noNaN: true }),
        fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 300 }),
        (perSecond, gapsMs) => {
          const pace = new Pace(0);
          let [nowMs, admitted] = [0, 0];
          for (const gapMs of gapsMs) {
            nowMs += gapMs;
            const free = pace.free(perSecond, nowMs);
            pace.take(free);
            admitted += free;
            expect(admitted).to.be.within((perSecond * nowMs) / 1000 - 1.001, (perSecond * nowMs) / 1000 + 0.001);
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  it('a pause gives credit for one second and one place at most', () => {
    const pace = new Pace(0);
    expect(pace.free(10, 60_000)).to.equal(11);
    expect(new Pace(0).free(0.1, 600_000)).to.equal(1);
  });

  it('ten tenths are one place; at a rate of 0 there is never one', () => {
    const pace = new Pace(0);
    for (let ms = 100; ms < 1000; ms += 100) expect(pace.free(1, ms)).to.equal(0);
    expect(pace.free(1, 1000)).to.equal(1);
    pace.take(1);
    expect(pace.free(0, 1e9)).to.equal(0);
  });

  it('nothing is free before it begins', () => {
    const pace = new Pace(1000);
    expect(pace.free(4, 900)).to.equal(0);
    expect(pace.free(4, 1149)).to.equal(0);
    expect(pace.free(4, 1150)).to.equal(1);
  });
});
