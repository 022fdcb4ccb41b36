import { expect } from 'chai';
import { OperationalError } from '../../../../src/core/errors.js';
import {
  limitsRules,
  type LimitsRules,
  Limits,
  rateLimitHeaders,
  rateLimitPolicy,
} from '../../../../src/admission/limits/limits.js';
import { addressKey } from '../../../../src/admission/limits/address-key.js';
import { LocalLimitStore } from '../../../../src/admission/limits/local-limit-store.js';
import type { LimitCall } from '../../../../src/core/ports/admission-stores.js';
import { noAdmissionMetrics } from '../../../helpers/no-metrics.js';
import { silentLog } from '../../../helpers/silent-log.js';
import type { Refused } from '../../../../src/admission/layer.js';
import { SteppedClock } from '../../../helpers/memory/stepped-clock.js';
import type { LimitSet, LimitVerdict } from '../../../../src/core/limits.js';

const CALLER = { endpoint: 'purchase', address: '203.0.113.7', agent: 'x' } as const;
const USER = { limit: 2, windowMs: 1000 };

describe('limits', () => {
  let clock: SteppedClock;
  let rules: LimitsRules;
  let calls: LimitCall[];
  let refusals: string[];
  let limits: Limits;
  beforeEach(() => {
    clock = new SteppedClock();
    rules = limitsRules.parse({});
    calls = [];
    refusals = [];
    const counting = new LocalLimitStore(clock);
    limits = new Limits({
      rules: () => rules,
      store: {
        take: (call) => {
          calls.push(call);
          return counting.take(call);
        },
      },
      clock,
      metrics: { ...noAdmissionMetrics, limitRefused: (...words) => void refusals.push(words.join(' ')) },
      log: silentLog,
    });
  });
  const buy = async (userId = 'u1'): Promise<Refused | null> => limits.buyer(CALLER, userId);
  const come = async (address: string): Promise<Refused | null> => limits.anonymous({ ...CALLER, address });

  it('are off by default, and answer at once if an endpoint has no limit', () => {
    expect(limits.modeOf(null)).to.equal('off');
    expect(limits.smooth()).to.equal(null);
    rules = limitsRules.parse({ mode: 'on', sale: { user: USER }, status: { ip: USER } });
    expect([limits.anonymous(CALLER), limits.buyer(CALLER, 'u1')]).to.deep.equal([null, null]);
    expect(limits.buyer({ ...CALLER, endpoint: 'status' }, 'u1'), 'an address is counted once').to.equal(null);
    expect(limits.anonymous({ ...CALLER, endpoint: 'sale' }), 'it needs no token').to.equal(null);
    expect(calls).to.have.length(0);
  });

  it('refuse with headers and a wait, and admit again after that wait', async () => {
    rules = limitsRules.parse({ mode: 'on', purchase: { user: USER } });
    expect([await buy(), await buy()]).to.deep.equal([null, null]);
    const refused = await buy();
    expect(refused?.word).to.equal('rate_limited');
    expect(refused?.headers?.slice(0, 3)).to.deep.equal(['RateLimit-Policy', '"user";q=2;w=1', 'RateLimit']);
    expect(refusals).to.deep.equal(['purchase user on']);
    clock.advance(refused?.retryAfterMs ?? 0);
    expect(await buy()).to.equal(null);
  });

  it('in a dry run, count refusals and delay no request', async () => {
    rules = limitsRules.parse({ mode: 'dry_run', purchase: { user: USER }, leaky: { ratePerSecond: 1, waitMaxMs: 0 } });
    for (let i = 0; i < 4; i++) await buy();
    for (let i = 0; i < 3; i++) expect(limits.smooth()).to.equal(null);
    expect(refusals).to.deep.equal([
      'purchase user dry_run',
      'purchase user dry_run',
      'purchase leaky dry_run',
      'purchase leaky dry_run',
    ]);
  });

  it('apply new rules from the next request on', async () => {
    rules = limitsRules.parse({ mode: 'on', purchase: { user: { ...USER, limit: 1 } } });
    expect([await buy(), (await buy())?.word]).to.deep.equal([null, 'rate_limited']);
    rules = limitsRules.parse({ mode: 'on', purchase: { user: USER } });
    expect(await buy()).to.equal(null);
    rules = limitsRules.parse({});
    expect(limits.buyer(CALLER, 'u1')).to.equal(null);
  });

  it('count the /64 network of an IPv6 address before the token check', async () => {
    rules = limitsRules.parse({ mode: 'on', purchase: { ip: { limit: 1, windowMs: 1000 } } });
    expect(await come('2001:db8::1')).to.equal(null);
    expect((await come('2001:db8::2'))?.word).to.equal('rate_limited');
    expect([await come('203.0.113.9'), await come(''), await come('')]).to.deep.equal([null, null, null]);
    expect(calls.at(-1)?.callers).to.deep.equal([{ address: null, userId: null }]);
  });

  it('count a request once against the global limit, after any check of its token', async () => {
    const one = { ip: { limit: 9, windowMs: 1000 }, global: { ratePerSecond: 1, burst: 1 } };
    rules = limitsRules.parse({ mode: 'on', purchase: one, sale: one });
    expect([await come('203.0.113.7'), await buy(), (await buy('u2'))?.word]).to.deep.equal([
      null,
      null,
      'rate_limited',
    ]);
    const ask = async (): Promise<Refused | null> => limits.anonymous({ ...CALLER, endpoint: 'sale' });
    expect([await ask(), (await ask())?.word]).to.deep.equal([null, 'rate_limited']);
  });

  it('refuse no request when the store is down', async () => {
    rules = limitsRules.parse({ mode: 'on', purchase: { user: USER } });
    const away = new OperationalError('redis', 'there is no connection', { retryable: true });
    const store = { take: () => Promise.reject(away) };
    limits = new Limits({ rules: () => rules, store, clock, metrics: noAdmissionMetrics, log: silentLog });
    const words = [await buy(), await buy(), await buy()].map((refused) => refused?.word ?? 'in');
    expect(words).to.deep.equal(['in', 'in', 'rate_limited']);
  });

  it('spread purchases evenly for the batcher, and refuse purchases that would wait too long', async () => {
    rules = limitsRules.parse({ mode: 'on', leaky: { ratePerSecond: 100, waitMaxMs: 10 } });
    expect(limits.smooth()).to.equal(null);
    const waits = limits.smooth();
    expect(limits.smooth()).to.equal('rate_limited');
    clock.advance(10);
    await waits;
    expect(refusals).to.deep.equal(['purchase leaky on']);
  });

  it('reject impossible rules with the place of the mistake', () => {
    const wrong = [
      { purchase: { user: { limit: 0, windowMs: 1000 } } },
      { purchase: { user: { limit: 1, windowMs: 105 } } },
      { purchase: { global: { ratePerSecond: 0.5, burst: 1 } } },
      { purchase: { users: USER } },
      { leaky: { ratePerSecond: 1 } },
      { mode: 'maybe' },
    ];
    const paths = wrong.map((json) => limitsRules.safeParse(json).error?.issues[0]?.path.join('.'));
    expect(paths).to.deep.equal([
      'purchase.user.limit',
      'purchase.user.windowMs',
      'purchase.global.ratePerSecond',
      'purchase',
      'leaky.waitMaxMs',
      'mode',
    ]);
  });
});

describe('address key', () => {
  for (const [address, key] of [
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['no address', 'no address'],
    ['no:address', 'no:address'],
  ] as const) {
    it(`counts ${address} as ${key}`, () => {
      expect(addressKey(address)).to.equal(key);
    });
  }
});

const LIMITS: LimitSet = {
  ip: { limit: 100, windowMs: 60_000 },
  user: { limit: 5, windowMs: 1500 },
  global: { ratePerSecond: 400, burst: 1000 },
  subjectsMax: 100,
};
const VERDICT: LimitVerdict = { outcome: 'allowed', limit: 'user', remaining: 3, retryAfterMs: 0, resetMs: 1501 };

describe('RateLimit headers', () => {
  it('name every limit in whole seconds', () => {
    expect(rateLimitPolicy(LIMITS)).to.equal('"ip";q=100;w=60, "user";q=5;w=2, "global";q=1000;w=3');
    expect(rateLimitPolicy({ ...LIMITS, ip: null, global: null })).to.equal('"user";q=5;w=2');
  });

  it('show the remaining requests and the reset time if a request is admitted', () => {
    expect(rateLimitHeaders(LIMITS, VERDICT)).to.deep.equal([
      'RateLimit-Policy',
      rateLimitPolicy(LIMITS),
      'RateLimit',
      '"user";r=3;t=2',
    ]);
  });

  it('show the retry time, rounded up, if a request is refused', () => {
    const refused = { ...VERDICT, outcome: 'rate_limited', remaining: 0, retryAfterMs: 1001 } as const;
    expect(rateLimitHeaders(LIMITS, refused).slice(2)).to.deep.equal(['RateLimit', '"user";r=0;t=2']);
  });

  it('are omitted if no limit counts the request', () => {
    expect(rateLimitHeaders(LIMITS, { ...VERDICT, limit: null })).to.deep.equal([]);
  });
});
