import { expect } from 'chai';
import { generateKeyPairSync, randomUUID, type KeyObject } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask, type Answer } from '../chaos/harness/http.js';
import type { Program } from '../chaos/harness/programs.js';
import { openSale, reconcileSale } from '../chaos/harness/sales.js';
import { found, until } from '../chaos/harness/wait.js';
import { HOSTILE_SUBJECTS } from '../hostile/tokens.js';
import { runCommand, type CommandEnd } from '../helpers/command.js';
import { expectInvariants } from '../helpers/invariants.js';
import { signedToken } from '../helpers/sign-token.js';
import { useSystem } from '../helpers/system.js';

const ISSUER = 'https://id.example';

describe('the identity of callers', () => {
  let apis: readonly [Program, Program];
  let provider: Server;
  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const keys = [{ ...key.publicKey.export({ format: 'jwk' }), kid: 'first' }];
  const system = useSystem(async ({ programs }) => {
    provider = createServer((_req, res) => void res.end(JSON.stringify({ keys })));
    await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
    const jwksUrl = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/`;
    const roles = { 'shop-admins': 'admin', 'on-call': 'operator' };
    const issuers = JSON.stringify([{ issuer: ISSUER, audience: 'shop', jwksUrl, rolesClaim: 'groups', roles }]);
    const env = { JWT_ISSUERS: issuers, PAYMENT_PROVIDER: 'simulator' };
    const [one, other] = await Promise.all([
      programs.start('api', { env }),
      programs.start('api', { env }),
      programs.start('worker'),
      programs.start('keeper', { env: { KEEPER_EVERY_MS: '500', OUTBOX_EVERY_MS: '100' } }),
    ]);
    apis = [one, other];
  });
  after(() => void provider?.close());

  const buyersOf = (saleId: string): Buyers => new Buyers(saleId, system.stack.env.JWT_SECRET, () => [apis[0].url]);
  const seckill = (...args: string[]): Promise<CommandEnd> => runCommand(args, system.stack.env);
  const tokenOf = (claims: object, kid = 'first', privateKey: KeyObject = key.privateKey): string => {
    const now = Math.floor(Date.now() / 1000);
    const all = { iss: ISSUER, aud: 'shop', sub: 'auth0|507f', iat: now - 10, exp: now + 600, jti: randomUUID() };
    return signedToken({ alg: 'ES256', kid }, { ...all, ...claims }, privateKey);
  };
  const myOrders = (token: string, api: Program = apis[0]): Promise<Answer> =>
    ask(`${api.url}/v1/me/orders`, { token });
  const challenge = ({ headers }: Answer): string => String(headers['www-authenticate']);

  it('lets users with hostile names buy, pay, cancel and be found like ordinary users [S6]', async () => {
    const users = [...HOSTILE_SUBJECTS, 'u1', 'u1/k', 'auth0|507F1F77BCF86CD799439011'];
    const { saleId } = await openSale(system.stack, { stock: 2 * users.length, limitPerBuyer: 2 });
    const buyers = buyersOf(saleId);
    for (const repeat of [false, true]) {
      for (const answer of await buyers.rush(users, 4, { tries: 5 })) {
        expect(answer?.status).to.be.oneOf(repeat ? [200, 202] : [202]);
      }
    }
    const orders = new Map<string, string>();
    for (const userId of users) {
      const { json } = await buyers.settled(userId);
      expect(json.status, userId).to.equal('ordered');
      orders.set(userId, String(json.orderId));
    }
    expect(new Set(orders.values()).size, 'each buyer has an order of their own').to.equal(users.length);
    for (const userId of ['{7:0}', "o'x';--", 'u1/k1', '__proto__', '=cmd|']) {
      const orderId = String(orders.get(userId));
      const { json } = await myOrders(buyers.token(userId));
      expect(
        (json.orders as { orderId: string; saleId: string }[])
          .filter((order) => order.saleId === saleId) // other tests have users of these names, too
          .map((order) => order.orderId),
        userId,
      ).to.deep.equal([orderId]);
      expect((await buyers.move('cancel', userId, orderId))?.status, userId).to.equal(200);
      expect((await buyers.buy(userId, { requestId: 'k2', tries: 5 }))?.status, userId).to.equal(202);
      const { json: second } = await buyers.settled(userId, 'k2');
      expect((await buyers.move('pay', userId, String(second.orderId)))?.status, userId).to.equal(200);
    }

    const admin = buyers.token('root', ['viewer']);
    for (const userId of ['{7:0}', "o'x';--", 'u1/k1', '__proto__']) {
      const query = `saleId=${saleId}&userId=${encodeURIComponent(userId)}`;
      const trace = await ask(`${apis[0].operatorsUrl}/admin/v1/requests/k2?${query}`, { token: admin });
      expect(
        (trace.json.purchases as { userId: string }[]).map((one) => one.userId),
        trace.text,
      ).to.deep.equal([userId]);
      const listed = await ask(
        `${apis[0].operatorsUrl}/admin/v1/orders?user=${encodeURIComponent(userId)}&sale=${saleId}`,
        {
          token: admin,
        },
      );
      expect(listed.json.orders, userId).to.have.lengthOf(2);
    }
    const ofAll = await ask(`${apis[0].operatorsUrl}/admin/v1/requests/k2?saleId=${saleId}`, { token: admin });
    expect(ofAll.status).to.equal(200);
    const exported = await seckill('orders', 'export', '--sale', saleId, '--format', 'jsonl');
    expect(new Set(exported.lines.map((line) => line.userId))).to.deep.equal(new Set(users));
    const csv = await seckill('orders', 'export', '--sale', saleId, '--user', '=cmd|');
    expect(csv.stdout).to.contain(`,'=cmd|,k2,`);
    await found('the units of the cancelled orders', async () => {
      const { found: findings } = await reconcileSale(system.stack, apis[0], saleId);
      return findings.length === 0 ? true : null;
    });
    const repaired = await seckill('sale', 'repair', saleId, '--force');
    expect(repaired.code, repaired.stderr).to.equal(0);
    expect(await expectInvariants(system.stack, saleId, buyers.opLog)).to.include({ sold: users.length });
  });

  it('refuses a revoked token at every API, whatever its role, and audits the revocation', async () => {
    const user = `auth0|${randomUUID()}`;
    const tokens = [tokenOf({ sub: user }), tokenOf({ sub: user, groups: ['shop-admins'] })] as const;
    const audit = (token: string, api: Program): Promise<Answer> =>
      ask(`${api.operatorsUrl}/admin/v1/audit?limit=1`, { token });
    for (let i = 0; i < 3; i++) for (const api of apis) expect((await audit(tokens[1], api)).status).to.equal(200);

    const jti = randomUUID();
    const one = tokenOf({ sub: user, jti });
    const root = buyersOf('1').token('root', ['admin']);
    const url = `${apis[0].operatorsUrl}/admin/v1/revocations`;
    const added = await ask(url, { method: 'POST', token: root, body: { tokenId: jti } });
    expect(added.status, added.text).to.equal(201);
    for (const api of apis) {
      await until('the one token is refused', async () => challenge(await myOrders(one, api)).includes('revoked'));
      expect((await audit(tokens[1], api)).status, 'another token of the same user').to.equal(200);
    }

    const { code, stderr } = await seckill('--as', 'ann', 'revocations', 'add', '--user', user);
    expect(code, stderr).to.equal(0);
    const areRefused = async (): Promise<boolean> => {
      const asked = apis.flatMap((api) => [audit(tokens[1], api), myOrders(tokens[0], api), myOrders(tokens[1], api)]);
      return (await Promise.all(asked)).every((answer) => challenge(answer).includes('revoked'));
    };
    await until('all tokens of the user are refused, on both listeners of both apis', areRefused);
    const listed = await seckill('audit', 'list', '--action', 'tokens.revoked', '--limit', '2', '--json');
    expect(String(listed.lines[0]?.actor)).to.match(/^ann \(.+\)$/);
    expect(listed.lines[1]?.actor).to.equal('root');
    const now = Math.floor(Date.now() / 1000);
    expect((await myOrders(tokenOf({ sub: user, iat: now + 2 }))).status, 'signed in anew').to.equal(200);
  });

  it('makes only tokens that the API accepts', async () => {
    const refusals = [
      ['--user', 'a b'],
      ['--user', 'ann', '--ttl-hours', '25'],
    ];
    for (const args of refusals) expect((await seckill('token', ...args)).code, args.join(' ')).to.equal(2);
    const { stdout } = await seckill('token', '--user', 'urn:x:1', '--role', 'viewer');
    const audit = await ask(`${apis[0].operatorsUrl}/admin/v1/audit?limit=1`, { token: stdout.trim() });
    expect(audit.status, audit.text).to.equal(200);
  });
});
