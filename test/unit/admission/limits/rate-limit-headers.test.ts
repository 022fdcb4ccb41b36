import { expect } from 'chai';
import type { LimitSet, LimitVerdict } from '../../../../src/core/limits.js';
import { rateLimitHeaders, rateLimitPolicy } from '../../../../src/admission/limits/limits.js';

const LIMITS: LimitSet = {
  ip: { limit: 100, windowMs: 60_000 },
  user: { limit: 5, windowMs: 1500 },
  global: { ratePerSecond: 400, burst: 1000 },
  subjectsMax: 100,
};
const VERDICT: LimitVerdict = { outcome: 'allowed', limit: 'user', remaining: 3, retryAfterMs: 0, resetMs: 1501 };

describe('rate-limit-headers', () => {
  it('names every limit that there is, in whole seconds', () => {
    expect(rateLimitPolicy(LIMITS)).to.equal('"ip";q=100;w=60, "user";q=5;w=2, "global";q=1000;w=3');
    expect(rateLimitPolicy({ ...LIMITS, ip: null, global: null })).to.equal('"user";q=5;w=2');
  });

  it('an allowed visit hears what is left, and until when', () => {
    expect(rateLimitHeaders(LIMITS, VERDICT)).to.deep.equal([
      ...['RateLimit-Policy', rateLimitPolicy(LIMITS)],
      ...['RateLimit', '"user";r=3;t=2'],
    ]);
  });

  it('a refused one hears when to come again, rounded up', () => {
    const refused = { ...VERDICT, outcome: 'rate_limited', remaining: 0, retryAfterMs: 1001 } as const;
    expect(rateLimitHeaders(LIMITS, refused).slice(2)).to.deep.equal(['RateLimit', '"user";r=0;t=2']);
  });

  it('a visit that no limit counts hears nothing', () => {
    expect(rateLimitHeaders(LIMITS, { ...VERDICT, limit: null })).to.deep.equal([]);
  });
});
