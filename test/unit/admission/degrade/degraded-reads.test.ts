import { expect } from 'chai';
import { Bug, OperationalError } from '../../../../src/core/errors.js';
import {
  type Body,
  type Served,
  DegradedReads,
  FallbackCache,
} from '../../../../src/admission/degrade/degraded-reads.js';
import type { Level } from '../../../../src/admission/degrade/degrade.js';
import { ManualClock } from '../../../helpers/memory/manual-clock.js';
import { rulesOf } from './degrade-world.js';

const SALE: Body = {
  saleId: '7',
  sku: 'S-1',
  title: 'A thing',
  priceCents: 990,
  limitPerBuyer: 1,
  state: 'open',
  stock: 'few',
  opensAt: '2026-01-01T00:00:00.000Z',
  closesAt: '2026-01-02T00:00:00.000Z',
};
const OUT = new OperationalError('redis', 'out', { retryable: true });

/** A sale page whose source can fail and counts its reads. */
class Page {
  readonly clock = new ManualClock(0);
  readonly cache = new FallbackCache<Body>({ rules: () => rulesOf().cache, clock: this.clock, max: 10 });
  readonly reads = new DegradedReads('sale', this.cache);
  error: Error | null = null;
  body: Body | null = SALE;
  reading = 0;

  serve(level: Level | null, { sparesSource = false, key = '7' } = {}): Promise<Served> {
    const source = async (): Promise<Body | null> => {
      this.reading++;
      if (this.error) throw this.error;
      return this.body;
    };
    const ruling = level === null ? null : { level, sparesSource };
    return this.reads.serve(ruling, { key, ids: { saleId: key }, source });
  }
}

describe('degraded reads', () => {
  let page: Page;
  beforeEach(() => {
    page = new Page();
  });

  it('cache nothing and pass on every fault while no rules apply', async () => {
    expect(await page.serve(null)).to.deep.equal({ served: 'full', body: SALE });
    page.error = OUT;
    expect(await page.serve(null).catch((error: unknown) => error)).to.equal(OUT);
    expect(await page.serve('L0').catch((error: unknown) => error)).to.equal(OUT);
    expect(page.cache.ttlMs, 'one failure was seen by the layer').to.equal(42_000);
  });

  it('return the empty answer below L0 if a source fails, but throw a bug', async () => {
    page.error = OUT;
    expect((await page.serve('L1')).served).to.equal('empty');
    expect((await page.serve('L2')).served).to.equal('empty');
    expect(Math.round(page.cache.ttlMs)).to.equal(29_400);
    page.error = new Bug('a bug');
    for (const level of ['L0', 'L1', 'L2'] as const) {
      expect(await page.serve(level).catch((error: unknown) => error)).to.equal(page.error);
    }
    expect(Math.round(page.cache.ttlMs), 'no fault of the source').to.equal(29_400);
    page.cache.put('7', SALE);
    expect(
      await page.serve('L0').catch((error: unknown) => error),
      'a bug is never replaced by an older answer',
    ).to.equal(page.error);
  });
});

const { cache: rules } = rulesOf();
describe('fallback cache', () => {
  it('keeps an answer for 60 s × 0.7ⁿ after n failures in a row, at least 5 s', () => {
    const cache = new FallbackCache({ rules: () => rules, clock: new ManualClock(), max: 10 });
    const lives = Array.from({ length: 9 }, () => {
      const lifeMs = cache.ttlMs;
      cache.failed();
      return Math.round(lifeMs);
    });
    expect(lives).to.deep.equal([60_000, 42_000, 29_400, 20_580, 14_406, 10_084, 7059, 5000, 5000]);
    for (let failure = 0; failure < 10_000; failure++) cache.failed();
    expect(cache.ttlMs).to.equal(5000);
    cache.worked();
    expect(cache.ttlMs).to.equal(60_000);
  });

  it('never exceeds its maximum number of answers', () => {
    const cache = new FallbackCache({ rules: () => rules, clock: new ManualClock(), max: 100 });
    for (let n = 0; n < 1000; n++) cache.put(`k${n}`, { n });
    const held = Array.from({ length: 1000 }, (_, n) => cache.get(`k${n}`)).filter((one) => one !== null);
    expect(held).to.have.length(100);
    expect(cache.get('k999')?.value).to.deep.equal({ n: 999 });
  });
});
