import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { wordOf } from '../harness/answers.js';
import { expectEqual, expectFields, expectTrue } from '../harness/expect.js';
import { ask } from '../harness/http-client.js';
import { listenToRedis } from '../harness/redis-ear.js';
import type { Row } from '../row.js';

// S: tokens that somebody made up.

type Json = Readonly<Record<string, unknown>>;
const encoded = (value: Json): string => Buffer.from(JSON.stringify(value)).toString('base64url');
type Signer = (input: string) => string;
/** A token by hand, since no library makes these. */
function forge(alg: string, claims: Json, signer: Signer, more: Json = {}): string {
  const input = `${encoded({ alg, typ: 'JWT', ...more })}.${encoded(claims)}`;
  return `${input}.${signer(input)}`;
}
const hmac =
  (key: string): Signer =>
  (input) =>
    createHmac('sha256', key).update(input).digest('base64url');
const HOUR_S = 3600;

/** Tokens that no api may take which checks `alg` with this signer. */
function forgeries(alg: string, sub: string, exp: number, signer: Signer): string[] {
  const claims = { sub, exp, roles: ['admin'] };
  const kids = ['../../dev/null', "' OR 1=1", { a: 1 }, 'x'.repeat(65)];
  return [
    ...['none', 'None', ''].map((none) => forge(none, claims, () => '')),
    ...[forge(alg, claims, () => ''), forge(alg, claims, hmac('another secret'))],
    ...[forge(alg, { ...claims, exp: exp - 2 * HOUR_S }, signer), forge(alg, { sub }, signer)],
    ...kids.map((kid) => forge(alg, claims, signer, { kid })),
  ];
}

const FORGED: Row = {
  id: 'S5',
  title:
    'tokens without algorithm, of the other algorithm, expired, with an odd kid; admin calls: 401, 403, nothing in Redis',
  ...{ fast: false, alone: false },
  async run(arena) {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
    const [{ api }, rsApi, { saleId }] = await Promise.all([
      arena.survivors(),
      arena.start('api', { env: { JWT_ALGORITHM: 'RS256', JWT_SECRET: pem } }),
      arena.openSale({ stock: 20 }),
    ]);
    const rsa: Signer = (input) => sign('sha256', Buffer.from(input), privateKey).toString('base64url');
    const [sub, exp] = [`forged-${saleId}`, Math.floor(Date.now() / 1000) + HOUR_S];
    const hmacOfPem = [pem, pem.trim()].map((key) => forge('HS256', { sub, exp, roles: ['admin'] }, hmac(key)));
    const forHs = [
      ...forgeries('HS256', sub, exp, hmac(arena.stack.env.JWT_SECRET)),
      forge('RS256', { sub, exp }, rsa),
    ];
    const forRs = [...forgeries('RS256', sub, exp, rsa), ...hmacOfPem];
    const ear = await listenToRedis(arena.stack.env.REDIS_URL);
    const purchases = `/v1/sales/${saleId}/purchases`;
    const buy = (url: string, token: string) =>
      ask(`${url}${purchases}`, { method: 'POST', token, headers: { 'Idempotency-Key': 'k1' }, body: { quantity: 1 } });
    const tryAll = async (url: string, tokens: readonly string[]): Promise<void> => {
      for (const token of tokens) {
        const answers = [
          await buy(url, token),
          await ask(`${url}${purchases}/k1`, { token }),
          await ask(`${url}/admin/v1/sales/${saleId}/pause`, { method: 'POST', token }),
        ];
        expectEqual(
          answers.map(({ status }) => status),
          [401, 401, 401],
          `answers to ${token.slice(0, 60)}`,
        );
      }
    };
    await Promise.all([tryAll(api.url, forHs), tryAll(rsApi.url, forRs)]);
    const buyers = arena.buyers(saleId, [api]);
    const plain = buyers.token(sub);
    const forbidden = await ask(`${api.url}/admin/v1/sales/${saleId}/pause`, { method: 'POST', token: plain });
    expectEqual(forbidden.status, 403, 'an admin call without the role');
    const honest = forge('RS256', { sub: `honest-${saleId}`, exp }, rsa);
    expectEqual(wordOf(await buyers.buy('honest', { tries: 5 })), 'yes', 'an honest buyer');
    expectEqual((await buy(rsApi.url, honest)).status, 202, 'an honest buyer with the other algorithm');
    const sawHim = (name: string): boolean => ear.heard(`${name}-${saleId}`);
    await arena.bite('every command of Redis was watched, and the honest buyer seen', () => sawHim('honest'));
    ear.close();
    expectTrue(!sawHim('forged'), 'no command in Redis for a forged token');
    arena.faultEnded();
    expectFields(await arena.rest(saleId), { rows: 2, failedRows: 0 }, 'two orders');
  },
};

export const FORGED_TOKEN_ROWS: readonly Row[] = [FORGED];
