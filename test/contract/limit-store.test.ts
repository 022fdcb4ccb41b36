import { expect } from 'chai';
import type { LimitSet } from '../../src/core/limits.js';
import { LocalLimitStore } from '../../src/admission/limits/local-limit-store.js';
import {
  LIMIT_CALLERS_MAX,
  type LimitAnswers,
  type LimitCaller,
  type LimitStore,
} from '../../src/core/ports/admission-stores.js';
import { silentLog } from '../helpers/silent-log.js';
import { connectRedis } from '../../src/redis/connection.js';
import { createLimitStore } from '../../src/redis/limit-store.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { onRedisCluster } from '../helpers/redis-cluster.js';
import { freshSaleId } from '../helpers/sales.js';
import { stackEnv } from '../helpers/stack-env.js';
import { onEachWorld } from './on-each-world.js';

interface World {
  readonly store: LimitStore;
  /** Advances the clock. */
  elapse(ms: number): Promise<void>;
  close(): Promise<void>;
}

async function localWorld(): Promise<World> {
  const clock = new ManualClock();
  return {
    store: new LocalLimitStore(clock),
    elapse: (ms) => clock.sleep(ms),
    close: async () => undefined,
  };
}

async function redisWorld(url = stackEnv().REDIS_URL): Promise<World> {
  const connection = await connectRedis({ url, replyTimeoutMs: 5000, connectTimeoutMs: 3000 }, silentLog);
  return {
    store: createLimitStore(connection),
    elapse: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    close: () => connection.close(),
  };
}

const WORLDS = [
  ['one process', localWorld],
  ['redis', () => redisWorld()],
  ['a Redis cluster', () => onRedisCluster(redisWorld)],
] as const;

const NONE: LimitSet = { global: null, user: null, ip: null, subjectsMax: 1000 };
/** Longer than any test. */
const LONG_MS = 600_000;
const SHORT_MS = 400;

const user = (userId: string): LimitCaller => ({ address: null, userId });
const from = (address: string): LimitCaller => ({ address, userId: null });
const words = ({ verdicts }: LimitAnswers): string[] =>
  verdicts.map(({ outcome, limit }) => (outcome === 'allowed' ? 'in' : String(limit)));

onEachWorld<World>('contract LimitStore', WORLDS, (world) => {
  let endpoint: string;
  beforeEach(() => {
    endpoint = `test-${freshSaleId()}`;
  });
  const take = (limits: Partial<LimitSet>, ...callers: LimitCaller[]): Promise<LimitAnswers> =>
    world.store.take({ endpoint, limits: { ...NONE, ...limits }, callers });

  it('admits the maximum per window, and counts each user separately', async () => {
    const limits = { user: { limit: 2, windowMs: LONG_MS } };
    expect(words(await take(limits, user('a'), user('a'), user('a'), user('b')))).to.deep.equal([
      'in',
      'in',
      'user',
      'in',
    ]);
    expect(words(await take(limits, user('a'), user('b'), user('b')))).to.deep.equal(['user', 'in', 'user']);
  });

  it('returns the number of requests left and the time of the next one', async () => {
    const limits = { user: { limit: 2, windowMs: LONG_MS } };
    const { verdicts } = await take(limits, user('a'), user('a'), user('a'));
    expect(verdicts.map(({ remaining }) => remaining)).to.deep.equal([1, 0, 0]);
    expect(verdicts.map(({ limit }) => limit)).to.deep.equal(['user', 'user', 'user']);
    expect(verdicts[0]?.retryAfterMs).to.equal(0);
    expect(verdicts[2]?.retryAfterMs).to.be.within(0.99 * LONG_MS, 1.1 * LONG_MS);
    expect(verdicts[2]?.resetMs).to.be.within(0.99 * LONG_MS, 1.1 * LONG_MS);
  });

  it('admits a request again after the returned wait', async () => {
    const limits = { ip: { limit: 1, windowMs: SHORT_MS } };
    const { verdicts } = await take(limits, from('10.0.0.1'), from('10.0.0.1'));
    const waitMs = verdicts[1]?.retryAfterMs ?? 0;
    expect(waitMs).to.be.within(1, 1.1 * SHORT_MS);
    await world.elapse(waitMs + 1);
    expect(words(await take(limits, from('10.0.0.1')))).to.deep.equal(['in']);
  });

  it('admits one burst of the global bucket for all callers, then its steady rate', async () => {
    const limits = { global: { ratePerSecond: 20, burst: 3 } };
    const first = await take(limits, user('a'), from('10.0.0.1'), user('b'), user('c'), user('d'));
    expect(words(first)).to.deep.equal(['in', 'in', 'in', 'global', 'global']);
    const refused = first.verdicts[4];
    expect(refused?.retryAfterMs).to.be.within(1, 50);
    expect(refused?.resetMs).to.be.within(101, 150);
    await world.elapse(51);
    expect(words(await take(limits, user('d')))).to.deep.equal(['in']);
  });

  it('uses up no limit when one limit refuses, and names the limit with the longest wait', async () => {
    const limits = {
      ip: { limit: 1, windowMs: SHORT_MS },
      user: { limit: 2, windowMs: LONG_MS },
      global: { ratePerSecond: 1, burst: 4 },
    };
    const both = (address: string, userId: string): LimitCaller => ({ address, userId });
    const answers = await take(
      limits,
      both('10.0.0.1', 'a'),
      both('10.0.0.1', 'a'),
      both('10.0.0.2', 'a'),
      both('10.0.0.2', 'a'),
      both('10.0.0.3', 'b'),
      both('10.0.0.4', 'c'),
      both('10.0.0.5', 'd'),
    );
    expect(words(answers)).to.deep.equal(['in', 'ip', 'in', 'user', 'in', 'in', 'global']);
  });

  it('counts each endpoint separately', async () => {
    const limits = { ...NONE, user: { limit: 1, windowMs: LONG_MS } };
    await take(limits, user('a'));
    const other = { endpoint: `${endpoint}-other`, limits, callers: [user('a')] };
    expect(words(await world.store.take(other))).to.deep.equal(['in']);
  });

  it('admits further subjects uncounted when the maximum number of subjects is reached', async () => {
    const limits = { user: { limit: 1, windowMs: LONG_MS }, subjectsMax: 1 };
    await take(limits, user('a'));
    const answers = await take(limits, user('b'), user('b'), user('a'));
    expect(words(answers)).to.deep.equal(['in', 'in', 'user']);
    expect(answers.uncounted).to.equal(2);
  });

  it('decides the maximum number of requests in one call', async () => {
    const limits = { user: { limit: 1, windowMs: LONG_MS }, ip: { limit: 50, windowMs: LONG_MS } };
    const crowd = Array.from({ length: LIMIT_CALLERS_MAX }, (_, i) => ({ address: '10.0.0.1', userId: `u${i}` }));
    const { verdicts } = await take(limits, ...crowd);
    expect(verdicts.filter(({ outcome }) => outcome === 'allowed')).to.have.length(50);
  });
});
