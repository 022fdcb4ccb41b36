import { expect } from 'chai';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import request from 'supertest';
import { readIssuers } from '../../../src/core/config/issuers.js';
import { ROLES } from '../../../src/core/roles.js';
import { createAuthenticator } from '../../../src/http/auth.js';
import { Jwks } from '../../../src/http/jwks.js';
import type { Listener, Route } from '../../../src/http/route.js';
import { ROUTES } from '../../../src/programs/routes.js';
import { hs256Key } from '../../../src/http/token-keys.js';
import { ANY_TERMS } from '../../helpers/authenticator.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { signedToken } from '../../helpers/sign-token.js';
import { silentLog } from '../../helpers/silent-log.js';
import { bearer, FakeServices, SECRET, startServer, type Started } from './http-harness.js';

const PAGE = new URL('../../../docs/identity.md', import.meta.url);
const HOW = 'UPDATE_ACCESS_TABLE=1 npx mocha test/unit/http/admin-access.test.ts';
const WHO = ['nobody', 'buyer', ...ROLES] as const;
type Who = (typeof WHO)[number];

const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const PROVIDER = {
  issuer: 'https://id.example',
  audience: 'shop',
  jwks: { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k1' }] },
  rolesClaim: 'groups',
  roles: { 'shop-viewers': 'viewer', 'shop-operators': 'operator', 'shop-admins': 'admin' },
};

/** Returns two tokens of each role: ours, and a token of an identity provider with a group for the role. */
function tokensOf(who: Who): readonly (string | null)[] {
  if (who === 'nobody') return [null];
  const exp = Math.floor(Date.now() / 1000) + 3600;
  const claims = { iss: PROVIDER.issuer, aud: PROVIDER.audience, sub: 'auth0|507f', exp, groups: ['staff', who] };
  const groups = who === 'buyer' ? claims.groups : ['staff', `shop-${who}s`];
  return [
    bearer('u1', who === 'buyer' ? ['queue-p0'] : [who]),
    `Bearer ${signedToken({ alg: 'EdDSA', kid: 'k1' }, { ...claims, groups }, privateKey)}`,
  ];
}

/** A call of any service causes a 500, so any other response shows that no service was called. */
describe('access of operators', () => {
  let fake: FakeServices;
  let server: Started;
  beforeEach(async () => {
    const hs256 = hs256Key(SECRET, ANY_TERMS);
    const metrics = { keysRead: () => undefined, keysNotRead: () => undefined };
    const parts = { clock: new ManualClock(), log: silentLog, metrics, refreshMs: 60_000 };
    const issuers = readIssuers(JSON.stringify([PROVIDER])).map((issuer) => new Jwks(issuer, parts));
    const own = { algorithm: 'HS256', key: hs256, hs256ById: new Map() } as const;
    const options = { cacheMax: 10, lifeMaxMs: 86_400_000, toleranceMs: 0, isRevoked: () => false };
    fake = new FakeServices({ auth: createAuthenticator({ own, issuers }, options) });
    server = await startServer(fake);
  });
  afterEach(() => server.stop());

  const operatorRoutes = ROUTES.filter(({ path }) => /^\/(?:admin|debug)\//.test(path));

  const statusOf = async (url: string, { method, path }: Route, token: string | null): Promise<number> => {
    const sent = request(url)[method](path.replaceAll(/\{\w+\}/g, '7'));
    return (await (token === null ? sent : sent.set('authorization', token)).send({})).status;
  };
  const urlOf = (listener: Listener): string => (listener === 'operators' ? server.operatorsUrl : server.url);
  /** Expects the same result on each listener of the route. */
  const ask = async (route: Route, token: string | null): Promise<string> => {
    const statuses = await Promise.all(route.asks.listeners.map((listener) => statusOf(urlOf(listener), route, token)));
    const words = statuses.map((status) => (status === 401 || status === 403 ? String(status) : 'yes'));
    expect(new Set(words).size, `${route.method} ${route.path}: ${statuses.join()}`).to.equal(1);
    return String(words[0]);
  };

  it('requires a role for each operator route', () => {
    expect(operatorRoutes.length).to.be.greaterThan(20);
    for (const { method, path, access } of operatorRoutes) expect(access, `${method} ${path}`).to.be.oneOf([...ROLES]);
  });

  it('admits the roles that docs/identity.md names for each route, with both kinds of token [S5]', async () => {
    const routesByRow = new Map<string, string[]>();
    for (const route of ROUTES) {
      const answers: string[] = [];
      for (const who of WHO) {
        const both = await Promise.all(tokensOf(who).map((token) => ask(route, token)));
        expect(new Set(both).size, `${route.method} ${route.path} for both tokens of ${who}: ${both.join()}`).to.equal(
          1,
        );
        answers.push(String(both[0]));
      }
      const name = `${route.method.toUpperCase()} ${route.path}`;
      const least = answers.indexOf('yes');
      const refusals = ['401', '403', '403', '403'].slice(0, least);
      expect(answers, name).to.deep.equal([...refusals, ...WHO.slice(least).map(() => 'yes')]);
      const row = `| ${least === 0 ? 'no token' : WHO[least]} | ${route.asks.listeners.join(', ')} |`;
      routesByRow.set(row, [...(routesByRow.get(row) ?? []), `\`${name}\``]);
    }
    const leastOf = (row: string): number => WHO.findIndex((who) => row.startsWith(`| ${who} |`)); // -1: no token
    const rows = [...routesByRow].toSorted(([a], [b]) => leastOf(a) - leastOf(b));
    const page = readFileSync(PAGE, 'utf8');
    const table = page.slice(page.indexOf('| minimum role |'));
    const made = [
      '| minimum role | port | routes |',
      '|---|---|---|',
      ...rows.map(([row, names]) => `${row} ${names.join('<br>')} |`),
      '',
    ].join('\n');
    if (process.env.UPDATE_ACCESS_TABLE) writeFileSync(PAGE, page.slice(0, page.indexOf('| minimum role |')) + made);
    else expect(table, `docs/identity.md is out of date, run: ${HOW}`).to.equal(made);
  });

  it('returns 404 on a listener that does not serve the route, whatever the token', async () => {
    let asked = 0;
    for (const route of ROUTES) {
      const served = ROUTES.filter(({ method, path }) => method === route.method && path === route.path).flatMap(
        ({ asks }) => asks.listeners,
      ); // Each listener has its own /readyz.
      for (const listener of (['buyers', 'operators'] as const).filter((one) => !served.includes(one))) {
        const token = tokensOf('admin')[0] ?? null;
        expect(await statusOf(urlOf(listener), route, token), `${route.method} ${route.path}`).to.equal(404);
        asked++;
      }
    }
    expect(asked).to.be.greaterThan(ROUTES.length / 2);
  });

  it('matches a role only as a whole word, and names the missing role [S5]', async () => {
    for (const roles of [['Admin'], ['admins'], ['queue-p0'], ['viewer', 'operator']]) {
      const { body } = await request(server.operatorsUrl)
        .put('/admin/v1/rules')
        .set('authorization', bearer('u1', roles))
        .send({});
      expect([body.status, body.code], roles.join()).to.deep.equal([403, 'role_needed']);
      expect(body.detail).to.include('admin');
    }
    expect(fake.bugs).to.deep.equal([]);
  });
});
