import { expect } from 'chai';
import fc from 'fast-check';
import { HOT_SALES_MAX, HotSales, SpaceSaving } from '../../../src/sales/hot-sales.js';

/** A plain model: everything that came, and when. */
class Plain {
  readonly came: { readonly key: string; readonly atMs: number }[] = [];

  count(key: string, fromMs = -Infinity): number {
    return this.came.filter((one) => one.key === key && one.atMs >= fromMs).length;
  }
}

const key = fc.integer({ min: 0, max: 30 }).map((index) => String(Math.floor(index ** 2 / 40)));

describe('space-saving', () => {
  it('counts are never too low, too high by the total / capacity at most, and what came more often has a place', () => {
    fc.assert(
      fc.property(fc.array(key, { maxLength: 300 }), fc.integer({ min: 1, max: 12 }), (keys, capacity) => {
        const sketch = new SpaceSaving(capacity);
        const plain = new Plain();
        for (const one of keys) {
          sketch.add(one);
          plain.came.push({ key: one, atMs: 0 });
        }
        const counts = new Map(sketch.counts().map((one) => [one.key, one]));
        expect(sketch.size).to.be.at.most(capacity);
        expect(sketch.total).to.equal(keys.length);
        for (const [name, { count, error }] of counts) {
          const truth = plain.count(name);
          expect(count, name).to.be.within(truth, truth + error);
          expect(error, name).to.be.at.most(keys.length / capacity);
        }
        for (const name of new Set(keys)) {
          if (plain.count(name) > keys.length / capacity) expect([...counts.keys()], name).to.include(name);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('hot-sales', () => {
  /** Presses, each so many ms after the one before. */
  const presses = fc.array(fc.record({ key, afterMs: fc.integer({ min: 0, max: 1500 }) }), { maxLength: 200 });

  it('names each sale at its rate over the last ten seconds, as a plain model counts it', () => {
    fc.assert(
      fc.property(presses, fc.integer({ min: 1, max: 20 }), (all, tenths) => {
        let nowMs = 1_000_000;
        const hot = new HotSales({ perSecond: tenths / 10 }, { monotonicMs: () => nowMs });
        const plain = new Plain();
        for (const { key: saleId, afterMs } of all) {
          nowMs += afterMs;
          hot.saw(saleId);
          plain.came.push({ key: saleId, atMs: nowMs });
        }
        const fromMs = (Math.floor(nowMs / 1000) - 9) * 1000; // this second and the nine before it
        const expected = [...new Set(all.map((one) => one.key))]
          .map((saleId) => ({ saleId, perSecond: plain.count(saleId, fromMs) / 10 }))
          .filter(({ perSecond }) => perSecond >= tenths / 10);
        const named = hot.hottest();
        expect(named).to.have.deep.members(expected.length > HOT_SALES_MAX ? named : expected);
        expect(named.map(({ perSecond }) => perSecond)).to.deep.equal(
          expected
            .map(({ perSecond }) => perSecond)
            .sort((a, b) => b - a)
            .slice(0, HOT_SALES_MAX),
        );
      }),
      { numRuns: 300 },
    );
  });

  it('thousands of quiet sales take no more memory, and do not hide the hot one', () => {
    let nowMs = 0;
    const hot = new HotSales({ perSecond: 100 }, { monotonicMs: () => nowMs });
    for (let press = 0; press < 20_000; press++) {
      nowMs += 0.5;
      hot.saw(press % 2 === 0 ? '7' : `cold-${press}`);
    }
    const [first, ...others] = hot.hottest();
    expect(others).to.deep.equal([]);
    expect(first?.saleId).to.equal('7');
    expect(first?.perSecond).to.be.within(900, 1000);
  });

  it('forgets what is ten seconds old, also after a long silence, and works with a clock that steps back', () => {
    let nowMs = 50_000;
    const hot = new HotSales({ perSecond: 1 }, { monotonicMs: () => nowMs });
    for (let press = 0; press < 50; press++) hot.saw('7');
    nowMs += 9_000;
    expect(hot.hottest()).to.deep.equal([{ saleId: '7', perSecond: 5 }]);
    nowMs -= 20_000;
    expect(hot.hottest()).to.deep.equal([{ saleId: '7', perSecond: 5 }]);
    nowMs += 21_000;
    expect(hot.hottest()).to.deep.equal([]);
    nowMs += 3_600_000;
    hot.saw('8');
    expect(hot.hottest()).to.deep.equal([]);
  });

  it('counts nothing when it is off', () => {
    const hot = new HotSales({ perSecond: 0 }, { monotonicMs: () => expect.fail('it reads no clock') });
    hot.saw('7');
    expect(hot.hottest()).to.deep.equal([]);
  });
});
