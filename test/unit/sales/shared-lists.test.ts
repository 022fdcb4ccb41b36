import { expect } from 'chai';
import type { SaleFilter } from '../../../src/core/ports/sale-repository.js';
import { shareLists } from '../../../src/sales/shared-lists.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';

describe('sale lists shared by jobs', () => {
  it('ask once for equal filters within the time, and again afterwards', async () => {
    const clock = new ManualClock();
    const asked: SaleFilter[] = [];
    const sales = shareLists({ list: async (filter: SaleFilter) => (asked.push(filter), []) }, 500, clock);
    const [open, closed]: SaleFilter[] = [
      { states: ['open'], max: 10 },
      { states: ['closed'], max: 10 },
    ];
    if (open === undefined || closed === undefined) expect.fail();
    await Promise.all([sales.list(open), sales.list({ ...open }), sales.list(closed)]);
    clock.advance(499);
    await sales.list({ ...open });
    expect(asked).to.deep.equal([open, closed]);
    clock.advance(1);
    await sales.list(open);
    expect(asked).to.deep.equal([open, closed, open]);
  });
});
