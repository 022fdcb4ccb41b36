import { expect } from 'chai';
import { SecondBudget } from '../../../src/core/second-budget.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';

describe('budget per second', () => {
  it('allows its full number, and again one second after the first use', () => {
    const clock = new ManualClock();
    const budget = new SecondBudget(2, clock);
    const take = (): boolean[] => [budget.take(), budget.take(), budget.take()];
    expect(take()).to.deep.equal([true, true, false]);
    clock.advance(999);
    expect(budget.take()).to.equal(false);
    clock.advance(1);
    expect(take()).to.deep.equal([true, true, false]);
  });
});
