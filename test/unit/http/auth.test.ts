import { expect } from 'chai';
import { createHmac, createSign, generateKeyPairSync } from 'node:crypto';
import type { Authenticator, Denial } from '../../../src/http/auth.js';
import { createTokenSigner } from '../../../src/http/token.js';
import { hmacAuth, publicKeyAuth } from '../../helpers/authenticator.js';
import { SECRET } from './http-harness.js';

const NOW_MS = Date.UTC(2030, 0, 1);
const LATER = NOW_MS / 1000 + 60;
const { publicKey, privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});

const part = (value: object | string): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

type Header = Record<string, unknown>;
function hs(claims: object | string, header: Header = {}, secret = SECRET, hash = 'sha256'): string {
  const input = `${part({ alg: 'HS256', typ: 'JWT', ...header })}.${part(claims)}`;
  return `${input}.${createHmac(hash, secret).update(input).digest('base64url')}`;
}
function rs(claims: object, header: Header = {}): string {
  const input = `${part({ alg: 'RS256', typ: 'JWT', ...header })}.${part(claims)}`;
  return `${input}.${createSign('RSA-SHA256').update(input).sign(privateKey, 'base64url')}`;
}

const good = { sub: 'u1', exp: LATER };
/** Verdicts for a wrong token. */
const INVALID: readonly Denial[] = [
  'malformed',
  'too_long',
  'unknown_key',
  'bad_signature',
  'bad_subject',
  'bad_roles',
  'no_expiry',
  'not_yet_valid',
];

describe('auth', () => {
  let nowMs = NOW_MS;
  let hmac: Authenticator;
  let rsa: Authenticator;
  const ask = (token: string, auth = hmac): unknown => auth.authenticate(`Bearer ${token}`);

  beforeEach(() => {
    nowMs = NOW_MS;
    const options = { cacheMax: 2, nowMs: () => nowMs };
    hmac = hmacAuth(SECRET, options);
    rsa = publicKeyAuth('RS256', publicKey, options);
  });

  it('names the caller of a valid token, for each kind of key', () => {
    const who = { userId: 'u1', roles: ['admin'], expiresAtMs: good.exp * 1000 };
    const claims = { ...good, roles: ['admin'] };
    expect(ask(hs(claims)), 'usual header').to.deep.equal(who);
    expect(ask(hs(claims, { kid: 'key-1' })), 'header with a kid').to.deep.equal(who);
    expect(ask(rs(claims), rsa), 'RS256').to.deep.equal(who);
    expect(ask(hs(good))).to.deep.equal({ ...who, roles: [] });
  });

  it('accepts a token of ours until it expires', () => {
    nowMs = Date.now();
    const token = createTokenSigner(SECRET)({ userId: 'u1', roles: ['admin'], ttlMs: 5000 });
    expect(ask(token)).to.deep.include({ userId: 'u1', roles: ['admin'] });
    nowMs += 6000;
    expect(ask(token)).to.equal('expired');
  });

  it('reports a missing bearer token, and accepts the scheme in any case', () => {
    for (const header of [undefined, '', 'Bearer', 'Basic dTpw', 'Token x']) {
      expect(hmac.authenticate(header), String(header)).to.equal('missing');
    }
    expect(hmac.authenticate(`bearer  ${hs(good)}`)).to.deep.include({ userId: 'u1' });
  });

  it('refuses alg none in any spelling as invalid [S5]', () => {
    for (const alg of ['none', 'None', 'NONE', '', null, undefined, 'HS512', 'HS384', ['HS256'], 'hs256', 'ES256']) {
      const input = `${part({ alg, typ: 'JWT' })}.${part(good)}`;
      for (const token of [`${input}.`, input, hs(good, { alg })]) {
        expect(ask(token), String(alg)).to.be.oneOf(INVALID);
        expect(ask(token, rsa), String(alg)).to.be.oneOf(INVALID);
      }
    }
    expect(ask(hs(good, { alg: 'HS512' }, SECRET, 'sha512')), 'a valid signature of another algorithm').to.be.oneOf(
      INVALID,
    );
  });

  it('refuses a public key as an HMAC secret as invalid [S5]', () => {
    for (const secret of [publicKey, publicKey.trim(), publicKey.replace(/-----.*-----|\n/g, '')]) {
      expect(ask(hs(good, {}, secret), rsa)).to.be.oneOf(INVALID);
      expect(ask(hs(good, { alg: 'RS256' }, secret), rsa)).to.be.oneOf(INVALID);
    }
    expect(ask(rs(good)), 'RS256 where HS256 is pinned').to.be.oneOf(INVALID);
    expect(ask(rs(good, { alg: 'HS256' }))).to.be.oneOf(INVALID);
  });

  it('ignores key hints in the header, and refuses a malformed `kid` as invalid [S5]', () => {
    for (const kid of ['../../dev/null', "1' OR '1'='1", 'a\0b', '', 7, null, {}, 'k'.repeat(65)]) {
      expect(ask(hs(good, { kid })), JSON.stringify(kid)).to.be.oneOf(INVALID);
    }
    for (const hint of [
      { jwk: { kty: 'oct', k: 'AA' } },
      { jku: 'http://evil.example' },
      { x5u: 'http://evil.example' },
    ]) {
      expect(ask(hs(good, hint, 'the secret of another one, 40 bytes long')), JSON.stringify(hint)).to.be.oneOf(
        INVALID,
      );
    }
    expect(ask(hs(good, { crit: ['b64'], b64: false })), 'crit').to.be.oneOf(INVALID);
  });

  it('refuses a wrong, truncated, padded or foreign signature as invalid [S5]', () => {
    for (const header of [{}, { kid: 'key-1' }]) {
      const token = hs(good, header);
      const last = token.at(-1) === 'A' ? 'B' : 'A';
      const bad = [
        token.slice(0, -1),
        `${token.slice(0, -1)}${last}`,
        `${token}A`,
        `${token}=`,
        `${token}.`,
        `${token}.x`,
      ];
      bad.push(token.slice(0, token.lastIndexOf('.') + 1), hs(good, header, `${SECRET}x`), `${token} `);
      const [head = '', , signature = ''] = token.split('.');
      bad.push(`${head}.${part({ sub: 'u2', exp: LATER })}.${signature}`);
      for (const each of bad) expect(ask(each), each).to.be.oneOf(INVALID);
    }
  });

  it('refuses garbage as invalid without throwing [S5]', () => {
    const garbage = ['.', '..', '...', 'a.b.c', 'null', '{}', 'ü.ü.ü', '\0', `${part({ alg: 'HS256', typ: 'JWT' })}`];
    garbage.push(
      hs('not json'),
      hs('null'),
      hs('"text"'),
      hs('[]'),
      hs('7'),
      `${hs(good)}.${hs(good)}`,
      'x'.repeat(20_000),
    );
    for (const each of garbage) {
      expect(ask(each), each).to.be.oneOf(INVALID);
      expect(ask(each, rsa), each).to.be.oneOf(INVALID);
    }
    expect(ask(hs({ ...good, pad: 'x'.repeat(17_000) })), 'longer than all headers').to.be.oneOf(INVALID);
  });

  it('refuses a token that is expired, not valid yet, or without exp [S5]', () => {
    expect(ask(hs({ sub: 'u1', exp: NOW_MS / 1000 }))).to.equal('expired');
    expect(ask(rs({ sub: 'u1', exp: NOW_MS / 1000 - 1 }), rsa)).to.equal('expired');
    for (const exp of [undefined, null, '9999999999', {}]) expect(ask(hs({ sub: 'u1', exp }))).to.be.oneOf(INVALID);
    expect(ask(hs({ ...good, nbf: LATER }))).to.be.oneOf(INVALID);
    expect(ask(hs({ ...good, nbf: 'soon' }))).to.be.oneOf(INVALID);
    expect(ask(hs({ ...good, nbf: NOW_MS / 1000 }))).to.deep.include({ userId: 'u1' });
  });

  it('refuses a malformed sub, or roles that are not a list of words, as invalid [S6]', () => {
    for (const sub of [undefined, null, 7, '', 'a b', 'a ', ' a', 'u\0', 'u\r\nX: y', 'ü', 'u'.repeat(129), { a: 1 }]) {
      expect(ask(hs({ sub, exp: LATER })), JSON.stringify(sub)).to.be.oneOf(INVALID);
    }
    for (const roles of ['admin', { 0: 'admin' }, [7], null, Array(33).fill('x')]) {
      expect(ask(hs({ ...good, roles })), JSON.stringify(roles)).to.be.oneOf(INVALID);
    }
  });

  it('refuses a cached token as soon as it expires', () => {
    const token = hs(good);
    for (let i = 0; i < 3; i++) expect(ask(token)).to.deep.include({ userId: 'u1' });
    expect(ask(token), 'remembered: the same object').to.equal(ask(token));
    nowMs = LATER * 1000;
    expect(ask(token)).to.equal('expired');
  });

  it('drops the oldest token when the cache is full, and still verifies every token', () => {
    const tokens = Array.from({ length: 20 }, (_, i) => hs({ sub: `u${i}`, exp: LATER }));
    const [first = '', ...others] = tokens;
    for (let i = 0; i < 3; i++) ask(first);
    const remembered = ask(first);
    for (const token of others) for (let i = 0; i < 3; i++) ask(token);
    expect(ask(first), 'verified again').to.not.equal(remembered);
    for (let round = 0; round < 4; round++) {
      for (const [i, token] of tokens.entries()) expect(ask(token)).to.deep.include({ userId: `u${i}` });
    }
    for (const token of tokens) expect(ask(`${token.slice(0, -8)}AAAAAAAA`)).to.be.oneOf(INVALID);
  });

  it('accepts a token as long as the headers allow, after several blanks', () => {
    for (const length of [4_000, 5_000, 9_000])
      expect(ask(hs({ ...good, pad: 'x'.repeat(length) })), String(length)).to.deep.include({ userId: 'u1' });
    expect(ask(` ${hs(good)}`)).to.deep.include({ userId: 'u1' });
    expect(ask(`   ${hs(good)}`)).to.deep.include({ userId: 'u1' });
  });

  it('names the mistake in a token', () => {
    expect(ask('x')).to.equal('malformed');
    expect(ask('x'.repeat(17_000))).to.equal('too_long');
    expect(ask(rs(good))).to.equal('unknown_key');
    expect(ask(`${hs(good)}A`)).to.equal('bad_signature');
    expect(ask(hs({ sub: 'a b', exp: LATER }))).to.equal('bad_subject');
    expect(ask(hs({ sub: 'u1' }))).to.equal('no_expiry');
    expect(ask(hs({ ...good, nbf: LATER }))).to.equal('not_yet_valid');
    expect(ask(hs({ ...good, iat: LATER }))).to.equal('not_yet_valid');
    expect(ask(hs({ ...good, roles: 'admin' }))).to.equal('bad_roles');
  });

  it('refuses a token that lives longer than allowed, with or without an issue time', () => {
    const auth = hmacAuth(SECRET, { nowMs: () => nowMs, lifeMaxMs: 60_000 });
    const now = NOW_MS / 1000;
    expect(ask(hs({ sub: 'u1', exp: now + 60 }), auth)).to.deep.include({ userId: 'u1' });
    expect(ask(hs({ sub: 'u1', exp: now + 61 }), auth)).to.equal('lives_too_long');
    expect(ask(hs({ sub: 'u1', iat: now - 30, exp: now + 30 }), auth)).to.deep.include({ userId: 'u1' });
    expect(ask(hs({ sub: 'u1', iat: now - 31, exp: now + 30 }), auth), 'its last seconds').to.equal('lives_too_long');
  });

  it('tolerates a small clock difference of the issuer', () => {
    const auth = hmacAuth(SECRET, { nowMs: () => nowMs, toleranceMs: 5000 });
    const now = NOW_MS / 1000;
    expect(ask(hs({ sub: 'u1', exp: now - 4 }), auth)).to.deep.include({ userId: 'u1' });
    expect(ask(hs({ sub: 'u1', exp: now - 5 }), auth)).to.equal('expired');
    expect(ask(hs({ ...good, nbf: now + 5, iat: now + 5 }), auth)).to.deep.include({ userId: 'u1' });
    expect(ask(hs({ ...good, iat: now + 6 }), auth)).to.equal('not_yet_valid');
  });

  it('chooses the key by its id, and uses the secret that has no id for any other token', () => {
    const other = 'the second secret of this test, 40 bytes';
    const auth = hmacAuth(SECRET, { nowMs: () => nowMs }, new Map([['k2', other]]));
    expect(ask(hs(good, { kid: 'k2' }, other), auth)).to.deep.include({ userId: 'u1' });
    expect(ask(hs(good, { kid: 'k2' }), auth), 'signed with another key').to.equal('bad_signature');
    expect(ask(hs(good, { kid: 'k3' }, other), auth)).to.equal('bad_signature');
    expect(ask(hs(good, { kid: 'k3' }), auth)).to.deep.include({ userId: 'u1' });
    expect(ask(hs(good), auth)).to.deep.include({ userId: 'u1' });
  });

  it('refuses a revoked token, even if it is cached', () => {
    const revoked = new Set<string>();
    const auth = hmacAuth(SECRET, { nowMs: () => nowMs, isRevoked: ({ tokenId }) => revoked.has(tokenId ?? '') });
    const token = hs({ ...good, jti: 't1' });
    for (let i = 0; i < 3; i++) expect(ask(token, auth)).to.deep.include({ userId: 'u1' });
    revoked.add('t1');
    expect(ask(token, auth)).to.equal('revoked');
    expect(ask(hs({ ...good, jti: 't1', roles: ['admin'] }), auth), 'not seen before').to.equal('revoked');
    expect(ask(hs({ ...good, jti: 't2' }), auth)).to.deep.include({ userId: 'u1' });
  });

  it('does not start if the secret is weak or the key is invalid', () => {
    const rsaPem = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({
      type: 'spki',
      format: 'pem',
    });
    for (const [secret, why] of [
      ['x1'.repeat(15), '32 bytes'],
      ['x'.repeat(64), 'different characters'],
      ['password'.repeat(5), 'different characters'],
      [String(rsaPem), 'RSA, EC or Ed25519'],
      [`  ${String(rsaPem).replaceAll('\n', '\\n')}`, 'RSA, EC or Ed25519'],
      [String(rsaPem).replace(/-----.*-----|\n/g, ''), 'RSA, EC or Ed25519'],
      [JSON.stringify({ kty: 'EC', crv: 'P-256', x: 'x'.repeat(43) }), 'RSA, EC or Ed25519'],
      ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHx7 me@here', 'RSA, EC or Ed25519'],
    ] as const) {
      expect(() => hmacAuth(secret), why).to.throw(why);
      expect(() => createTokenSigner(secret), why).to.throw(why);
    }
    expect(() => publicKeyAuth('RS256', 'no key')).to.throw();
    expect(() => publicKeyAuth('RS256', SECRET)).to.throw();
  });
});
