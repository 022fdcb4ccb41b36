import fc from 'fast-check';
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { createTokenSigner } from '../../src/http/token.js';
import { bytes } from './fuzz.js';

/** Names of users that an attacker may choose to break a key, a path, SQL, a cell or a terminal. */
export const HOSTILE_SUBJECTS = [
  'auth0|507f1f77bcf86cd799439011',
  'a@b.com',
  'urn:x:1',
  '{7:0}',
  'sk:{7:0}:stock',
  'u1/k1',
  '/',
  "o'x';--",
  '"\\"',
  '*?[a-z]',
  '%00%2F..%2F',
  '__proto__',
  '=cmd|',
  '<script>',
  'U1',
  `${'x'.repeat(127)}/`,
] as const;

/** The subject of every invalid token, which no port may ever receive. */
export const FORGER = 'mallory';
/** Prefix of every key in a hidden request. */
export const SMUGGLED = 'smuggled';

const base64 = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

/** Generates Authorization headers: valid tokens of two buyers and an admin, and forgeries that resemble them. */
export function authorizations(secret: string): fc.Arbitrary<string> {
  const signer = createTokenSigner(secret);
  const nowSeconds = Math.floor(Date.now() / 1000);
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const claims = { sub: FORGER, roles: ['admin'], exp: nowSeconds + 3600 };
  const hmac = (header: unknown, payload: unknown, algorithm = 'sha256', key = secret): string => {
    const text = `${base64(header)}.${base64(payload)}`;
    return `${text}.${createHmac(algorithm, key).update(text).digest('base64url')}`;
  };
  const hs256 = (payload: unknown, header: object = {}): string =>
    hmac({ alg: 'HS256', typ: 'JWT', ...header }, payload);
  const rs256 = (): string => {
    const text = `${base64({ alg: 'RS256', typ: 'JWT' })}.${base64(claims)}`;
    return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`;
  };
  const good = ['u1', 'u2', ...HOSTILE_SUBJECTS].map((userId) => signer({ userId, roles: [], ttlMs: 3_600_000 }));
  const admin = signer({ userId: 'ann', roles: ['admin'], ttlMs: 3_600_000 });
  const forged = hs256(claims);
  const cut = fc.nat(forged.length - 1).map((end) => forged.slice(0, end));
  const bent = fc
    .tuple(fc.nat(forged.length - 1), fc.constantFrom('A', 'b', '_', '.', '=', '%', '\u00e9'))
    .map(([at, char]) => forged.slice(0, at) + (forged[at] === char ? '~' : char) + forged.slice(at + 1));
  const unsigned = fc
    .constantFrom('none', 'None', 'NONE', 'nOnE', '', null, undefined, 0, [], ['HS256'], {})
    .chain((alg) => fc.constantFrom('', 'AAAA', 'none').map((end) => `${base64({ alg })}.${base64(claims)}.${end}`));
  const otherKey = fc.constantFrom(
    hmac({ alg: 'HS512' }, claims, 'sha512'),
    hmac({ alg: 'HS384' }, claims, 'sha384'),
    hmac({ alg: 'HS256', typ: 'JWT' }, claims, 'sha256', 'another secret'),
    hmac({ alg: 'RS256' }, claims),
    hmac({ alg: 'HS256', jku: 'http://127.0.0.1/', jwk: { kty: 'oct', k: '' } }, claims, 'sha256', ''),
    rs256(),
  );
  const oddKid = fc
    .constantFrom<unknown>('../../dev/null', "' OR 1=1", '\0', {}, [], 7, null, 'x'.repeat(2000), '')
    .map((kid) => hs256(claims, { kid }));
  const notNow = fc.constantFrom(
    hs256({ ...claims, exp: nowSeconds - 10 }),
    hs256({ ...claims, exp: undefined }),
    hs256({ ...claims, exp: '9e9' }),
    hs256({ ...claims, nbf: nowSeconds + 600 }),
    hs256({ ...claims, exp: -1 }),
    hs256({ ...claims, nbf: 'x' }),
  );
  const oddClaims = fc
    .constantFrom<unknown>(
      `${FORGER}\r\nX: y`,
      `${FORGER}\0`,
      [FORGER],
      { [FORGER]: 1 },
      FORGER.repeat(20),
      `${FORGER} `,
      ` ${FORGER}`,
      `${FORGER}\u00e9`,
    )
    .map((sub) => hs256({ ...claims, sub }));
  const oddRoles = fc
    .constantFrom<unknown>('admin', { admin: 1 }, [['admin']], [1], { __proto__: ['admin'] }, Array(40).fill('admin'))
    .map((roles) => hs256({ ...claims, roles }));
  const noObject = fc.constantFrom('null', '[]', '1', '"x"', '{', '').map((payload) => hs256(payload));
  const bad = fc.oneof(cut, bent, unsigned, otherKey, oddKid, notNow, oddClaims, oddRoles, noObject);
  return fc.oneof(
    { arbitrary: fc.constantFrom(...good, admin, admin).map((token) => `Bearer ${token}`), weight: 12 },
    { arbitrary: bad.map((token) => `Bearer ${token}`), weight: 5 },
    fc.constantFrom(`bearer  ${good[0]}`, `BEARER ${good[1]}`, `Basic ${base64('a:b')}`, 'Bearer', 'Bearer ', ''),
    fc.constantFrom(
      `Bearer ${forged} `.repeat(2),
      `Bearer${forged}`,
      `Bearer ${'x'.repeat(5000)}`,
      `Bearer ${'.'.repeat(4000)}`,
    ),
    bytes(60).map((junk) => `Bearer ${junk.replace(/[\r\n]/g, '')}`),
  );
}
