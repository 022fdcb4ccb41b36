import { expect } from 'chai';
import { createRandom } from '../../chaos/random.js';
import { countOutcomes } from '../../chaos/year/books.js';
import { Pace } from '../../chaos/year/pace.js';
import { planFaults, planSales, YEAR_FAULTS } from '../../chaos/year/plan.js';
import { tooManyRows } from '../../chaos/year/sizes.js';

describe('year: the plan', () => {
  const SIZES = [
    { sales: 3_000, orders: 5_000_000, large: 16 },
    { sales: 100, orders: 100_000, large: 2 },
    { sales: 40, orders: 4_000, large: 0 },
    { sales: 3, orders: 30, large: 3 },
    { sales: 1, orders: 1, large: 0 },
  ];
  for (const size of SIZES) {
    it(`${size.sales} sales, ${size.large} of them large, have units for ${size.orders} orders`, () => {
      const plan = planSales(size, createRandom('a year'));
      expect(plan).to.have.length(size.sales);
      expect(plan.filter(({ large }) => large)).to.have.length(size.large);
      const units = plan.reduce((sum, { stock }) => sum + stock, 0);
      expect(units, 'two of a hundred to spare').to.be.within(size.orders, Math.ceil(size.orders * 1.02));
      for (const { stock, buyers } of plan) {
        expect(stock).to.be.at.least(1);
        expect(buyers).to.be.at.least(stock);
      }
      expect(new Set(plan.map(({ sku }) => sku)).size).to.equal(size.sales);
    });
  }

  it('large sales stand apart, and have more buyers than any small one', () => {
    const plan = planSales({ sales: 3_000, orders: 5_000_000, large: 16 }, createRandom('a year'));
    const places = plan.filter(({ large }) => large).map(({ index }) => index);
    for (const [nth, place] of places.entries()) {
      if (nth > 0) expect(place - (places[nth - 1] ?? 0)).to.be.within(168, 169);
      expect(plan[place]?.stock).to.equal(127_500);
    }
    expect(Math.max(...plan.filter(({ large }) => !large).map(({ stock }) => stock))).to.be.below(5_000);
  });

  it('ends with many of the smallest sales, and no large one', () => {
    const plan = planSales({ sales: 3_000, orders: 5_000_000, large: 16 }, createRandom('a year'));
    const last = plan.slice(-298);
    expect(last.every(({ large }) => !large)).to.equal(true);
    expect(plan.filter((sale) => sale.last)).to.deep.equal(last);
    expect(last.reduce((sum, { stock }) => sum + stock, 0)).to.equal(298 * 205);
  });

  it('has every fault once before any comes again, and kills the keeper in the first part only', () => {
    for (let seed = 0; seed < 20; seed++) {
      const faults = planFaults(12, 3_000, createRandom(`${seed} a year`));
      const kinds = faults.map(({ kind }) => kind);
      expect(kinds.slice(0, YEAR_FAULTS.length)).to.have.members([...YEAR_FAULTS]);
      for (const { kind, afterSales } of faults) if (kind === 'keeper_killed') expect(afterSales).to.be.at.most(1_200);
      expect(faults.map(({ afterSales }) => afterSales)).to.deep.equal(
        [...faults.map((f) => f.afterSales)].sort((a, b) => a - b),
      );
    }
    expect(planFaults(1, 40, createRandom('one'))).to.have.length(1);
  });

  it('counts what buyers know in the end', () => {
    expect(countOutcomes(Uint8Array.from([0, 1, 1, 2, 3]))).to.deep.equal({ none: 1, ok: 2, fail: 1, unknown: 1 });
  });
});

describe('year: hot tables', () => {
  it('may have as many rows as the open sales have buyers', () => {
    expect(tooManyRows({ orders: 500, outbox: 1_500 }, { sales: 2, orders: 500 })).to.deep.equal([]);
    expect(tooManyRows({ orders: 501 }, { sales: 2, orders: 500 })).to.have.length(1);
  });

  it('are empty when no sale is open, but for slots and runs of the last minute', () => {
    const none = { sales: 0, orders: 0 };
    expect(tooManyRows({ orders: 0, order_ranges: 0, worker_slots: 256, reconcile_runs: 20 }, none)).to.deep.equal([]);
    expect(tooManyRows({ order_ranges: 1 }, none)[0]).to.match(/^order_ranges has 1 rows/);
  });
});

describe('year: the pace', () => {
  const none = { pending: 0, outbox: 0, expiry: 0, archive: 0 };

  it('goes up to its maximum while nothing waits, and down while something does, never to nothing', () => {
    const pace = new Pace(200);
    for (let second = 0; second < 10; second++) expect(pace.follow(none)).to.deep.equal([]);
    expect(pace.open).to.equal(200);
    expect(pace.follow({ ...none, pending: 10_000 })).to.deep.equal(['pending']);
    expect(pace.open, 'some purchase is under way, or no fault would be over').to.be.within(1, 10);
    pace.follow({ ...none, archive: 100_000 });
    expect(pace.open).to.be.within(1, 10);
    for (let second = 0; second < 2; second++) pace.follow(none);
    expect(pace.open).to.equal(200);
  });
});
