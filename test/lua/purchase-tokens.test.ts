import { expect } from 'chai';
import { purchaseTokensKey } from '../../src/redis/keys.js';
import { freshSaleId } from '../helpers/sales.js';
import { ScriptRunner } from './script-runner.js';

const KEPT_MS = 600_000;

describe('lua/issue-token-1.lua and lua/redeem-token-1.lua', () => {
  let runner: ScriptRunner;
  let key: string;
  let nowMs: number;
  before(async () => {
    runner = await ScriptRunner.open();
  });
  after(() => runner?.close());
  beforeEach(async () => {
    key = purchaseTokensKey(freshSaleId());
    nowMs = await runner.nowMs();
  });

  const issue = async (userId: string, { from = -1000, until = 60_000, max = 2 } = {}): Promise<unknown[]> =>
    (await runner.connection.run(
      'issue-token',
      [key],
      [userId, nowMs + from, nowMs + until, max, KEPT_MS],
    )) as unknown[];
  const redeem = (userId: string, requestId: string, isGood: 0 | 1 = 1): Promise<unknown> =>
    runner.connection.run('redeem-token', [key], [userId, requestId, isGood, KEPT_MS]);
  const entries = (): Promise<Record<string, string>> => runner.connection.redis.hgetall(key);
  const lifeMs = (): Promise<number> => runner.connection.redis.pttl(key);

  it('too_early and too_late come before all else, and leave nothing behind', async () => {
    expect((await issue('a', { from: 5000, until: -1000 }))[0]).to.equal('too_early');
    expect((await issue('a', { until: -1, max: 0 }))[0]).to.equal('too_late');
    expect(await runner.connection.redis.exists(key)).to.equal(0);
  });

  it('handed_before comes before none_left; the list never grows beyond its tokens', async () => {
    for (const [user, word] of [
      ['a', 'handed'],
      ['b', 'handed'],
      ['c', 'none_left'],
      ['a', 'handed_before'],
    ] as const) {
      expect((await issue(user))[0], user).to.equal(word);
    }
    expect(await entries()).to.deep.equal({ a: '', b: '' });
  });

  it('the time is that of the server', async () => {
    const [, time] = await issue('a');
    expect(time)
      .to.be.a('number')
      .within(nowMs, nowMs + 10_000);
  });

  it('the list ends some time after the sale, also one that begins with a purchase', async () => {
    await issue('a');
    expect(await lifeMs()).to.be.within(60_000 + KEPT_MS - 10_000, 60_000 + KEPT_MS);
    await redeem('a', 'r1');
    expect(await lifeMs()).to.be.above(KEPT_MS); // not shortened
    key = purchaseTokensKey(freshSaleId());
    await redeem('a', 'r1');
    expect(await lifeMs()).to.be.within(KEPT_MS - 10_000, KEPT_MS);
  });

  it('spent, spent_before, spent_otherwise, ended', async () => {
    await issue('a');
    expect(await redeem('a', 'r1', 0)).to.equal('ended');
    expect(await entries()).to.deep.equal({ a: '' });
    expect(await redeem('a', 'r1')).to.equal('spent');
    expect(await redeem('a', 'r1', 0)).to.equal('spent_before');
    expect(await redeem('a', 'r2', 0)).to.equal('spent_otherwise');
    expect(await entries()).to.deep.equal({ a: 'r1' });
  });
});
