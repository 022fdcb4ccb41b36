import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { TokenIssue } from '../../src/core/ports/admission-stores.js';
import { freshSaleId } from '../helpers/sales.js';
import { STORE_WORLDS, type StoreWorld } from './store-worlds.js';
import { onEachWorld } from './on-each-world.js';

onEachWorld<StoreWorld>('contract NonceStore', STORE_WORLDS, (world) => {
  const take = async (keyId: string, nonce: string, lifeMs = 60_000, signedAgoMs = 0): Promise<string> =>
    world.nonces.take(keyId, nonce, { lifeMs, signedAtMs: (await world.nowMs()) - signedAgoMs });

  it('accepts a nonce in exactly one of many concurrent calls', async () => {
    const nonce = randomUUID();
    const answers = await Promise.all(Array.from({ length: 20 }, () => take('k1', nonce)));
    expect(answers.filter((answer) => answer === 'fresh')).to.have.length(1);
    expect(await take('k1', nonce)).to.equal('used');
  });

  it('keeps nonces of different keys apart', async () => {
    const nonce = randomUUID();
    expect(await take('k1', nonce)).to.equal('fresh');
    expect(await take('k2', nonce)).to.equal('fresh');
  });

  it('expires a nonce after its lifetime, even if the nonce is refused in between', async () => {
    const nonce = randomUUID();
    await take('k1', nonce, 2000);
    expect(await take('k1', nonce, 600_000)).to.equal('used');
    let [answer, waitedMs] = ['used', 0];
    for (; answer === 'used' && waitedMs < 10_000; waitedMs += 250) {
      await world.elapse(250);
      answer = await take('k1', nonce, 600_000);
    }
    expect(answer).to.equal('fresh');
  });
});

onEachWorld<StoreWorld>('contract PurchaseTokenStore', STORE_WORLDS, (world) => {
  const issueOf = async (parts: Partial<TokenIssue> = {}): Promise<TokenIssue> => {
    const nowMs = await world.nowMs();
    const times = { fromMs: nowMs - 1000, untilMs: nowMs + 3_600_000, opensAtMs: nowMs, lifeMs: 600_000 };
    return { saleId: freshSaleId(), ...times, tokensMax: 3, perBuyer: 3, perAddress: null, ...parts };
  };
  const buyer = (userId: string, address: string | null = null) => ({ userId, address });
  const issueTo = async (issue: TokenIssue, userId: string, address: string | null = null): Promise<string> =>
    (await world.tokens.issue(issue, buyer(userId, address))).outcome;

  it('issues each buyer one token while tokens are left, and the same token on a repeat', async () => {
    const issue = await issueOf();
    const words = [];
    for (const user of ['a', 'b', 'a', 'c', 'd', 'b']) words.push(await issueTo(issue, user));
    expect(words).to.deep.equal(['issued', 'issued', 'issued_before', 'issued', 'none_left', 'issued_before']);
  });

  it('frees the place of an expired token, and refuses a buyer with too many expired tokens', async () => {
    const lifeMs = 1000;
    const issue = await issueOf({ tokensMax: 1, perBuyer: 2, lifeMs });
    const afterwards = async (userId: string): Promise<string> => {
      await world.elapse(lifeMs + 1);
      return issueTo(issue, userId);
    };
    const first = await world.tokens.issue(issue, buyer('a'));
    expect(first.outcome).to.equal('issued');
    expect(await world.tokens.issue(issue, buyer('b'))).to.deep.equal({ outcome: 'none_left', atMs: first.atMs });
    expect(await afterwards('b')).to.equal('issued');
    expect(await afterwards('a'), 'the second one of this buyer').to.equal('issued');
    expect(await afterwards('a')).to.equal('buyer_limit');
  });

  it('limits the number of unredeemed tokens per address', async () => {
    const issue = await issueOf({ tokensMax: 10, perAddress: 2 });
    const { saleId } = issue;
    for (const user of ['a', 'b']) expect(await issueTo(issue, user, '203.0.113.7')).to.equal('issued');
    expect(await issueTo(issue, 'c', '203.0.113.7')).to.equal('address_limit');
    expect(await issueTo(issue, 'c', '203.0.113.8')).to.equal('issued');
    expect(await issueTo(issue, 'd', null), 'an address that is not known').to.equal('issued');
    await world.tokens.redeem({ saleId, requestId: 'r1', ...buyer('a', '203.0.113.7') }, true);
    expect(await issueTo(issue, 'e', '203.0.113.7')).to.equal('issued');
  });

  it('issues no token too early or too late by the clock of Redis', async () => {
    const nowMs = await world.nowMs();
    const early = await issueOf({ fromMs: nowMs + 60_000, untilMs: nowMs + 120_000 });
    const answer = await world.tokens.issue(early, buyer('a'));
    expect(answer.outcome).to.equal('too_early');
    expect(answer.atMs).to.be.within(nowMs, nowMs + 10_000);
    expect(await issueTo({ ...early, fromMs: nowMs - 1000 }, 'a')).to.equal('issued');
    expect(await issueTo({ ...early, fromMs: nowMs - 1000, untilMs: nowMs }, 'a')).to.equal('too_late');
  });

  it('binds a token to its first purchase', async () => {
    const issue = await issueOf();
    const { saleId } = issue;
    await issueTo(issue, 'a');
    const redeem = (requestId: string, isGood: boolean, userId = 'a'): Promise<string> =>
      world.tokens.redeem({ saleId, requestId, ...buyer(userId) }, isGood);
    expect(await redeem('r1', false)).to.equal('ended');
    expect(await redeem('r1', true)).to.equal('redeemed');
    expect(await redeem('r1', true)).to.equal('redeemed_before');
    expect(await redeem('r1', false)).to.equal('redeemed_before');
    expect(await redeem('r2', true)).to.equal('redeemed_for_another');
    expect(await redeem('r2', false)).to.equal('redeemed_for_another');
    expect(await issueTo(issue, 'a')).to.equal('issued_before');
    expect(await redeem('r2', true)).to.equal('redeemed_for_another');
    // The list may have been lost, so the token is not in it.
    expect(await redeem('r2', true, 'b')).to.equal('redeemed');
  });
});
