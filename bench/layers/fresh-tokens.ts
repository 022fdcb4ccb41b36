import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createTokenSigner } from '../../src/http/token.js';
import { hmacAuth, publicKeyAuth } from '../../test/helpers/authenticator.js';
import { signedToken } from '../../test/helpers/sign-token.js';
import { costOfCall, type LayerCost } from './cost.js';

const SECRET = 'a-secret-of-the-bench-with-40-bytes-or-so';
const HOUR_MS = 3_600_000;
/** Signed beforehand, and used in turn, without a cache of verified ones; a power of two. */
const PREPARED = 1 << 10;

const claimsOf = (place: number): object => {
  const now = Math.floor(Date.now() / 1000);
  return { sub: `auth0|${place}`, roles: [], iat: now, exp: now + HOUR_MS / 1000 };
};

/** What it costs to find out who a request is of, by a token that was never seen before; refused: one that is forged. */
export function freshTokenCosts(): LayerCost[] {
  const hs256 = createTokenSigner(SECRET);
  const keys = {
    RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
    ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
    EdDSA: generateKeyPairSync('ed25519'),
  } as const;
  const pemOf = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' }).toString();
  const cases = [
    {
      name: 'HS256',
      auth: hmacAuth(SECRET, { cacheMax: 0 }),
      token: (place: number) => hs256({ userId: `auth0|${place}`, roles: [], ttlMs: HOUR_MS }),
    },
    ...(['RS256', 'ES256', 'EdDSA'] as const).map((name) => ({
      name,
      auth: publicKeyAuth(name, pemOf(keys[name].publicKey), { cacheMax: 0 }),
      token: (place: number) => signedToken({ alg: name }, claimsOf(place), keys[name].privateKey),
    })),
  ];
  return cases.map(({ name, auth, token }) => {
    const good = Array.from({ length: PREPARED }, (_, place) => `Bearer ${token(place)}`);
    const forged = good.map((one) => `${one.slice(0, -8)}AAAAAAAA`);
    const ask = (headers: readonly string[]) => (place: number) => auth.authenticate(headers[place & (PREPARED - 1)]);
    return {
      name: `fresh token, ${name}`,
      offUs: costOfCall(() => auth.authenticate(undefined)),
      inUs: costOfCall(ask(good)),
      refusedUs: costOfCall(ask(forged)),
      redisUs: null,
    };
  });
}
