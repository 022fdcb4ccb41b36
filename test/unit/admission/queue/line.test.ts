import { expect } from 'chai';
import fc from 'fast-check';
import { Line, type InLine } from '../../../../src/admission/queue/line.js';
import { Pace } from '../../../../src/admission/queue/room.js';

interface Waiter extends InLine {
  readonly name: number;
}
const waiter = (name: number, order = name): Waiter => ({ name, order, block: null });

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
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
        const line = new Line<Waiter>();
        const plain: Waiter[] = [];
        let named = 0;
        for (const one of steps) {
          for (let time = 0; time < one.times; time++) {
            if (one.do === 'add') {
              const added = waiter(named++, one.order);
              line.add(added);
              const at = plain.findIndex(({ order }) => order > added.order);
              plain.splice(at === -1 ? plain.length : at, 0, added);
            } else if (one.do === 'remove' && plain.length > 0) {
              const [gone] = plain.splice(one.at % plain.length, 1);
              line.remove(gone as Waiter);
              line.remove(gone as Waiter); // A second removal changes nothing.
            } else if (one.do === 'shift') {
              const [first, expected] = [line.shift(), plain.shift()];
              if (first !== expected) expect(first).to.equal(expected); // Compares first, because `expect` is slow.
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

  it('gives credit for at most one second and one place after a pause', () => {
    const pace = new Pace(0);
    expect(pace.free(10, 60_000)).to.equal(11);
    expect(new Pace(0).free(0.1, 600_000)).to.equal(1);
  });

  it('adds ten tenths up to one place, and never admits at a rate of 0', () => {
    const pace = new Pace(0);
    for (let ms = 100; ms < 1000; ms += 100) expect(pace.free(1, ms)).to.equal(0);
    expect(pace.free(1, 1000)).to.equal(1);
    pace.take(1);
    expect(pace.free(0, 1e9)).to.equal(0);
  });

  it('frees no place before it begins', () => {
    const pace = new Pace(1000);
    expect(pace.free(4, 900)).to.equal(0);
    expect(pace.free(4, 1149)).to.equal(0);
    expect(pace.free(4, 1150)).to.equal(1);
  });
});
