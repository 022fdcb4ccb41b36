import { expect } from 'chai';
import { OperationalError, Bug } from '../../../../src/core/errors.js';
import type { LimitSet, LimitVerdict } from '../../../../src/core/limits.js';
import { LimitBatcher, FallbackLimitStore, shareOf } from '../../../../src/admission/limits/shared-limits.js';
import {
  LIMIT_CALLERS_MAX,
  type LimitAnswers,
  type LimitCall,
  type LimitStore,
} from '../../../../src/core/ports/admission-stores.js';
import { SteppedClock } from '../../../helpers/memory/stepped-clock.js';
import { LocalLimitStore } from '../../../../src/admission/limits/local-limit-store.js';
import { noAdmissionMetrics } from '../../../helpers/no-metrics.js';
import { silentLog } from '../../../helpers/silent-log.js';
import { partial } from '../../../helpers/partial.js';

const LIMITS: LimitSet = { global: null, user: { limit: 5, windowMs: 1000 }, ip: null, subjectsMax: 100 };

/** A running call that the test settles. */
interface UnderWay {
  readonly call: LimitCall;
  readonly waitedMs: number | undefined;
  readonly end: (answers: LimitAnswers) => void;
  readonly fail: (error: unknown) => void;
}

const turn = async (): Promise<void> => {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
};

/** A verdict that names its request. */
const verdictOf = (userId: string | null): LimitVerdict => ({
  outcome: 'allowed',
  limit: 'user',
  remaining: Number(userId?.slice(1)),
  retryAfterMs: 0,
  resetMs: 0,
});

describe('limit batcher', () => {
  let calls: UnderWay[];
  let together: LimitBatcher;
  let uncounted: number;
  let clock: SteppedClock;
  beforeEach(() => {
    calls = [];
    uncounted = 0;
    clock = new SteppedClock();
    const judge: FallbackLimitStore = partial({
      take: (call, waitedMs) => new Promise((end, fail) => calls.push({ call, waitedMs, end, fail })),
    });
    together = new LimitBatcher(judge, { ...noAdmissionMetrics, uncounted: (times) => (uncounted += times) }, clock);
  });
  const take = (userId: string, endpoint = 'purchase', limits = LIMITS): Promise<LimitVerdict> =>
    together.take(endpoint, limits, { address: null, userId });
  const usersOf = (index: number): unknown[] => (calls[index]?.call.callers ?? []).map(({ userId }) => userId);
  const end = async (index: number, more = 0): Promise<void> => {
    const { call, end: resolve } = calls[index] as UnderWay;
    resolve({ verdicts: call.callers.map(({ userId }) => verdictOf(userId)), uncounted: more });
    await turn();
  };

  it('sends a lone request at once, and later requests in groups', async () => {
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

  it('splits many requests into calls of limited size', async () => {
    const crowd = Promise.all(Array.from({ length: 2 * LIMIT_CALLERS_MAX + 5 }, (_, i) => take(`u${i}`)));
    await turn();
    for (let index = 0; index < 3; index++) await end(index);
    expect((await crowd).map(({ remaining }) => remaining)).to.deep.equal(
      Array.from({ length: 2 * LIMIT_CALLERS_MAX + 5 }, (_, i) => i),
    );
    expect(calls.map(({ call }) => call.callers.length)).to.deep.equal([LIMIT_CALLERS_MAX, LIMIT_CALLERS_MAX, 5]);
  });

  it('sends requests of different endpoints or limits in separate calls', async () => {
    const stuck = take('u0');
    const other = take('u1', 'sale');
    await turn();
    expect(calls.map(({ call }) => call.endpoint)).to.deep.equal(['purchase', 'sale']);
    await end(1);
    await other;
    const queued = take('u2');
    const stricter = { ...LIMITS, user: { limit: 1, windowMs: 1000 } };
    const last = take('u3', 'purchase', stricter);
    await turn();
    expect([calls[2]?.call.limits, usersOf(2)], 'at once').to.deep.equal([stricter, ['u3']]);
    await end(2);
    await end(0);
    expect([calls[3]?.call.limits, usersOf(3)]).to.deep.equal([LIMITS, ['u2']]);
    await end(3);
    await Promise.all([stuck, queued, last]);
  });

  it('tells the store how long the oldest request of a call has waited', async () => {
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

  it('fails only the requests of a failed call', async () => {
    const first = take('u0');
    await turn();
    const second = take('u1');
    const failure = new OperationalError('redis', 'gone', { retryable: true });
    const rejected = first.catch((error: unknown) => error);
    calls[0]?.fail(failure);
    await turn();
    expect(await rejected).to.equal(failure);
    await end(1);
    expect((await second).outcome).to.equal('allowed');
  });
});

const OPTIONS = { replyTimeoutMs: 100, retryEveryMs: 500, processes: 0 };
const SHARED_LIMITS: LimitSet = { global: null, user: { limit: 4, windowMs: 60_000 }, ip: null, subjectsMax: 100 };
const CALL: LimitCall = { endpoint: 'purchase', limits: SHARED_LIMITS, callers: [{ address: null, userId: 'u1' }] };

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A store that answers, fails or hangs, as the test decides. */
class MoodyStore implements LimitStore {
  mood: 'answers' | 'fails' | 'silent' | 'late' | 'wrong' = 'answers';
  /** Settles a call that was `late`. */
  answerNow: () => void = () => undefined;
  asked = 0;
  readonly #store: LimitStore;

  constructor(store: LimitStore) {
    this.#store = store;
  }

  async take(call: LimitCall): Promise<LimitAnswers> {
    this.asked++;
    if (this.mood === 'fails') throw new OperationalError('redis', 'there is no connection', { retryable: true });
    if (this.mood === 'wrong') throw new Bug('a script answered nonsense');
    if (this.mood === 'silent') return new Promise(() => undefined);
    if (this.mood === 'late') await new Promise<void>((resolve) => (this.answerNow = resolve));
    return this.#store.take(call);
  }
}

describe('limits with an unreliable Redis', () => {
  let clock: SteppedClock;
  let shared: MoodyStore;
  let store: FallbackLimitStore;
  let counted: Record<'redis' | 'local', number>;
  let logged: string[];
  let options: typeof OPTIONS;
  beforeEach(() => {
    clock = new SteppedClock();
    shared = new MoodyStore(new LocalLimitStore(clock));
    counted = { redis: 0, local: 0 };
    logged = [];
    options = OPTIONS;
    const metrics = {
      ...noAdmissionMetrics,
      requestsCounted: (by: 'redis' | 'local', callers: number) => void (counted[by] += callers),
    };
    const note = (_: object, message: string): void => void logged.push(message);
    const log = { ...silentLog, info: note, warn: note };
    store = new FallbackLimitStore({ shared, local: new LocalLimitStore(clock), clock, metrics, log }, () => options);
  });
  const outcome = async (): Promise<string | undefined> => (await store.take(CALL)).verdicts[0]?.outcome;
  const outcomes = async (count: number): Promise<(string | undefined)[]> => {
    const words = [];
    for (let i = 0; i < count; i++) words.push(await outcome());
    return words;
  };
  const IN = 'allowed';
  const OUT = 'rate_limited';

  it('count locally while Redis is down, and try Redis again now and then', async () => {
    shared.mood = 'fails';
    expect(await outcomes(5)).to.deep.equal([IN, IN, IN, IN, OUT]);
    expect([shared.asked, counted]).to.deep.equal([1, { redis: 0, local: 5 }]);
    clock.advance(499);
    await outcome();
    expect(shared.asked).to.equal(1);
    clock.advance(1);
    await outcome();
    expect(shared.asked).to.equal(2);
    expect(logged).to.have.length(1);
  });

  it('use the counts of Redis again once it is back', async () => {
    await outcomes(3);
    shared.mood = 'fails';
    expect(await outcomes(2)).to.deep.equal([IN, IN]);
    shared.mood = 'answers';
    clock.advance(500);
    expect(await outcomes(2)).to.deep.equal([IN, OUT]);
    expect(counted).to.deep.equal({ redis: 5, local: 2 });
    expect(logged).to.have.length(2);
  });

  it('let only one request at a time wait for a silent Redis', async () => {
    shared.mood = 'silent';
    let first: string | undefined;
    void outcome().then((word) => (first = word));
    await nextTurn();
    clock.advance(99);
    await nextTurn();
    expect(first).to.equal(undefined);
    clock.advance(1);
    await nextTurn();
    await nextTurn();
    expect(first).to.equal(IN);
    expect(await outcome()).to.equal(IN);
    clock.advance(500);
    void outcome();
    await nextTurn();
    expect(await outcome(), 'while one call tests whether it is back').to.equal(IN);
    expect(shared.asked).to.equal(2);
  });

  it('count locally once a request has waited as long as Redis may take', async () => {
    const waited = (waitedMs: number): Promise<LimitAnswers> => store.take(CALL, waitedMs);
    await waited(99);
    expect(counted).to.deep.equal({ redis: 1, local: 0 });
    expect((await waited(100)).verdicts[0]?.outcome).to.equal(IN);
    expect([shared.asked, counted]).to.deep.equal([1, { redis: 1, local: 1 }]);
    await waited(0);
    expect(shared.asked, 'it is not away').to.equal(2);
  });

  it('use an answer that arrived while the process slept, even after its timeout', async () => {
    shared.mood = 'late';
    const word = outcome();
    clock.advance(100);
    await Promise.resolve(); // The timer has fired.
    shared.answerNow();
    expect(await word).to.equal(IN);
    expect(counted).to.deep.equal({ redis: 1, local: 0 });
  });

  it('report a `Bug` instead of counting locally', async () => {
    shared.mood = 'wrong';
    expect(await store.take(CALL).catch((error: unknown) => error)).to.be.instanceOf(Bug);
  });

  it('give each process an equal share of the limit, at least one request', async () => {
    shared.mood = 'fails';
    options = { ...OPTIONS, processes: 3 };
    expect(await outcomes(3)).to.deep.equal([IN, IN, OUT]);
    const limits = { ...SHARED_LIMITS, global: { ratePerSecond: 100, burst: 2 }, ip: { limit: 9, windowMs: 100 } };
    expect(shareOf(limits, 4)).to.deep.equal({
      subjectsMax: 100,
      global: { ratePerSecond: 25, burst: 1 },
      user: { limit: 1, windowMs: 60_000 },
      ip: { limit: 3, windowMs: 100 },
    });
  });
});
