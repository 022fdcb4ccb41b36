import { expect } from 'chai';
import fc from 'fast-check';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { HotSale } from '../../../src/core/ports/hot-sales.js';
import { HotSales, reportHotSales, SpaceSaving } from '../../../src/sales/hot-sales.js';
import { HOT_SALES_MAX, hotSalesOf, watchHotSales } from '../../../src/sales/watch-hot-sales.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryHotSaleStore } from '../../helpers/memory/memory-hot-sale-store.js';
import { silentLog } from '../../helpers/silent-log.js';
import { partial } from '../../helpers/partial.js';

/** A simple model that keeps every event with its time. */
class Plain {
  readonly came: { readonly key: string; readonly atMs: number }[] = [];

  count(key: string, fromMs = -Infinity): number {
    return this.came.filter((one) => one.key === key && one.atMs >= fromMs).length;
  }
}

const key = fc.integer({ min: 0, max: 30 }).map((index) => String(Math.floor(index ** 2 / 40)));

describe('space-saving', () => {
  it('overcounts by at most total / capacity, and keeps every more frequent key', () => {
    fc.assert(
      fc.property(fc.array(key, { maxLength: 300 }), fc.integer({ min: 1, max: 12 }), (keys, capacity) => {
        const sketch = new SpaceSaving(capacity);
        const plain = new Plain();
        for (const one of keys) {
          sketch.add(one);
          plain.came.push({ key: one, atMs: 0 });
        }
        const counts = new Map(sketch.counts().map((one) => [one.key, one]));
        expect(counts.size).to.be.at.most(capacity);
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
  /** Presses, each with its distance from the previous press. */
  const presses = fc.array(fc.record({ key, afterMs: fc.integer({ min: 0, max: 1500 }) }), { maxLength: 200 });

  it('names each sale with its rate over the last ten seconds, like a simple model', () => {
    fc.assert(
      fc.property(presses, (all) => {
        let nowMs = 1_000_000;
        const hot = new HotSales(partial({ monotonicMs: () => nowMs }));
        const plain = new Plain();
        for (const { key: saleId, afterMs } of all) {
          nowMs += afterMs;
          hot.countAttempt(saleId);
          plain.came.push({ key: saleId, atMs: nowMs });
        }
        const fromMs = (Math.floor(nowMs / 1000) - 9) * 1000; // this second and the nine before it
        const expected = [...new Set(all.map((one) => one.key))]
          .map((saleId) => ({ saleId, perSecond: plain.count(saleId, fromMs) / 10 }))
          .filter(({ perSecond }) => perSecond > 0);
        const named = hot.busiest();
        expect(named).to.have.deep.members(expected.length > 16 ? named : expected);
        expect(named.map(({ perSecond }) => perSecond)).to.deep.equal(
          expected
            .map(({ perSecond }) => perSecond)
            .sort((a, b) => b - a)
            .slice(0, 16),
        );
      }),
      { numRuns: 300 },
    );
  });

  it('takes no more memory for thousands of quiet sales, and still finds the hot sale', () => {
    let nowMs = 0;
    const hot = new HotSales(partial({ monotonicMs: () => nowMs }));
    for (let press = 0; press < 20_000; press++) {
      nowMs += 0.5;
      hot.countAttempt(press % 2 === 0 ? '7' : `cold-${press}`);
    }
    const [first, second] = hot.busiest();
    expect(second?.perSecond ?? 0).to.be.below(1);
    expect(first?.saleId).to.equal('7');
    expect(first?.perSecond).to.be.within(900, 1000);
  });

  it('forgets events after ten seconds, even if the clock steps back', () => {
    let nowMs = 50_000;
    const hot = new HotSales(partial({ monotonicMs: () => nowMs }));
    for (let press = 0; press < 50; press++) hot.countAttempt('7');
    nowMs += 9_000;
    expect(hot.busiest()).to.deep.equal([{ saleId: '7', perSecond: 5 }]);
    nowMs -= 20_000;
    expect(hot.busiest()).to.deep.equal([{ saleId: '7', perSecond: 5 }]);
    nowMs += 21_000;
    expect(hot.busiest()).to.deep.equal([]);
    nowMs += 3_600_000;
    hot.countAttempt('8');
    expect(hot.busiest()).to.deep.equal([{ saleId: '8', perSecond: 0.1 }]);
  });

  it('adds up the reports of all apis', () => {
    const reports = Array.from({ length: 20 }, () => [
      { saleId: '7', perSecond: 100 },
      { saleId: '8', perSecond: 10 },
    ]);
    expect(hotSalesOf(reports, 2000)).to.deep.equal([{ saleId: '7', perSecond: 2000 }]);
    const many = [Array.from({ length: 50 }, (_, n) => ({ saleId: `${n + 1}`, perSecond: n }))];
    expect(hotSalesOf(many, 0).map(({ perSecond }) => perSecond)).to.deep.equal([
      49, 48, 47, 46, 45, 44, 43, 42, 41, 40,
    ]);
    expect(hotSalesOf(many, 0)).to.have.length(HOT_SALES_MAX);
  });

  it('reports once a second while buyers arrive, and its report expires with the process', async () => {
    const clock = new ManualClock();
    const store = new MemoryHotSaleStore(clock);
    const [one, two, stop] = [new HotSales(clock), new HotSales(clock), new AbortController()];
    for (let press = 0; press < 30; press++) (press % 3 === 0 ? one : two).countAttempt('7');
    await store.report('other', two.busiest(), 60_000);
    const rates: number[] = [];
    const metrics = { hotSales: (sales: readonly HotSale[]) => void rates.push(sales[0]?.perSecond ?? 0) };
    const watch = watchHotSales({ store, metrics: partial(metrics) }, { perSecond: 3 });
    const ticking: Clock = {
      nowMs: () => clock.nowMs(),
      monotonicMs: () => clock.monotonicMs(),
      async sleep(ms) {
        store.down = false;
        await watch.runOnce();
        clock.advance(ms);
        store.down = rates.length === 4; // one report is missed, but the last one still counts
        if (rates.length === 12) stop.abort();
      },
    };
    await reportHotSales(one, 'mine', { store, clock: ticking, log: silentLog }, stop.signal);
    expect(rates).to.deep.equal([...Array<number>(10).fill(3), 0, 0]);
    expect(store.calls, 'one report of the other api, nine of this api, and one without purchases').to.equal(1 + 9 + 1);
    expect((await store.reports()).flat()).to.deep.equal([{ saleId: '7', perSecond: 2 }]);
  });
});
