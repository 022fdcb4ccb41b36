import { expect } from 'chai';
import { doublingDelayMs } from '../../../src/core/back-off.js';

describe('doubling pauses', () => {
  it('start with the first pause and never exceed the longest, however many attempts there are', () => {
    const pauses = [0, 1, 2, 3, 9, 10, 2_000].map((attempt) => doublingDelayMs(attempt, 2_000, 600_000));
    expect(pauses).to.deep.equal([2_000, 2_000, 4_000, 8_000, 512_000, 600_000, 600_000]);
  });
});
