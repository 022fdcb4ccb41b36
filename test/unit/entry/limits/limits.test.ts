import { expect } from 'chai';
import { OperationalError } from '../../../../src/domain/errors.js';
import { limitsRules, type LimitsRules } from '../../../../src/entry/limits/limits-rules.js';
import { Limits, type LimitAnswer } from '../../../../src/entry/limits/limits.js';
import { LocalLimitLedger } from '../../../../src/entry/limits/local-limit-ledger.js';
import type { LimitCall } from '../../../../src/ports/limit-ledger.js';
import { noLimitMeters } from '../../../../src/ports/limit-meters.js';
import { silentLog } from '../../../../src/ports/log.js';
import { SteppedClock } from '../../../helpers/memory/stepped-clock.js';

const BUYER = { address: '203.0.113.7', userId: 'u1' };
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
    const counting = new LocalLimitLedger(clock);
    limits = new Limits({
      rules: () => rules,
      ledger: {
        take: (call) => {
          calls.push(call);
          return counting.take(call);
        },
      },
      clock,
      meters: { ...noLimitMeters, refused: (...words) => void refusals.push(words.join(' ')) },
      log: silentLog,
    });
  });
  const enter = async (visitor = BUYER): Promise<LimitAnswer> => {
    const answer = limits.enter('purchase', visitor);
    if (answer === null) throw new Error('off');
    return answer;
  };

  it('is off by default, and says so without a promise', () => {
    expect(rules.mode).to.equal('off');
    expect(limits.enter('purchase', BUYER)).to.equal(null);
    expect(limits.smooth()).to.equal(null);
    rules = limitsRules.parse({ mode: 'on', sale: { user: USER } });
    expect(limits.enter('purchase', BUYER), 'no limit of this endpoint').to.equal(null);
    expect(calls).to.have.length(0);
  });

  it('on: refuses with the time to wait, with headers, and lets in again by then', async () => {
    rules = limitsRules.parse({ mode: 'on', purchase: { user: USER } });
    const first = await enter();
    expect(first.refusal).to.equal(null);
    expect(first.headers).to.include('"user";r=1;t=2');
    await enter();
    const { refusal, headers } = await enter();
    expect(refusal?.word).to.equal('rate_limited');
    expect(headers).to.include('Retry-After');
    expect(refusals).to.deep.equal(['purchase user on']);
    clock.advance(refusal?.retryAfterMs ?? 0);
    expect((await enter()).refusal).to.equal(null);
  });

  it('dry_run: counts whom it would refuse, and lets everybody in', async () => {
    rules = limitsRules.parse({ mode: 'dry_run', purchase: { user: USER }, leaky: { ratePerSecond: 1, waitMaxMs: 0 } });
    for (let i = 0; i < 4; i++) expect(await enter()).to.deep.equal({ refusal: null, headers: [] });
    for (let i = 0; i < 3; i++) expect(limits.smooth()).to.equal(null);
    expect(refusals).to.deep.equal([
      ...['purchase user dry_run', 'purchase user dry_run'],
      ...['purchase leaky dry_run', 'purchase leaky dry_run'],
    ]);
  });

  it('new rules hold with the next visit', async () => {
    rules = limitsRules.parse({ mode: 'on', purchase: { user: { ...USER, limit: 1 } } });
    await enter();
    expect((await enter()).refusal).not.to.equal(null);
    rules = limitsRules.parse({ mode: 'on', purchase: { user: USER } });
    expect((await enter()).refusal).to.equal(null);
    rules = limitsRules.parse({});
    expect(limits.enter('purchase', BUYER)).to.equal(null);
  });

  it('counts the network of an IPv6 address, and a stranger without a user', async () => {
    rules = limitsRules.parse({ mode: 'on', purchase: { ip: { limit: 1, windowMs: 1000 }, user: USER } });
    await enter({ address: '2001:db8::1', userId: 'u1' });
    expect((await enter({ address: '2001:db8::2', userId: 'u2' })).refusal).not.to.equal(null);
    const stranger = await limits.enter('purchase', { address: '203.0.113.9', userId: null });
    expect(stranger?.refusal).to.equal(null);
    expect(calls.at(-1)?.visits).to.deep.equal([{ address: '203.0.113.9', userId: null }]);
  });

  it('a ledger that is away refuses nobody by itself', async () => {
    rules = limitsRules.parse({ mode: 'on', purchase: { user: USER } });
    const away = new OperationalError('redis', 'there is no connection', { retryable: true });
    const ledger = { take: () => Promise.reject(away) };
    limits = new Limits({ rules: () => rules, ledger, clock, meters: noLimitMeters, log: silentLog });
    const words = [await enter(), await enter(), await enter()].map(({ refusal }) => refusal?.word ?? 'in');
    expect(words).to.deep.equal(['in', 'in', 'rate_limited']);
  });

  it('smooths what comes faster than the batcher is to see, and refuses who would wait too long', async () => {
    rules = limitsRules.parse({ mode: 'on', leaky: { ratePerSecond: 100, waitMaxMs: 10 } });
    expect(limits.smooth()).to.equal(null);
    const waits = limits.smooth();
    expect(limits.smooth()).to.deep.equal({ word: 'rate_limited', retryAfterMs: 10 });
    clock.advance(10);
    await waits;
    expect(refusals).to.deep.equal(['purchase leaky on']);
  });

  it('rules that cannot hold are refused with the place of the mistake', () => {
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
      ...['purchase.user.limit', 'purchase.user.windowMs', 'purchase.global.ratePerSecond'],
      ...['purchase', 'leaky.waitMaxMs', 'mode'],
    ]);
  });
});
