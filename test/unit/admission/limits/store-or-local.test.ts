import { expect } from 'chai';
import { Bug, OperationalError } from '../../../../src/core/errors.js';
import type { LimitSet } from '../../../../src/core/limits.js';
import { FallbackLimitStore, shareOf } from '../../../../src/admission/limits/shared-limits.js';
import { LocalLimitStore } from '../../../../src/admission/limits/local-limit-store.js';
import type { LimitAnswers, LimitCall, LimitStore } from '../../../../src/core/ports/admission-stores.js';
import { noAdmissionMetrics } from '../../../../src/admission/metrics.js';
import { silentLog } from '../../../../src/core/ports/log.js';
import { SteppedClock } from '../../../helpers/memory/stepped-clock.js';

const OPTIONS = { replyTimeoutMs: 100, retryEveryMs: 500, processes: 0 };
const LIMITS: LimitSet = { global: null, user: { limit: 4, windowMs: 60_000 }, ip: null, subjectsMax: 100 };
const CALL: LimitCall = { endpoint: 'purchase', limits: LIMITS, callers: [{ address: null, userId: 'u1' }] };

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A ledger that answers, fails or is silent, as it is told. */
class MoodyStore implements LimitStore {
  mood: 'answers' | 'fails' | 'silent' | 'late' | 'wrong' = 'answers';
  /** Of a call that was `late`. */
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

describe('ledger-or-local', () => {
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

  it('Redis away: the process counts by itself, without an error, and asks again now and then', async () => {
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

  it('back by itself, to what Redis had counted', async () => {
    await outcomes(3);
    shared.mood = 'fails';
    expect(await outcomes(2)).to.deep.equal([IN, IN]);
    shared.mood = 'answers';
    clock.advance(500);
    expect(await outcomes(2)).to.deep.equal([IN, OUT]);
    expect(counted).to.deep.equal({ redis: 5, local: 2 });
    expect(logged).to.have.length(2);
  });

  it('a silent Redis costs one wait of replyTimeoutMs; meanwhile, and at each further look, nobody else waits', async () => {
    shared.mood = 'silent';
    let first: string | undefined;
    void outcome().then((word) => (first = word));
    await turn();
    clock.advance(99);
    await turn();
    expect(first).to.equal(undefined);
    clock.advance(1);
    await turn();
    await turn();
    expect(first).to.equal(IN);
    expect(await outcome()).to.equal(IN);
    clock.advance(500);
    void outcome();
    await turn();
    expect(await outcome(), 'while one call looks whether it is back').to.equal(IN);
    expect(shared.asked).to.equal(2);
  });

  it('visits that have waited for as long as an answer may take are judged here, and Redis is not asked', async () => {
    const waited = (waitedMs: number): Promise<LimitAnswers> => store.take(CALL, waitedMs);
    await waited(99);
    expect(counted).to.deep.equal({ redis: 1, local: 0 });
    expect((await waited(100)).verdicts[0]?.outcome).to.equal(IN);
    expect([shared.asked, counted]).to.deep.equal([1, { redis: 1, local: 1 }]);
    await waited(0);
    expect(shared.asked, 'it is not away').to.equal(2);
  });

  it('an answer that was there when the process woke up counts, although its time was over', async () => {
    shared.mood = 'late';
    const word = outcome();
    clock.advance(100);
    await Promise.resolve(); // the timer has run
    shared.answerNow();
    expect(await word).to.equal(IN);
    expect(counted).to.deep.equal({ redis: 1, local: 0 });
  });

  it('a bug is not hidden behind the local count', async () => {
    shared.mood = 'wrong';
    expect(await store.take(CALL).catch((error: unknown) => error)).to.be.instanceOf(Bug);
  });

  it('processes that know how many they are take a share each, at least one visit', async () => {
    shared.mood = 'fails';
    options = { ...OPTIONS, processes: 3 };
    expect(await outcomes(3)).to.deep.equal([IN, IN, OUT]);
    const limits = { ...LIMITS, global: { ratePerSecond: 100, burst: 2 }, ip: { limit: 9, windowMs: 100 } };
    expect(shareOf(limits, 4)).to.deep.equal({
      ...{ subjectsMax: 100, global: { ratePerSecond: 25, burst: 1 } },
      ...{ user: { limit: 1, windowMs: 60_000 }, ip: { limit: 3, windowMs: 100 } },
    });
  });
});
