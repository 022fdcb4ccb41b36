import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import type { Arena } from '../context.js';
import { expectOneRequest, isYes, userIds, wordOf } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectFields, expectOneOf, expectTrue } from '../harness/expect.js';
import { ask, sendRaw } from '../harness/http.js';
import { listenToRedis } from '../harness/listeners.js';
import { type Program, readMetric, sumMetric } from '../harness/programs.js';
import type { Row } from '../scenario.js';

// S: buyers who repeat themselves, borrow names or send what nobody asked for.

/** The shared api and more beside it. */
async function severalApis(arena: Arena, more: number): Promise<Program[]> {
  const started = Array.from({ length: more }, () => arena.start('api'));
  const [{ api }, ...others] = await Promise.all([arena.survivors(), ...started]);
  return [api, ...others];
}

const ONE_KEY: Row = {
  id: 'S1',
  title:
    '100 parallel requests with one key on three apis: one is held, one order, every answer 2xx for the same request',
  ...{ fast: false, alone: false },
  async run(arena) {
    const [apis, { saleId }] = await Promise.all([
      severalApis(arena, 2),
      arena.openSale({ stock: 200, limitPerBuyer: 2 }),
    ]);
    const buyers = arena.buyers(saleId, apis);
    const users = userIds(arena.random.whole(1, 3));
    const presses = users.map((userId) =>
      Promise.all(Array.from({ length: 100 }, () => buyers.buy(userId, { tries: 5 }))),
    );
    for (const answers of await Promise.all(presses)) expectOneRequest(answers, 'k1');
    await arena.bite('each api was asked', async () => {
      const own = apis.slice(1).map((api) => readMetric(api, 'seckill_http_answers_total{route="purchase"}'));
      return (await Promise.all(own)).every((count) => count >= 30 * users.length);
    });
    arena.faultEnded();
    const figures = { rows: users.length, sold: users.length, failedRows: 0 };
    expectFields(await arena.rest(saleId), figures, 'one order each');
  },
};

const OTHER_QUANTITY: Row = {
  id: 'S2',
  title:
    'one key with two quantities, at once on two apis and after the order: request_conflict, the first is unchanged',
  ...{ fast: false, alone: false },
  async run(arena) {
    const [[, ...apis], { saleId }] = await Promise.all([
      severalApis(arena, 2), // two of this row's own, whose meters count nobody else
      arena.openSale({ stock: 200, limitPerBuyer: 3 }),
    ]);
    const buyers = arena.buyers(saleId, apis);
    const users = userIds(arena.random.whole(5, 20));
    const first = new Map<string, number>();
    const race = async (userId: string): Promise<void> => {
      const quantities = arena.random.shuffled([1, 2]);
      const answers = await Promise.all(quantities.map((quantity) => buyers.buy(userId, { quantity, tries: 5 })));
      const won = answers.findIndex(isYes);
      expectEqual(answers.map((answer) => answer?.status).filter((status) => status === 422).length, 1, 'conflicts');
      expectTrue(won >= 0, 'one of the two is accepted');
      first.set(userId, quantities[won] as number);
    };
    await Promise.all(users.map(race));
    await arena.bite('each api was asked, and one quantity of each buyer was refused', async () => {
      const asked = await Promise.all(
        apis.map((api) => readMetric(api, 'seckill_http_answers_total{route="purchase"}')),
      );
      const refused = await sumMetric(apis, 'seckill_http_answers_total{route="purchase",code="request_conflict"}');
      return asked.every((count) => count >= users.length) && refused === users.length;
    });
    const units = [...first.values()].reduce((sum, quantity) => sum + quantity, 0);
    expectFields(await arena.rest(saleId), { sold: units, rows: users.length }, 'what was accepted first');
    for (const userId of users) {
      const before = await buyers.status(userId);
      const again = await buyers.buy(userId, { quantity: 3 });
      expectEqual([again?.status, again?.json.code], [422, 'request_conflict'], 'after the order');
      expectEqual((await buyers.status(userId)).json, before.json, 'the first purchase');
    }
    arena.faultEnded();
    expectFields(await arena.rest(saleId), { sold: units, rows: users.length, failedRows: 0 }, 'still');
  },
};

const TWO_SALES: Row = {
  id: 'S3',
  title: 'the same keys on two sales: a row in each; whoever looks after his 202, at any api, never hears 404',
  ...{ fast: false, alone: false },
  async run(arena) {
    const broker = await arena.proxy('broker');
    const [slow, { api: other }, ...sales] = await Promise.all([
      arena.start('api', { env: broker.env }),
      arena.survivors(),
      arena.openSale({ stock: 200 }),
      arena.openSale({ stock: 200 }),
    ]);
    broker.proxy.requestDelayMs = 700; // so long after its 202 no purchase can be an order
    const users = userIds(arena.random.whole(10, 40));
    const looks: string[] = [];
    const press = async (saleId: string): Promise<void> => {
      const buyers = arena.buyers(saleId, [slow, other]);
      const one = async (userId: string): Promise<void> => {
        expectEqual(wordOf(await buyers.buy(userId, { tries: 5, url: slow.url })), 'yes', 'the answer');
        const look = async (waitSeconds: number) =>
          (await buyers.status(userId, 'k1', waitSeconds).catch(() => null))?.json.status;
        for (const said of [await look(0), await look(0)]) looks.push(String(said ?? 'nothing'));
        await arena.until('the order is there', async () => (await look(5)) === 'ordered', 40_000);
      };
      await Promise.all(users.map(one));
    };
    await Promise.all(sales.map(({ saleId }) => press(saleId)));
    for (const look of looks) expectOneOf(look, ['pending', 'ordered', 'nothing'], 'what a look says');
    await arena.bite('somebody looked before the order', () => looks.includes('pending'));
    arena.faultEnded();
    for (const { saleId } of sales) {
      expectFields(await arena.rest(saleId), { rows: users.length, failedRows: 0 }, 'a row in each sale');
    }
  },
};

const FOREIGN: Row = {
  id: 'S4',
  title: 'a user id in the body, the order and the request of another buyer: the token decides, foreign things are 404',
  ...{ fast: true, alone: false },
  async run(arena) {
    const [api, { saleId }] = await Promise.all([
      arena.start('api'), // its meters count nobody else
      arena.openSale({ stock: 20 }),
      arena.survivors(),
    ]);
    const buyers = arena.buyers(saleId, [api]);
    expectEqual((await buyers.buy('ann', { requestId: 'of-ann' }))?.status, 202, 'a purchase of ann');
    const { orderId } = (await buyers.status('ann', 'of-ann', 20)).json as { orderId: string };
    const token = buyers.token('eve');
    const purchases = `${api.url}/v1/sales/${saleId}/purchases`;
    const headers = { 'Idempotency-Key': 'k1' };
    const as = (userId: string) => ask(purchases, { method: 'POST', token, headers, body: { quantity: 1, userId } });
    const refused = await Promise.all(['ann', 'eve', ''].map(as));
    expectEqual(
      refused.map(({ status }) => status),
      [400, 400, 400],
      'a user id in the body',
    );
    const order = `${api.url}/v1/orders/${orderId}`;
    const foreign = await Promise.all([
      ask(order, { token }),
      ask(`${order}/pay`, { method: 'POST', token }),
      ask(`${order}/cancel`, { method: 'POST', token }),
      ask(`${purchases}/of-ann`, { token }),
      ask(`${purchases}/of-ann/events`, { token }),
    ]);
    await arena.bite('the api found nothing for eve, five times', async () => {
      const codes = ['order_not_found', 'purchase_not_found'];
      const counts = codes.map((code) => readMetric(api, `seckill_http_answers_total{code="${code}"}`));
      return (await Promise.all(counts)).join() === '3,2';
    });
    for (const { status } of foreign) expectEqual(status, 404, 'what is not hers');
    arena.faultEnded();
    expectFields((await buyers.order('ann', orderId)).json, { orderId, state: 'pending_payment' }, 'the order of ann');
    expectFields(await arena.rest(saleId), { rows: 1, sold: 1, failedRows: 0 }, 'one order');
  },
};

const ODD_IDS = [
  ...["'", '"', '%27%3B--', '{7:0}', '%7B7:0%7D', '%00', '%0d%0aX-Odd:%201', '*', '..%2f..', '%F0%9F%92%A5'],
  ...['7%20', '-1', '1e3', '0x7', 'x'.repeat(10_000)],
];
const KEY = /^sk:(\{\d+:\d+\}|card:\d+)(:[\w-]+)*$/;

async function keysOf({ stack }: Arena): Promise<Set<string>> {
  const keys = new Set<string>();
  for (const server of stack.redis.masters()) {
    for await (const found of server.scanStream({ match: 'sk:*', count: 1000 })) {
      for (const name of found as string[]) keys.add(name);
    }
  }
  return keys;
}

const ODD_REQUESTS: Row = {
  id: 'S6',
  title:
    'bodies of 10 MB, headers of 64 kB, __proto__, ids with quotes, braces, NUL, CRLF, 10 kB: 4xx, no key outside a tag',
  ...{ fast: true, alone: false },
  async run(arena) {
    const [{ api }, { saleId }] = await Promise.all([arena.survivors(), arena.openSale({ stock: 20 })]);
    const before = await keysOf(arena);
    const buyers = arena.buyers(saleId, [api]);
    const token = buyers.token('eve', ['admin']);
    const fast = `POST /v1/sales/${saleId}/purchases`;
    const express = 'POST /admin/v1/sales';
    const request = (line: string, headers: string, body: string | Buffer = ''): Buffer =>
      Buffer.concat([
        Buffer.from(
          `${line} HTTP/1.1\r\nHost: a-test\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n` +
            `${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`,
          'latin1',
        ),
        Buffer.from(body),
      ]);
    const key = 'Idempotency-Key: k1\r\n';
    const large = Buffer.alloc(10 * 1024 * 1024, ' ');
    const proto = '{"__proto__":{"quantity":2},"constructor":{"prototype":{"quantity":2}}}';
    let refused = 0;
    const expectStatus = async (expected: readonly number[], bytes: Buffer, what: string): Promise<void> => {
      expectOneOf(await sendRaw(api.url, bytes), expected, what);
      refused++;
    };
    for (const line of [fast, express]) {
      await expectStatus([413], request(line, key, large), `${line}: 10 MB`);
      await expectStatus([431], request(line, `${key}X-Long: ${'x'.repeat(65_536)}\r\n`), `${line}: a long header`);
      await expectStatus([400], request(line, key, proto), `${line}: __proto__`);
      await expectStatus([400], request(line, `${key}X-Nul: a\0b\r\n`), `${line}: NUL in a header`);
      await expectStatus([400], request(line, `${key}X-Split: a\rb\r\n`), `${line}: a bare CR`);
    }
    for (const id of ODD_IDS) {
      const name = id.slice(0, 20);
      await expectStatus([400], request(`POST /v1/sales/${id}/purchases`, key), `sale id ${name}, fast lane`);
      await expectStatus([400, 404], request(`GET /v1/sales/${id}`, key), `sale id ${name}, Express`);
      if (/^(-1|1e3|0x7)$/.test(id)) continue; // a good key
      await expectStatus([400], request(fast, `Idempotency-Key: ${id}\r\n`), `key ${name}, fast lane`);
      await expectStatus([400], request(`GET /v1/sales/${saleId}/purchases/${id}`, ''), `key ${name}, Express`);
    }
    await expectStatus([400], request(`POST /v1/sales/7\0/purchases`, key), 'NUL in the address');
    await arena.bite(`${refused} odd requests were refused`, () => refused > 60);
    arena.faultEnded();
    expectEqual(wordOf(await buyers.buy('ann', { tries: 5 })), 'yes', 'an honest buyer');
    expectTrue(api.running, 'the api runs');
    expectFields(await arena.rest(saleId), { rows: 1, failedRows: 0 }, 'one order');
    const after = await keysOf(arena);
    for (const name of after) expectTrue(before.has(name) || KEY.test(name), `the key ${name} is in its tag`);
    expectAtLeast([...after].filter((name) => name.startsWith(`sk:{${saleId}:0}:`)).length, 4, 'keys of the sale');
  },
};

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

export const HOSTILE_REQUESTS_SCENARIOS: readonly Row[] = [
  ONE_KEY,
  OTHER_QUANTITY,
  TWO_SALES,
  FOREIGN,
  ODD_REQUESTS,
  FORGED,
];
