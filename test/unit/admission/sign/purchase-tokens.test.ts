import { expect } from 'chai';
import { readKeyring } from '../../../../src/core/hmac.js';
import { Seals } from '../../../../src/admission/sign/seals.js';
import { PurchaseTokens, type TokenAnswer } from '../../../../src/admission/sign/purchase-tokens.js';
import { signRules, type TokenRules } from '../../../../src/admission/sign/request-signatures.js';
import { ManualClock } from '../../../helpers/memory/manual-clock.js';
import { MemoryPurchaseTokenStore } from '../../../helpers/memory/memory-admission-stores.js';
import { noAdmissionMetrics } from '../../../helpers/no-metrics.js';

const KEYS = readKeyring('k1:a-secret-for-tokens-that-is-long-enough-1');

describe('purchase tokens', () => {
  let clock: ManualClock;
  let store: MemoryPurchaseTokenStore;
  let rules: TokenRules;
  let refused: string[];
  let tokens: PurchaseTokens;
  let sale: { saleId: string; stock: number; opensAtMs: number; closesAtMs: number };

  const set = (raw: object = {}): void => void (rules = signRules.parse({ tokens: { mode: 'on', ...raw } }).tokens);
  beforeEach(() => {
    clock = new ManualClock();
    store = new MemoryPurchaseTokenStore(clock);
    refused = [];
    set();
    const nowMs = clock.nowMs();
    sale = { saleId: '7', stock: 2, opensAtMs: nowMs + 60_000, closesAtMs: nowMs + 3_600_000 };
    const metrics = { ...noAdmissionMetrics, refused: (...words: string[]) => void refused.push(words.join(' ')) };
    tokens = new PurchaseTokens({ rules: () => rules, seals: new Seals(KEYS), store, clock, random: () => 0, metrics });
  });

  const issue = (userId: string, address = ''): Promise<TokenAnswer> => tokens.issue(sale, { userId, address });
  const issued = async (userId: string): Promise<string> => {
    const answer = await issue(userId);
    return answer.outcome === 'issued' ? answer.token : answer.outcome;
  };
  /** Runs the three steps in the order of the pipeline. */
  const check = (userId: string, token: string | undefined, requestId = 'r1', saleId = '7'): unknown => {
    if (tokens.begin(saleId, token) !== null) return 'forbidden';
    const endsAtMs = tokens.open(saleId, userId, token);
    if (endsAtMs === null || endsAtMs === 'forbidden') return endsAtMs;
    return tokens.redeem({ saleId, userId, requestId, address: '' }, endsAtMs);
  };

  it('are issued from leadMs before the opening until the end of the sale', async () => {
    for (const [atMs, word] of [
      [sale.opensAtMs - 300_001, 'not_open'],
      [sale.opensAtMs - 300_000, 'issued'],
      [sale.closesAtMs - 1, 'issued'],
      [sale.closesAtMs, 'closed'],
    ] as const) {
      clock.advance(atMs - clock.nowMs());
      expect((await issue('a')).outcome, String(atMs)).to.equal(word);
    }
  });

  it('are limited to perUnit × stock, rounded up, and to one per buyer', async () => {
    set({ perUnit: 1.2 }); // 2 units × 1.2 is 2.4, rounded up to 3.
    for (const user of ['a', 'b', 'a', 'c', 'b']) expect((await issue(user)).outcome, user).to.equal('issued');
    const firstEndMs = sale.opensAtMs + rules.lifeMs;
    expect(await issue('d')).to.deep.equal({ outcome: 'tokens_gone', retryAfterMs: firstEndMs - clock.nowMs() });
    expect((await issue('c')).outcome).to.equal('issued');
    clock.advance(firstEndMs - clock.nowMs());
    expect((await issue('d')).outcome, 'those of the others have lapsed').to.equal('issued');
  });

  it('are limited to three expired tokens per buyer and a hundred tokens per address', async () => {
    set({ perUnit: 1000, lifeMs: 1000 });
    clock.advance(60_000);
    for (let nth = 0; nth < 3; nth++, clock.advance(1000)) expect((await issue('a')).outcome).to.equal('issued');
    expect(await issue('a')).to.deep.equal({ outcome: 'token_limit_reached' });
    for (let nth = 0; nth < 100; nth++) await issue(`u${nth}`, `2001:db8::${nth.toString(16)}`);
    expect(await issue('b', '2001:db8::ffff')).to.deep.equal({ outcome: 'rate_limited', retryAfterMs: 1000 });
    expect((await issue('b', '2001:db8:1::1')).outcome).to.equal('issued');
  });

  it('are valid for one purchase and for all its retries', async () => {
    const token = await issued('a');
    expect(await check('a', token, 'r1')).to.equal(null);
    expect(await check('a', token, 'r1')).to.equal(null);
    expect(await check('a', token, 'r2')).to.equal('forbidden');
    expect(await check('a', await issued('a'), 'r2')).to.equal('forbidden'); // This is the token of r1.
    expect(refused).to.deep.equal(['token redeemed_for_another on', 'token redeemed_for_another on']);
  });

  it('are refused for another buyer or sale, and call no Redis if invented', async () => {
    const token = await issued('a');
    const asked = store.asked;
    expect(check('b', token)).to.equal('forbidden');
    expect(check('a', token, 'r1', '8')).to.equal('forbidden');
    expect(check('a', 'k1.9999999999999.AAAA')).to.equal('forbidden');
    expect(check('a', undefined)).to.equal('forbidden');
    expect(store.asked).to.equal(asked);
    expect(refused).to.deep.equal(
      ['bad_token', 'bad_token', 'bad_token', 'no_token'].map((word) => `token ${word} on`),
    );
  });

  it('expire only after the opening, but then still allow a retry of their purchase', async () => {
    const [spent, idle] = [await issued('a'), await issued('b')];
    clock.advance(60_000 + rules.lifeMs - 1);
    expect(await check('a', spent)).to.equal(null);
    clock.advance(1);
    expect(await check('a', spent)).to.equal(null);
    expect(await check('b', idle)).to.equal('forbidden');
    expect(refused).to.deep.equal(['token ended on']);
    expect(await check('b', await issued('b'))).to.equal(null);
  });

  it('stay valid if Redis has lost its list', async () => {
    const token = await issued('a');
    store.lose();
    expect(await check('a', token, 'r1')).to.equal(null);
    expect(await check('a', token, 'r2')).to.equal('forbidden');
  });

  it('are unavailable while Redis is down, unless the rules accept every valid token', async () => {
    const token = await issued('a');
    store.down = true;
    expect(await check('a', token)).to.equal('unavailable');
    set({ down: 'allow' });
    expect(await check('a', token)).to.equal(null);
    expect(check('a', 'x')).to.equal('forbidden');
    clock.advance(60_000 + rules.lifeMs);
    expect(await check('a', token)).to.equal('unavailable');
    const error = await issue('a').catch((thrown: unknown) => thrown);
    expect(error).to.have.property('name', 'OperationalError');
  });

  it('are not issued when off or for other sales, and refuse nothing in a dry run', async () => {
    for (const raw of [{ mode: 'off' }, { sales: ['8'] }]) {
      set(raw);
      expect(check('a', undefined)).to.equal(null);
      expect(await issue('a')).to.deep.equal({ outcome: 'not_needed' });
    }
    expect([store.asked, refused]).to.deep.equal([0, []]);
    set({ mode: 'dry_run' });
    expect(check('a', undefined)).to.equal(null);
    expect(refused).to.deep.equal(['token no_token dry_run']);
  });
});
