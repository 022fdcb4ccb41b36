import { expect } from 'chai';
import fc from 'fast-check';
import { limitVerdict, WINDOW_SLICES, type LimitSet } from '../../src/core/limits.js';
import { LocalLimitStore } from '../../src/admission/limits/local-limit-store.js';
import { type LimitAnswers, type LimitCaller } from '../../src/core/ports/admission-stores.js';
import { limitKeys } from '../../src/redis/keys.js';
import { createLimitStore } from '../../src/redis/limit-store.js';
import { partial } from '../helpers/partial.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { freshSaleId } from '../helpers/sales.js';
import { ScriptRunner } from './script-runner.js';
import { pause } from '../chaos/harness/wait.js';

const NONE: LimitSet = { global: null, user: null, ip: null, subjectsMax: 100_000 };
const PAST_LIVES_MS = 50;

/** An endpoint that no other test uses. */
const freshEndpoint = (): string => `test-${freshSaleId()}`;

const caller = (address: string | null, userId: string | null): LimitCaller => ({ address, userId });
const outcomes = ({ verdicts }: LimitAnswers): string[] => verdicts.map(({ outcome }) => outcome);
const allowedIn = (answers: LimitAnswers): number => outcomes(answers).filter((word) => word === 'allowed').length;

describe('lua/take-permits-5.lua', () => {
  const runner = ScriptRunner.inSuite();
  /** Time of the last run of the script on its own clock, µs. */
  let nowUs = 0;

  const take = (endpoint: string, limits: LimitSet, callers: readonly LimitCaller[]): Promise<LimitAnswers> => {
    const run: typeof runner.connection.run = async (...args) => {
      const reply = (await runner.connection.run(...args)) as unknown[];
      nowUs = Number(reply[0]);
      return reply;
    };
    return createLimitStore(partial({ run })).take({ endpoint, limits, callers });
  };
  const keysOf = (endpoint: string, { ip, user }: LimitSet): string[] => [
    limitKeys.bucket(endpoint),
    ...(ip ? limitKeys.window(endpoint, 'ip', ip.windowMs) : []),
    ...(user ? limitKeys.window(endpoint, 'user', user.windowMs) : []),
  ];

  it('decides like the limits in TypeScript, to the microsecond, for any sequence of calls', async () => {
    const who = fc.record({
      address: fc.constantFrom('10.0.0.1', '10.0.0.2', null),
      userId: fc.constantFrom('u1', 'u2', 'u3', null),
    });
    const windowOf = fc.record({
      limit: fc.integer({ min: 1, max: 6 }),
      windowMs: fc.constantFrom(100, 150, 200),
    });
    const limits = fc.record({
      global: fc.option(
        fc.record({ ratePerSecond: fc.integer({ min: 1, max: 500 }), burst: fc.integer({ min: 1, max: 10 }) }),
      ),
      user: fc.option(windowOf),
      ip: fc.option(windowOf),
      subjectsMax: fc.constant(100_000),
    });
    const steps = fc.array(
      fc.record({
        callers: fc.array(who, { minLength: 1, maxLength: 6 }),
        pauseMs: fc.constantFrom(0, 0, 0, 3, 20, 70),
      }),
      { minLength: 1, maxLength: 25 },
    );
    const words = new Set<string>();
    await fc.assert(
      fc.asyncProperty(limits, steps, async (set, list) => {
        const endpoint = freshEndpoint();
        const clock = new ManualClock(0);
        const model = new LocalLimitStore(clock);
        for (const { callers, pauseMs } of list) {
          if (pauseMs > 0) await pause(pauseMs);
          const answers = await take(endpoint, set, callers);
          clock.advance(nowUs / 1000 - clock.monotonicMs());
          expect(Math.floor(clock.monotonicMs() * 1000), 'the same microsecond').to.equal(nowUs);
          expect(answers).to.deep.equal(await model.take({ endpoint, limits: set, callers }));
          for (const { outcome, limit } of answers.verdicts) words.add(`${outcome} ${limit}`);
        }
      }),
      { numRuns: 40 },
    );
    expect(words, 'each verdict has occurred').to.include.members([
      'allowed ip',
      'allowed user',
      'allowed global',
      'allowed null',
      'rate_limited ip',
      'rate_limited user',
      'rate_limited global',
    ]);
  });

  it('shares the counts between two processes', async () => {
    const limits = { ...NONE, global: { ratePerSecond: 1, burst: 50 }, user: { limit: 10, windowMs: 60_000 } };
    const endpoint = freshEndpoint();
    const other = await ScriptRunner.open(process.env.REDIS_URL);
    try {
      const stores = [runner, other].map(({ connection }) => createLimitStore(connection));
      const calls = Array.from({ length: 40 }, (_, i) =>
        stores[i % 2]?.take({ endpoint, limits, callers: [caller(null, `u${i % 4}`), caller(null, 'u9')] }),
      );
      const answers = (await Promise.all(calls)).filter((one) => one !== undefined);
      expect(answers.reduce((sum, one) => sum + allowedIn(one), 0)).to.equal(50);
    } finally {
      await other.close();
    }
  });

  it('lets keys expire and drops a generation that is no longer needed', async () => {
    const limits = {
      ...NONE,
      global: { ratePerSecond: 100, burst: 20 },
      user: { limit: 3, windowMs: 100 },
      ip: { limit: 3, windowMs: 100 },
    };
    const endpoint = freshEndpoint();
    const keys = keysOf(endpoint, limits);
    const crowd = Array.from({ length: 15 }, (_, i) => caller(`10.0.0.${i}`, `u${i}`));
    await take(endpoint, limits, crowd);
    const { redis } = runner.connection;
    for (const key of keys) {
      const leftMs = await redis.pttl(key); // -2: the key has expired or never existed
      if (leftMs !== -2) expect(leftMs, key).to.be.within(0, 201);
    }
    await pause(200 + PAST_LIVES_MS);
    expect(await redis.exists(...keys)).to.equal(0);
    let most = 0;
    for (let i = 0; i < 40; i++) {
      await take(endpoint, { ...limits, global: null }, [caller(`10.0.1.${i}`, `v${i}`)]);
      const sizes = await Promise.all(keys.slice(3).map((key) => redis.hlen(key)));
      most = Math.max(most, ...sizes);
      await pause(20);
    }
    expect(most, 'those of one generation').to.be.within(2, 8);
  });

  it('writes nothing when no limit is set', async () => {
    const endpoint = freshEndpoint();
    const { verdicts } = await take(endpoint, NONE, [caller('10.0.0.1', 'u1')]);
    expect(verdicts[0]).to.deep.equal(
      limitVerdict(NONE, { nowUs, outcome: 'allowed', ip: null, user: null, tokens: 0 }),
    );
    const keys = [limitKeys.bucket(endpoint), ...limitKeys.window(endpoint, 'ip', 0)];
    expect(await runner.connection.redis.exists(...keys)).to.equal(0);
    expect(WINDOW_SLICES).to.equal(10); // value in the script
  });
});
