import { expect } from 'chai';
import { purchaseTokenKeys } from '../../src/redis/keys.js';
import { freshSaleId } from '../helpers/sales.js';
import { ScriptRunner } from './script-runner.js';

const KEPT_MS = 600_000;
const LIFE_MS = 60_000;

describe('lua/issue-token-3.lua and lua/redeem-token-2.lua', () => {
  const runner = ScriptRunner.inSuite();
  let saleId: string;
  let nowMs: number;
  beforeEach(async () => {
    saleId = freshSaleId();
    nowMs = await runner.nowMs();
  });

  interface Terms {
    readonly from?: number;
    readonly until?: number;
    readonly opens?: number;
    readonly life?: number;
    readonly max?: number;
    readonly perBuyer?: number;
    readonly perAddress?: number;
    readonly address?: string;
  }
  const keyOf = {
    tokens: () => purchaseTokenKeys.tokens(saleId),
    ends: () => purchaseTokenKeys.ends(saleId),
    from: (address: string) => purchaseTokenKeys.from(saleId, address),
  };
  const issue = async (userId: string, terms: Terms = {}): Promise<[word: string, atMs: number]> => {
    const { from = -1000, until = 600_000, opens = 0, life = LIFE_MS, max = 2 } = terms;
    const { perBuyer = 3, perAddress = 0, address = '' } = terms;
    const keys = [keyOf.tokens(), keyOf.ends(), keyOf.from(address)];
    const times = [nowMs + from, nowMs + until, nowMs + opens, life];
    const args = [userId, ...times, max, perBuyer, perAddress, KEPT_MS];
    return (await runner.connection.run('issue-token', keys, args)) as [string, number];
  };
  const redeem = (userId: string, requestId: string, isGood: 0 | 1 = 1, address = ''): Promise<unknown> =>
    runner.connection.run('redeem-token', [keyOf.tokens(), keyOf.from(address)], [userId, requestId, isGood, KEPT_MS]);
  const entries = (): Promise<Record<string, string>> => runner.connection.redis.hgetall(keyOf.tokens());
  /** Ends the tokens of these buyers. */
  const lapse = async (...users: string[]): Promise<void> => {
    for (const user of users) await runner.connection.redis.zadd(keyOf.ends(), nowMs - 1, user);
  };

  it('lets a token live from its issue or the opening, and returns the same token until its end', async () => {
    const [, endsAtMs] = await issue('a');
    expect(endsAtMs).to.be.within(nowMs + LIFE_MS, nowMs + LIFE_MS + 10_000);
    expect(await issue('a', { life: 5000 })).to.deep.equal(['issued_before', endsAtMs]);
    expect(await issue('b', { opens: 30_000 })).to.deep.equal(['issued', nowMs + 30_000 + LIFE_MS]);
  });

  it('keeps the place of a redeemed token until its end, and gives its buyer no other token', async () => {
    for (const user of ['a', 'b']) await issue(user);
    expect(await redeem('a', '17'), 'a key of digits alone').to.equal('redeemed');
    expect((await issue('c'))[0]).to.equal('none_left');
    await lapse('a');
    expect((await issue('a'))[0]).to.equal('issued_before');
    expect((await issue('c'))[0]).to.equal('issued');
    expect(await redeem('a', '17', 0), 'its purchase goes on').to.equal('redeemed_before');
  });

  it('returns `buyer_limit`, before it counts places, if a buyer has let too many tokens lapse', async () => {
    for (const entry of ['', ':2', ':3']) {
      expect((await issue('a'))[0]).to.equal('issued');
      expect(await entries()).to.deep.equal({ a: entry });
      await lapse('a');
    }
    expect((await issue('a', { max: 0 }))[0]).to.equal('buyer_limit');
  });

  it('returns `address_limit` rather than `none_left` if an address has too many unredeemed tokens', async () => {
    const there = { perAddress: 2, address: '203.0.113.7', max: 3 };
    const [, firstEnd] = await issue('a', there);
    await issue('b', { ...there, life: 2 * LIFE_MS });
    expect(await issue('c', there)).to.deep.equal(['address_limit', firstEnd]);
    expect((await issue('a', there))[0], 'who has one hears it').to.equal('issued_before');
    expect((await issue('d', { ...there, address: '203.0.113.8' }))[0]).to.equal('issued');
    expect((await issue('e', { ...there, address: '203.0.113.9' }))[0]).to.equal('none_left');
    await redeem('a', 'r1', 1, there.address);
    expect((await issue('c', { ...there, max: 4 }))[0], 'a redeemed one does not count').to.equal('issued');
    expect(await runner.connection.redis.pttl(keyOf.from(there.address))).to.be.within(1, 2 * LIFE_MS);
  });

  it('remembers at most as many lapsed tokens as there are places, and every redeemed token', async () => {
    await issue('a');
    await redeem('a', 'r1');
    await lapse('a');
    for (const user of ['b', 'c', 'd', 'e']) {
      expect((await issue(user))[0]).to.equal('issued');
      await lapse(user);
    }
    await issue('f');
    expect(await entries()).to.deep.equal({ a: 'r1', d: '', e: '', f: '' });
  });

  it('lets the list expire some time after the sale, even if a purchase creates it', async () => {
    const lifeMs = (): Promise<number> => runner.connection.redis.pttl(keyOf.tokens());
    await issue('a');
    expect(await lifeMs()).to.be.within(600_000 + KEPT_MS - 10_000, 600_000 + KEPT_MS);
    await redeem('a', 'r1');
    expect(await lifeMs()).to.be.above(KEPT_MS); // not shortened
    saleId = freshSaleId();
    await redeem('a', 'r1');
    expect(await lifeMs()).to.be.within(KEPT_MS - 10_000, KEPT_MS);
  });
});
