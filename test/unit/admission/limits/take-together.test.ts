import { expect } from 'chai';
import { OperationalError } from '../../../../src/core/errors.js';
import type { LimitSet, LimitVerdict } from '../../../../src/core/limits.js';
import { LimitBatcher, type FallbackLimitStore } from '../../../../src/admission/limits/shared-limits.js';
import { LIMIT_CALLERS_MAX, type LimitAnswers, type LimitCall } from '../../../../src/core/ports/admission-stores.js';
import { SteppedClock } from '../../../helpers/memory/stepped-clock.js';

const LIMITS: LimitSet = { global: null, user: { limit: 5, windowMs: 1000 }, ip: null, subjectsMax: 100 };

/** One call on its way, in the hands of the test. */
interface UnderWay {
  readonly call: LimitCall;
  readonly waitedMs: number;
  readonly end: (answers: LimitAnswers) => void;
  readonly fail: (error: unknown) => void;
}

const turn = async (): Promise<void> => {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
};

/** A verdict that says which visit it is of. */
const verdictOf = (userId: string | null): LimitVerdict => ({
  ...{ outcome: 'allowed', limit: 'user', remaining: Number(userId?.slice(1)), retryAfterMs: 0, resetMs: 0 },
});

describe('take-together', () => {
  let calls: UnderWay[];
  let together: LimitBatcher;
  let uncounted: number;
  let clock: SteppedClock;
  beforeEach(() => {
    calls = [];
    uncounted = 0;
    clock = new SteppedClock();
    const judge: Pick<FallbackLimitStore, 'take'> = {
      take: (call, waitedMs = 0) => new Promise((end, fail) => calls.push({ call, waitedMs, end, fail })),
    };
    together = new LimitBatcher(judge, { uncounted: (times) => (uncounted += times) }, clock);
  });
  const take = (userId: string, endpoint = 'purchase', limits = LIMITS): Promise<LimitVerdict> =>
    together.take(endpoint, limits, { address: null, userId });
  const usersOf = (index: number): unknown[] => (calls[index]?.call.callers ?? []).map(({ userId }) => userId);
  const end = async (index: number, more = 0): Promise<void> => {
    const { call, end: resolve } = calls[index] as UnderWay;
    resolve({ verdicts: call.callers.map(({ userId }) => verdictOf(userId)), uncounted: more });
    await turn();
  };

  it('a lone visit leaves at once; those who come meanwhile share the next call, and each hears his own verdict', async () => {
    const first = take('u0');
    await turn();
    const others = Promise.all(['u1', 'u2', 'u3'].map((user) => take(user)));
    await turn();
    expect(calls.length).to.equal(1);
    await end(0);
    expect((await first).remaining).to.equal(0);
    expect([usersOf(0), usersOf(1), calls.length]).to.deep.equal([['u0'], ['u1', 'u2', 'u3'], 2]);
    await end(1, 2);
    expect((await others).map(({ remaining }) => remaining)).to.deep.equal([1, 2, 3]);
    expect(uncounted).to.equal(2);
  });

  it('a crowd is cut into calls of a bounded size', async () => {
    const crowd = Promise.all(Array.from({ length: 2 * LIMIT_CALLERS_MAX + 5 }, (_, i) => take(`u${i}`)));
    await turn();
    for (let index = 0; index < 3; index++) await end(index);
    expect((await crowd).map(({ remaining }) => remaining)).to.deep.equal(
      Array.from({ length: 2 * LIMIT_CALLERS_MAX + 5 }, (_, i) => i),
    );
    expect(calls.map(({ call }) => call.callers.length)).to.deep.equal([LIMIT_CALLERS_MAX, LIMIT_CALLERS_MAX, 5]);
  });

  it('endpoints do not wait for each other, and new limits hold for those who wait', async () => {
    const stuck = take('u0');
    const other = take('u1', 'sale');
    await turn();
    expect(calls.map(({ call }) => call.endpoint)).to.deep.equal(['purchase', 'sale']);
    await end(1);
    await other;
    const queued = take('u2');
    const stricter = { ...LIMITS, user: { limit: 1, windowMs: 1000 } };
    const last = take('u3', 'purchase', stricter);
    await end(0);
    await end(2);
    expect(calls[2]?.call.limits).to.equal(stricter);
    await Promise.all([stuck, queued, last]);
  });

  it('the judge is told how long the oldest visit of a call has waited', async () => {
    const first = take('u0');
    await turn();
    clock.advance(30);
    const others = [take('u1')];
    clock.advance(20);
    others.push(take('u2'));
    await end(0);
    await end(1);
    await Promise.all([first, ...others]);
    expect(calls.map(({ waitedMs }) => waitedMs)).to.deep.equal([0, 20]);
  });

  it('a call that fails fails for its visits only', async () => {
    const first = take('u0');
    await turn();
    const second = take('u1');
    const failure = new OperationalError('redis', 'gone', { retryable: true });
    const heard = first.catch((error: unknown) => error);
    calls[0]?.fail(failure);
    await turn();
    expect(await heard).to.equal(failure);
    await end(1);
    expect((await second).outcome).to.equal('allowed');
  });
});
