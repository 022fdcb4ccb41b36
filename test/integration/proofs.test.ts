import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { ask, type Answer } from '../chaos/harness/http.js';
import { openSale } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { until } from '../chaos/harness/wait.js';
import { readKeyring, type HmacKey } from '../../src/core/hmac.js';
import { createTokenSigner } from '../../src/http/token.js';
import { expectInvariants } from '../helpers/invariants.js';
import { signRequest } from '../helpers/sign-request.js';
import { useSystem } from '../helpers/system.js';

type Headers = Readonly<Record<string, string>>;

describe('signed requests of buyers', () => {
  let one: Program;
  let other: Program;
  after(() => publish({})); // other files buy without proofs, so the rules must be removed before the programs end
  const system = useSystem(async ({ programs }) => {
    [one, other] = await Promise.all([programs.start('api'), programs.start('api'), programs.start('worker')]);
  });

  const brief = (answer: Answer): string => `${answer.status} ${answer.json.code ?? answer.json.status}`;
  const tokenOf = (userId: string, roles: readonly string[] = []): string =>
    createTokenSigner(system.stack.env.JWT_SECRET)({ userId, roles, ttlMs: 600_000 });

  const asAdmin = (method: 'GET' | 'PUT', body?: object): Promise<Answer> =>
    ask(`${one.operatorsUrl}/admin/v1/rules`, { method, token: tokenOf('root', ['admin']), body });
  const metricsOf = async ({ operatorsUrl }: Program): Promise<string> => (await ask(`${operatorsUrl}/metrics`)).text;
  const versionIn = async (api: Program): Promise<number> =>
    Number(/^seckill_admission_rules_version\S* (\d+)$/m.exec(await metricsOf(api))?.[1]);
  /** Puts rules in force in both processes. */
  async function publish(rules: object): Promise<void> {
    const { version: before } = (await asAdmin('GET')).json;
    const { status, text, json } = await asAdmin('PUT', { version: before, rules });
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

  it('sells only signed requests, and accepts a nonce once across all processes', async () => {
    const { saleId } = await openSale(system.stack, { stock: 5 });
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

    const { saleId: elsewhere } = await openSale(system.stack, { stock: 1 });
    expect(brief(await buy(elsewhere, 'ann')), 'a sale that is not named').to.equal('202 pending');
    const counted = (await metricsOf(one)).split('\n').filter((line) => line.includes('layer="sign"'));
    for (const word of ['not_signed', 'forged', 'nonce_used']) expect(counted.join('\n')).to.include(`"${word}"`);
    expect(await expectInvariants(system.stack, saleId)).to.include({ rows: 2, sold: 2 });
  });
});
