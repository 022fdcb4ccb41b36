import { expect } from 'chai';
import fc from 'fast-check';
import { FallbackCache } from '../../../../src/admission/degrade/degraded-reads.js';
import { ManualClock } from '../../../helpers/memory/manual-clock.js';
import { rulesOf } from './degrade-world.js';

const { cache: rules } = rulesOf();
const KEYS = ['a', 'b', 'c'];

type Step =
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'put' | 'get'; readonly key: string }
  | { readonly do: 'failed' | 'worked' };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat(20_000) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('put' as const), key: fc.constantFrom(...KEYS) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('get' as const), key: fc.constantFrom(...KEYS) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('failed' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('worked' as const) }) },
);

describe('entry/degrade: fallback cache', () => {
  it('an answer lives 60 s × 0.7ⁿ after n failures in a row, 5 s at least', () => {
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

  it('is what its plain model is, after any history', () => {
    let [hits, misses] = [0, 0];
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100, size: 'max' }), (history) => {
        const clock = new ManualClock(0);
        const cache = new FallbackCache<{ n: number }>({ rules: () => rules, clock, max: 10 });
        const puts: { key: string; n: number; atMs: number }[] = [];
        let failures = 0;
        for (const [n, one] of history.entries()) {
          switch (one.do) {
            case 'wait':
              clock.advance(one.ms);
              break;
            case 'put':
              cache.put(one.key, { n });
              puts.push({ key: one.key, n, atMs: clock.nowMs() });
              failures = 0;
              break;
            case 'failed':
              cache.failed();
              failures++;
              break;
            case 'worked':
              cache.worked();
              failures = 0;
              break;
            case 'get': {
              let lifeMs = 60_000;
              for (let failure = 0; failure < failures; failure++) lifeMs *= 0.7;
              const last = puts.findLast(({ key }) => key === one.key);
              const ageMs = clock.nowMs() - (last?.atMs ?? -Infinity);
              const isGood = last !== undefined && ageMs < Math.max(5000, lifeMs) - 1e-6;
              expect(cache.get(one.key)).to.deep.equal(isGood ? { value: { n: last.n }, ageMs } : null);
              if (isGood) hits++;
              else misses++;
            }
          }
        }
      }),
      { numRuns: 200 },
    );
    expect(Math.min(hits, misses), 'both were met').to.be.greaterThan(200);
  });

  it('never holds more answers than it may', () => {
    const cache = new FallbackCache({ rules: () => rules, clock: new ManualClock(), max: 100 });
    for (let n = 0; n < 1000; n++) cache.put(`k${n}`, { n });
    const held = Array.from({ length: 1000 }, (_, n) => cache.get(`k${n}`)).filter((one) => one !== null);
    expect(held).to.have.length(100);
    expect(cache.get('k999')?.value).to.deep.equal({ n: 999 });
  });
});
