import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { ask, type Answer } from '../chaos/harness/http.js';
import { openSale, type SaleParts } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { found, until } from '../chaos/harness/wait.js';
import { readKeyring, type HmacKey } from '../../src/core/hmac.js';
import { createTokenSigner } from '../../src/http/token.js';
import { expectInvariants } from '../helpers/invariants.js';
import { signRequest } from '../helpers/sign-request.js';
import { useSystem } from '../helpers/system.js';

type Headers = Readonly<Record<string, string>>;

describe('proofs from buyers: signature, purchase token, pass', () => {
  let one: Program;
  let other: Program;
  after(() => publish({})); // other files buy without proofs, so the rules must be removed before the programs end
  const system = useSystem(async ({ programs }) => {
    [one, other] = await Promise.all([programs.start('api'), programs.start('api'), programs.start('worker')]);
  });

  const brief = (answer: Answer): string => `${answer.status} ${answer.json.code ?? answer.json.status}`;
  const tokenOf = (userId: string, roles: readonly string[] = []): string =>
    createTokenSigner(system.stack.env.JWT_SECRET)({ userId, roles, ttlMs: 600_000 });
  const newSale = async (parts: SaleParts): Promise<string> => (await openSale(system.stack, parts)).saleId;

  const asAdmin = (method: 'GET' | 'PUT', body?: object): Promise<Answer> =>
    ask(`${one.operatorsUrl}/admin/v1/rules`, { method, token: tokenOf('root', ['admin']), body });
  const put = async (rules: object): Promise<Answer> =>
    asAdmin('PUT', { version: (await asAdmin('GET')).json.version, rules });
  const metricsOf = async ({ operatorsUrl }: Program): Promise<string> => (await ask(`${operatorsUrl}/metrics`)).text;
  const versionIn = async (api: Program): Promise<number> =>
    Number(/^seckill_admission_rules_version\S* (\d+)$/m.exec(await metricsOf(api))?.[1]);
  /** Puts rules in force in both processes. */
  async function publish(rules: object): Promise<void> {
    const { status, text, json } = await put(rules);
    expect(status, text).to.equal(200);
    await until('the rules are in force in both', async () =>
      (await Promise.all([one, other].map(versionIn))).every((version) => version === json.version),
    );
  }

  interface Purchase {
    readonly key?: string;
    readonly api?: Program;
    readonly headers?: Headers;
  }
  const buy = (
    saleId: string,
    userId: string,
    { key = 'k1', api = one, headers = {} }: Purchase = {},
  ): Promise<Answer> =>
    ask(`${api.url}/v1/sales/${saleId}/purchases`, {
      method: 'POST',
      token: tokenOf(userId),
      headers: { 'Idempotency-Key': key, ...headers },
      body: BODY,
    });
  const BODY = { quantity: 1 };

  function signed(path: string, method = 'POST', body = '', userId = 'ann', idempotencyKey = ''): Headers {
    const key = readKeyring(system.stack.env.ADMISSION_SIGN_KEYS).get('local') as HmacKey;
    const timestamp = String(Math.floor(Date.now() / 1000));
    const nonce = randomBytes(16).toString('hex');
    const request = { version: 2, method, path, body, timestamp, nonce, userId, idempotencyKey } as const;
    return signRequest('local', key, request);
  }

  it('sells only to signed requests, and accepts a nonce once across all processes', async () => {
    const saleId = await newSale({ stock: 5 });
    const path = `/v1/sales/${saleId}/purchases`;
    expect(brief(await buy(saleId, 'early')), 'nothing is asked for yet').to.equal('202 pending');
    await publish({ sign: { mode: 'on', sales: [saleId], keys: ['local'] } });

    expect(brief(await buy(saleId, 'ann'))).to.equal('401 bad_signature');
    const forged = { ...signed(path, 'POST', '{"quantity":2}', 'ann', 'k1') };
    expect(brief(await buy(saleId, 'ann', { headers: forged }))).to.equal('401 bad_signature');
    const headers = signed(path, 'POST', JSON.stringify(BODY), 'ann', 'k1');
    for (const [user, key] of [
      ['bob', 'k1'],
      ['ann', 'k2'],
    ] as const) {
      expect(brief(await buy(saleId, user, { headers, key })), 'of another buyer or key').to.equal('401 bad_signature');
    }
    expect(brief(await buy(saleId, 'ann', { headers }))).to.equal('202 pending');
    for (const api of [one, other]) {
      expect(brief(await buy(saleId, 'ann', { headers, api })), 'replayed').to.equal('401 bad_signature');
    }
    const again = await buy(saleId, 'ann', {
      headers: signed(path, 'POST', JSON.stringify(BODY), 'ann', 'k1'),
      api: other,
    });
    expect(again.status, 'the same purchase, signed anew').to.be.oneOf([200, 202]);

    const statusPath = `${path}/k1?wait=10`;
    expect(brief(await ask(one.url + statusPath, { token: tokenOf('ann') }))).to.equal('401 bad_signature');
    const status = await ask(one.url + statusPath, {
      token: tokenOf('ann'),
      headers: signed(statusPath, 'GET'),
      timeoutMs: 15_000,
    });
    expect(brief(status)).to.equal('200 ordered');

    const elsewhere = await newSale({ stock: 1 });
    expect(brief(await buy(elsewhere, 'ann')), 'a sale that is not named').to.equal('202 pending');
    const counted = (await metricsOf(one)).split('\n').filter((line) => line.includes('layer="sign"'));
    for (const word of ['not_signed', 'forged', 'nonce_used']) expect(counted.join('\n')).to.include(`"${word}"`);
    expect(await expectInvariants(system.stack, saleId)).to.include({ rows: 2, sold: 2 });
  });

  it('requires purchase tokens, issues a limited number and sells once per token', async () => {
    const saleId = await newSale({ stock: 2, limitPerBuyer: 2 });
    await publish({ sign: { tokens: { mode: 'on', sales: [saleId], perUnit: 1 } } });
    const fetchToken = (userId: string): Promise<Answer> =>
      ask(`${one.url}/v1/sales/${saleId}/purchase-token`, { method: 'POST', token: tokenOf(userId) });

    expect(brief(await buy(saleId, 'ann'))).to.equal('403 purchase_token_needed');
    const handed = await fetchToken('ann');
    expect(handed.status).to.equal(200);
    expect((await fetchToken('bob')).status).to.equal(200);
    expect(brief(await fetchToken('cid')), 'there are as many as units').to.equal('409 tokens_gone');

    const headers = { 'Seckill-Purchase-Token': String(handed.json.token) };
    expect(brief(await buy(saleId, 'cid', { headers })), 'of somebody else').to.equal('403 purchase_token_needed');
    expect(brief(await buy(saleId, 'ann', { headers, api: other }))).to.equal('202 pending');
    expect((await buy(saleId, 'ann', { headers })).status, 'the same purchase again').to.be.oneOf([200, 202]);
    expect(brief(await buy(saleId, 'ann', { headers, key: 'k2' })), 'another one').to.equal(
      '403 purchase_token_needed',
    );
    expect(await expectInvariants(system.stack, saleId)).to.include({ rows: 1, sold: 1 });
  });

  it('admits buyers from the queue, who buy with a pass, and ends the queue for all at the first sold_out', async () => {
    const saleId = await newSale({ stock: 2 });
    const admit = (admitPerSecond: number): Promise<void> =>
      publish({ queue: { mode: 'on', sales: [saleId], admitPerSecond, idleMs: 300_000 } });
    await admit(0);
    const queue = `${one.url}/v1/sales/${saleId}/queue`;
    const join = (userId: string): Promise<Answer> => ask(queue, { method: 'POST', token: tokenOf(userId) });
    const placeOf = (userId: string, { json }: Answer): Promise<Answer> =>
      ask(`${queue}/${String(json.ticket)}`, { token: tokenOf(userId) });
    const passOf = async (userId: string, waits: Answer): Promise<Headers> => {
      const admitted = await found(`${userId} is admitted`, async () => {
        const answer = await placeOf(userId, waits);
        return answer.json.status === 'admitted' ? answer : null;
      });
      return { 'Seckill-Queue-Pass': String(admitted.json.pass) };
    };

    expect(brief(await buy(saleId, 'ann')), 'past the queue').to.equal('403 queue_pass_needed');
    const users = ['ann', 'bob', 'cid'];
    const places: Answer[] = [];
    for (const userId of users) places.push(await join(userId));
    expect(places.map(brief)).to.deep.equal(Array(3).fill('202 waiting'));
    expect(places.map(({ json }) => [json.position, json.priority])).to.deep.equal([
      [1, 'P2'],
      [2, 'P2'],
      [3, 'P2'],
    ]);
    expect(await metricsOf(one)).to.match(/^seckill_admission_queue_waiting\S* 3$/m);
    const again = await ask(queue.replace(one.url, other.url), { method: 'POST', token: tokenOf('bob') });
    expect(again.json, 'another api knows the place').to.include({ status: 'waiting', position: 2 });
    await admit(5);
    const passes = users.map((userId, nth) => passOf(userId, places[nth] as Answer));
    const [ann, bob, cid] = (await Promise.all(passes)) as [Headers, Headers, Headers];
    await admit(0);
    const dan = await join('dan');
    expect(brief(dan)).to.equal('202 waiting');

    expect(brief(await buy(saleId, 'bob', { headers: ann })), 'of somebody else').to.equal('403 queue_pass_needed');
    expect(brief(await buy(saleId, 'ann', { headers: ann }))).to.equal('202 pending');
    expect(brief(await buy(saleId, 'bob', { headers: bob, api: other })), 'any process believes it').to.equal(
      '202 pending',
    );
    expect(brief(await buy(saleId, 'cid', { headers: cid }))).to.equal('409 sold_out');
    await until(
      'the queue is over for a buyer who waits',
      async () => brief(await placeOf('dan', dan)) === '409 sold_out',
    );
    await until('and for a buyer who joins', async () => {
      await buy(saleId, 'cid', { headers: cid }); // a count of zero is cached only for a moment
      return brief(await join('eve')) === '409 sold_out';
    });
    expect(await expectInvariants(system.stack, saleId)).to.include({ rows: 2, sold: 2, unitsLeft: 0 });
  });
});
