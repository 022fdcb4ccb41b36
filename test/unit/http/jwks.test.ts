import { expect } from 'chai';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readIssuers } from '../../../src/core/config/issuers.js';
import type { Authenticator } from '../../../src/http/auth.js';
import { Jwks } from '../../../src/http/jwks.js';
import { publicKey } from '../../../src/http/token-keys.js';
import { ANY_TERMS, issuersAuth } from '../../helpers/authenticator.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { silentLog } from '../../helpers/silent-log.js';
import { signedToken } from '../../helpers/sign-token.js';

const ISSUER = 'https://id.example';
const PAUSE_MS = 5000;
const KEYS = {
  RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: generateKeyPairSync('ed25519'),
};
type Algorithm = keyof typeof KEYS;

const jwkOf = (key: KeyObject, kid: string, more: object = {}): object => ({
  ...key.export({ format: 'jwk' }),
  kid,
  ...more,
});

/** An identity provider on the loopback address, with keys and responses set by the test. */
class Provider {
  keys: object[] = [];
  answer: (res: ServerResponse) => void = (res) => void res.end(JSON.stringify({ keys: this.keys }));
  asked = 0;
  readonly #server: Server = createServer((_req: IncomingMessage, res) => {
    this.asked++;
    this.answer(res);
  });

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/jwks`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

describe('identity providers', () => {
  let provider: Provider;
  let clock: ManualClock;
  const logged: unknown[] = [];
  const log = { ...silentLog, warn: (facts: object) => void logged.push(facts) };

  beforeEach(async () => {
    logged.length = 0;
    clock = new ManualClock();
    provider = new Provider();
    provider.keys = Object.entries(KEYS).map(([algorithm, { publicKey }]) => jwkOf(publicKey, `${algorithm}-1`));
    await provider.start();
  });
  afterEach(() => provider.stop());

  const open = async (...more: object[]): Promise<{ readonly auth: Authenticator; readonly all: readonly Jwks[] }> => {
    const list = more.length > 0 ? more : [{}];
    const config = list.map((one) => ({ issuer: ISSUER, audience: 'shop', jwksUrl: provider.url, ...one }));
    const metrics = { keysRead: () => undefined, keysNotRead: () => undefined };
    const parts = { clock, log, metrics, refreshMs: 60_000 };
    const all = readIssuers(JSON.stringify(config)).map((issuer) => new Jwks(issuer, parts));
    await Promise.all(all.map((one) => one.refresh()));
    return { auth: issuersAuth(all, { nowMs: () => clock.nowMs() }), all };
  };
  const tokenOf = (algorithm: Algorithm, claims: object = {}, kid = `${algorithm}-1`, key?: KeyObject): string => {
    const exp = Math.floor(clock.nowMs() / 1000) + 3600;
    const all = { iss: ISSUER, aud: ['other', 'shop'], sub: 'auth0|507f', exp, ...claims };
    return signedToken({ alg: algorithm, kid }, all, key ?? KEYS[algorithm].privateKey);
  };
  const ask = (auth: Authenticator, token: string): unknown => auth.authenticate(`Bearer ${token}`);

  for (const algorithm of ['RS256', 'ES256', 'EdDSA'] as const) {
    it(`${algorithm}: names the user if the key is known, and refuses a modified token`, async () => {
      const { auth } = await open();
      expect(ask(auth, tokenOf(algorithm))).to.deep.include({ userId: 'auth0|507f', roles: [] });
      const token = tokenOf(algorithm);
      const [head, , signature] = token.split('.');
      const other = tokenOf(algorithm, { sub: 'somebody' }).split('.')[1];
      expect(ask(auth, `${head}.${other}.${signature}`)).to.equal('bad_signature');
      expect(ask(auth, tokenOf(algorithm, {}, `${algorithm}-1`, otherKey(algorithm)))).to.equal('bad_signature');
    });
  }

  it('require the right issuer and audience', async () => {
    const { auth } = await open();
    for (const iss of ['https://id.example/', 'https://evil.example', undefined, [ISSUER]]) {
      expect(ask(auth, tokenOf('ES256', { iss })), String(iss)).to.equal('wrong_issuer');
    }
    for (const aud of ['Shop', [], ['shop2'], undefined, { shop: 1 }]) {
      expect(ask(auth, tokenOf('ES256', { aud })), String(aud)).to.equal('wrong_audience');
    }
    expect(ask(auth, tokenOf('ES256', { aud: 'shop' }))).to.deep.include({ userId: 'auth0|507f' });
  });

  it('take the algorithm from the key and never from the token', async () => {
    const { auth } = await open({ algorithms: ['RS256'] });
    clock.advance(PAUSE_MS);
    expect(await ask(auth, tokenOf('ES256')), 'an algorithm that this issuer must not use').to.equal('unknown_key');
    expect(ask(auth, signedToken({ alg: 'HS256', kid: 'RS256-1' }, {}, KEYS.RS256.privateKey))).to.equal('unknown_key');
    expect(ask(auth, tokenOf('EdDSA', {}, 'RS256-1'))).to.be.oneOf(['unknown_key', 'bad_signature']);
  });

  it('find a new key with the first token that names it, and refuse removed keys', async () => {
    const { auth } = await open();
    const next = generateKeyPairSync('ed25519');
    const old = tokenOf('EdDSA');
    for (let i = 0; i < 3; i++) expect(ask(auth, old)).to.deep.include({ userId: 'auth0|507f' });
    provider.keys = [jwkOf(next.publicKey, 'EdDSA-2')];
    clock.advance(PAUSE_MS);
    const waits = ask(auth, tokenOf('EdDSA', {}, 'EdDSA-2', next.privateKey));
    expect(waits).to.be.instanceOf(Promise);
    expect(await waits).to.deep.include({ userId: 'auth0|507f' });
    expect(ask(auth, tokenOf('EdDSA', {}, 'EdDSA-2', next.privateKey)), 'known from now on').to.deep.include({
      userId: 'auth0|507f',
    });
    expect(ask(auth, old), 'remembered, and its key is gone').to.equal('unknown_key');
  });

  it('find a new key even if our own public key matches every key id', async () => {
    const { all } = await open();
    const own = generateKeyPairSync('ed25519');
    const pem = own.publicKey.export({ type: 'spki', format: 'pem' }) as string;
    const ours = { algorithm: 'EdDSA', key: publicKey(pem, 'EdDSA', ANY_TERMS), hs256ById: new Map() } as const;
    const auth = issuersAuth(all, { nowMs: () => clock.nowMs() }, ours);
    const next = generateKeyPairSync('ed25519');
    const ofOurs = tokenOf('EdDSA', { iss: undefined, sub: 'ann' }, 'EdDSA-2', own.privateKey);
    expect(ask(auth, ofOurs), 'it has the header of the new key').to.deep.include({ userId: 'ann' });
    expect(ask(auth, tokenOf('EdDSA', { iss: undefined }, 'EdDSA-2', next.privateKey))).to.equal('bad_signature');
    provider.keys = [jwkOf(next.publicKey, 'EdDSA-2')];
    clock.advance(PAUSE_MS);
    const waits = ask(auth, tokenOf('EdDSA', {}, 'EdDSA-2', next.privateKey));
    expect(waits).to.be.instanceOf(Promise);
    expect(await waits).to.deep.include({ userId: 'auth0|507f' });
    expect(ask(auth, ofOurs)).to.deep.include({ userId: 'ann' });
    const exp = Math.floor(clock.nowMs() / 1000) + 3600;
    const withoutId = signedToken({ alg: 'EdDSA' }, { sub: 'ann', exp }, own.privateKey);
    expect(ask(auth, withoutId)).to.deep.include({ userId: 'ann' });
  });

  it('refuse tokens of a removed key even if the previous token used that key', async () => {
    const { auth, all } = await open();
    expect(ask(auth, tokenOf('EdDSA'))).to.deep.include({ userId: 'auth0|507f' });
    provider.keys = [jwkOf(KEYS.ES256.publicKey, 'ES256-1')];
    clock.advance(PAUSE_MS);
    await all[0]?.refresh();
    expect(await ask(auth, tokenOf('EdDSA', { sub: 'other' }))).to.equal('unknown_key');
  });

  it('are asked at most once in five seconds about invented key ids', async () => {
    const { auth } = await open();
    clock.advance(PAUSE_MS);
    const before = provider.asked;
    const flood = async (): Promise<void> => {
      const tokens = Array.from(
        { length: 2000 },
        (_, nth) => `${tokenOf('EdDSA', {}, `made-up-${nth}`).slice(0, -4)}AAAA`,
      );
      const answers = await Promise.all(tokens.map((token) => ask(auth, token)));
      expect(new Set(answers)).to.deep.equal(new Set(['unknown_key']));
    };
    await flood();
    await flood();
    expect(provider.asked - before).to.equal(1);
    expect(ask(auth, tokenOf('RS256')), 'meanwhile, a known key').to.deep.include({ userId: 'auth0|507f' });
    clock.advance(PAUSE_MS);
    await flood();
    expect(provider.asked - before).to.equal(2);
  });

  it('keep their known keys while they are unreachable, and are asked again', async () => {
    const { auth, all } = await open();
    const outages: ((res: ServerResponse) => void)[] = [
      (res) => void res.writeHead(500).end('{}'),
      (res) => void res.destroy(),
      (res) => void res.end('no json'),
      (res) => void res.end('{"keys":[]}'),
      (res) => void res.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      (res) => void res.end(JSON.stringify({ keys: provider.keys, pad: 'x'.repeat(600_000) })),
    ];
    for (const outage of outages) {
      provider.answer = outage;
      clock.advance(PAUSE_MS);
      await all[0]?.refresh();
      expect(ask(auth, tokenOf('ES256')), String(outage)).to.deep.include({ userId: 'auth0|507f' });
    }
    expect(logged, 'one line per kind of error in the outage').to.have.lengthOf(3);
  });

  it('give no verdict on a token before keys were read', async () => {
    const { answer } = provider;
    provider.answer = (res) => void res.writeHead(503).end();
    const { auth, all } = await open();
    expect(all[0]?.isKnown).to.equal(false);
    expect(await ask(auth, tokenOf('ES256'))).to.equal('keys_unavailable');
    provider.answer = answer;
    clock.advance(PAUSE_MS);
    expect(await ask(auth, tokenOf('ES256'))).to.deep.include({ userId: 'auth0|507f' });
    expect(all[0]?.isKnown).to.equal(true);
  });

  it('ignore weak keys and keys for another use', async () => {
    const weak = generateKeyPairSync('rsa', { modulusLength: 1024 });
    const curve = generateKeyPairSync('ec', { namedCurve: 'secp256k1' });
    provider.keys.push(
      jwkOf(weak.publicKey, 'weak'),
      jwkOf(curve.publicKey, 'curve'),
      jwkOf(KEYS.RS256.publicKey, 'enc', { use: 'enc' }),
      jwkOf(KEYS.RS256.publicKey, 'wrap', { key_ops: ['wrapKey'] }),
      jwkOf(KEYS.RS256.publicKey, 'pss', { alg: 'PS256' }),
      { kty: 'oct', k: 'AAAA', kid: 'oct' },
    );
    const { all } = await open();
    for (const kid of ['weak', 'curve', 'enc', 'wrap', 'pss', 'oct']) {
      for (const algorithm of ['RS256', 'ES256', 'HS256']) expect(all[0]?.find(kid, algorithm), kid).to.deep.equal([]);
    }
    expect(all[0]?.find('RS256-1', 'RS256')).to.have.lengthOf(1);
    expect(logged).to.have.lengthOf(6);
  });

  describe('without key ids, which RFC 7517 does not require', () => {
    const nameless = (key: KeyObject): object => ({ ...key.export({ format: 'jwk' }), kid: undefined });
    const namelessToken = (algorithm: Algorithm, claims: object = {}, key?: KeyObject): string => {
      const exp = Math.floor(clock.nowMs() / 1000) + 3600;
      const all = { iss: ISSUER, aud: 'shop', sub: 'auth0|507f', exp, ...claims };
      return signedToken({ alg: algorithm }, all, key ?? KEYS[algorithm].privateKey);
    };
    const isAnn = { userId: 'auth0|507f' };

    it('find a key by its algorithm, and refuse a token of another key', async () => {
      provider.keys = Object.values(KEYS).map((pair) => nameless(pair.publicKey));
      const { auth, all } = await open();
      expect(all[0]?.isKnown).to.equal(true);
      for (const algorithm of ['RS256', 'ES256', 'EdDSA'] as const) {
        expect(await ask(auth, namelessToken(algorithm)), algorithm).to.deep.include(isAnn);
        const forged = namelessToken(algorithm, {}, otherKey(algorithm));
        expect(await ask(auth, forged), algorithm).to.equal('bad_signature');
      }
    });

    it('accept a token with a kid only from that key, and other tokens from every key', async () => {
      const { auth } = await open();
      expect(await ask(auth, namelessToken('EdDSA'))).to.deep.include(isAnn);
      provider.keys = [nameless(KEYS.EdDSA.publicKey)];
      const { auth: other } = await open();
      clock.advance(PAUSE_MS);
      expect(await ask(other, tokenOf('EdDSA'))).to.equal('unknown_key');
    });

    it('try up to three keys of an algorithm', async () => {
      const pairs = Array.from({ length: 4 }, () => generateKeyPairSync('ed25519'));
      provider.keys = pairs.slice(0, 3).map((pair) => nameless(pair.publicKey));
      const { auth } = await open();
      for (const { privateKey } of pairs.slice(0, 3))
        expect(await ask(auth, namelessToken('EdDSA', {}, privateKey))).to.deep.include(isAnn);
      provider.keys = pairs.map((pair) => nameless(pair.publicKey));
      const { auth: many } = await open();
      clock.advance(PAUSE_MS);
      expect(await ask(many, namelessToken('EdDSA', {}, pairs[0]?.privateKey))).to.equal('unknown_key');
    });

    it('check only their own tokens, even if two tokens have the same beginning', async () => {
      const other = generateKeyPairSync('ed25519');
      provider.keys = [nameless(KEYS.EdDSA.publicKey)];
      const second = {
        issuer: 'https://other.example',
        jwksUrl: undefined,
        jwks: { keys: [nameless(other.publicKey)] },
      };
      const { auth } = await open({ subjectPrefix: '' }, { ...second, subjectPrefix: '' });
      expect(await ask(auth, namelessToken('EdDSA'))).to.deep.include(isAnn);
      const theirs = namelessToken('EdDSA', { iss: second.issuer }, other.privateKey);
      expect(await ask(auth, theirs)).to.deep.include(isAnn);
      expect(await ask(auth, namelessToken('EdDSA', { iss: second.issuer }))).to.equal('bad_signature');
      expect(await ask(auth, namelessToken('EdDSA', { iss: 'https://evil.example' }))).to.equal('wrong_issuer');
    });

    it('read the keys again for a token whose algorithm has no key', async () => {
      provider.keys = [nameless(KEYS.RS256.publicKey)];
      const { auth } = await open();
      provider.keys = [nameless(KEYS.RS256.publicKey), nameless(KEYS.EdDSA.publicKey)];
      clock.advance(PAUSE_MS);
      expect(await ask(auth, namelessToken('EdDSA'))).to.deep.include(isAnn);
    });
  });

  it('turn group names into roles only by the table, even if a group is named admin', async () => {
    const table = { 'Shop Admins': 'admin', ops: 'operator' };
    const { auth } = await open({ rolesClaim: 'realm_access.roles', roles: table });
    const rolesOf = async (roles: unknown): Promise<unknown> => {
      const who = await ask(auth, tokenOf('EdDSA', { realm_access: { roles } }));
      return typeof who === 'string' ? who : (who as { roles: unknown }).roles;
    };
    expect(await rolesOf(['admin', 'viewer', 'operator', 'queue-p0'])).to.deep.equal(['queue-p0']);
    expect(await rolesOf(['Shop Admins', 'ops', 'x'])).to.deep.equal(['admin', 'operator', 'x']);
    expect(await rolesOf('ops x')).to.deep.equal(['operator', 'x']);
    expect(await rolesOf(undefined)).to.deep.equal([]);
    expect(await rolesOf([7])).to.equal('bad_roles');
    const { auth: byUrl } = await open({ rolesClaim: 'https://shop.example/roles', roles: table });
    expect(ask(byUrl, tokenOf('EdDSA', { 'https://shop.example/roles': ['ops'] }))).to.deep.include({
      roles: ['operator'],
    });
  });

  it('distinguish equal user names of two providers, even if their keys share an id', async () => {
    const second = { issuer: 'https://other.example', subjectPrefix: 'o|' };
    const other = generateKeyPairSync('ed25519');
    const jwks = { keys: [jwkOf(other.publicKey, 'EdDSA-1')] };
    const { auth } = await open({ subjectPrefix: 'a|' }, { ...second, jwksUrl: undefined, jwks });
    expect(ask(auth, tokenOf('EdDSA'))).to.deep.include({ userId: 'a|auth0|507f' });
    const theirs = tokenOf('EdDSA', { iss: second.issuer }, 'EdDSA-1', other.privateKey);
    expect(ask(auth, theirs)).to.deep.include({ userId: 'o|auth0|507f' });
    expect(ask(auth, tokenOf('EdDSA', { iss: second.issuer })), 'signed by the first').to.equal('wrong_issuer');
  });
});

const OTHERS = {
  RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: generateKeyPairSync('ed25519'),
};
const otherKey = (algorithm: Algorithm): KeyObject => OTHERS[algorithm].privateKey;
