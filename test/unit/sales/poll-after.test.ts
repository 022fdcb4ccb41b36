import { expect } from 'chai';
import type { SaleView } from '../../../src/sales/get-sale.js';
import { pollAfterMs } from '../../../src/sales/poll-after.js';
import { partial } from '../../helpers/partial.js';

const OPENS_MS = Date.UTC(2030, 0, 1, 20);
/** Age of an answer that a cache has kept. */
const AGE_MAX_MS = 4000;

const waitOf = (state: SaleView['state'], untilOpenMs: number, stock: SaleView['stock'] = 'plenty'): number =>
  pollAfterMs(partial({ state, stock, opensAtMs: OPENS_MS, nowMs: OPENS_MS - untilOpenMs }));

describe('poll-after', () => {
  it('makes no page read at the opening, whatever the age of its last answer', () => {
    for (let leftMs = 1; leftMs < 3 * 3_600_000; leftMs += 777) {
      const waitMs = waitOf('not_open', leftMs);
      const isBefore = waitMs * 1.5 < leftMs - AGE_MAX_MS;
      const isAfter = waitMs > leftMs + AGE_MAX_MS;
      expect(isBefore || isAfter, `${leftMs} ms before: ${waitMs}`).to.equal(true);
    }
  });

  it('makes a page read about ten times in the last hour before the opening', () => {
    for (const state of ['not_open', 'announced'] as const) {
      let reads = 0;
      for (let leftMs = 3_600_000; leftMs > 0; reads++) leftMs -= waitOf(state, leftMs);
      expect(reads).to.be.within(8, 25);
    }
    expect(waitOf('announced', 86_400_000 * 30)).to.equal(900_000);
  });

  it('makes a page wait longest after the end, and least while the shop is late', () => {
    expect(waitOf('closed', -1)).to.equal(300_000);
    expect(waitOf('open', -1, 'none')).to.equal(20_000);
    expect([waitOf('open', -1), waitOf('open', -1, 'unknown'), waitOf('paused', -1)]).to.deep.equal(
      Array(3).fill(10_000),
    );
    expect([waitOf('not_open', 0), waitOf('announced', -9), waitOf('loading', -1)]).to.deep.equal(Array(3).fill(5000));
  });
});
