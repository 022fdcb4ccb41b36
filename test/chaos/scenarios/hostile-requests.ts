import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import type { ScenarioContext } from '../context.js';
import { expectOneRequest, isAccepted, outcomeOf, userIds } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectFields, expectOneOf, expectTrue } from '../harness/expect.js';
import { ask, sendRaw } from '../harness/http.js';
import { listenToRedis } from '../harness/listeners.js';
import { readMetric, sumMetric, type Program } from '../harness/programs.js';
import type { Scenario } from '../scenario.js';

// S1 to S6: buyers who repeat themselves, pretend to be others, or send malformed requests.

const PURCHASE_ANSWERS = 'seckill_http_answers_total{route="purchase"}';

/** The healthy api and two more beside it. */
async function startThreeApis(context: ScenarioContext): Promise<[Program, Program, Program]> {
  const [{ api }, second, third] = await Promise.all([
    context.healthyPrograms(),
    context.start('api'),
    context.start('api'),
  ]);
  return [api, second, third];
}

const ONE_KEY: Scenario = {
  name: 'S1',
  title: '100 parallel requests with one key on three apis: one order, every answer 2xx for the same request',
  async run(context) {
    const [apis, { saleId }] = await Promise.all([
      startThreeApis(context),
      context.openSale({ stock: 200, limitPerBuyer: 2 }),
    ]);
    const buyers = context.buyers(saleId, apis);
    const users = userIds(context.random.whole(1, 3));
    const answersOf = (userId: string) =>
      Promise.all(Array.from({ length: 100 }, () => buyers.buy(userId, { tries: 5 })));
    for (const answers of await Promise.all(users.map(answersOf))) expectOneRequest(answers, 'k1');
    await context.observed('each api got requests', async () => {
      const counts = await Promise.all(apis.slice(1).map((api) => readMetric(api, PURCHASE_ANSWERS)));
      return counts.every((count) => count >= 30 * users.length);
    });
    context.faultEnded();
    await context.expectFigures(saleId, { rows: users.length, sold: users.length, failedRows: 0 }, 'one order each');
  },
};

const OTHER_QUANTITY: Scenario = {
  name: 'S2',
  title: 'one key with two quantities, at once and after the order: request_conflict, the first is unchanged',
  async run(context) {
    const [[, ...apis], { saleId }] = await Promise.all([
      startThreeApis(context), // of two the metrics count this scenario only
      context.openSale({ stock: 200, limitPerBuyer: 3 }),
    ]);
    const buyers = context.buyers(saleId, apis);
    const users = userIds(context.random.whole(5, 20));
    let units = 0;
    const buyTwice = async (userId: string): Promise<void> => {
      const quantities = context.random.shuffled([1, 2]);
      const answers = await Promise.all(quantities.map((quantity) => buyers.buy(userId, { quantity, tries: 5 })));
      const won = answers.findIndex(isAccepted);
      expectEqual(answers.filter((answer) => answer?.status === 422).length, 1, 'conflicts');
      expectTrue(won >= 0, 'one of the two is accepted');
      units += quantities[won] as number;
    };
    await Promise.all(users.map(buyTwice));
    await context.observed('each api got requests, and one quantity of each buyer was refused', async () => {
      const counts = await Promise.all(apis.map((api) => readMetric(api, PURCHASE_ANSWERS)));
      const refused = await sumMetric(apis, 'seckill_http_answers_total{route="purchase",code="request_conflict"}');
      return counts.every((count) => count >= users.length) && refused === users.length;
    });
    const figures = { sold: units, rows: users.length };
    await context.expectFigures(saleId, figures, 'what was accepted first');
    for (const userId of users) {
      const before = await buyers.status(userId);
      const again = await buyers.buy(userId, { quantity: 3 });
      expectEqual([again?.status, again?.json.code], [422, 'request_conflict'], 'after the order');
      expectEqual((await buyers.status(userId)).json, before.json, 'the first purchase');
    }
    context.faultEnded();
    await context.expectFigures(saleId, { ...figures, failedRows: 0 }, 'still');
  },
};

const TWO_SALES: Scenario = {
  name: 'S3',
  title: 'the same keys on two sales: a row in each; a GET after the 202, at any api, is never 404',
  async run(context) {
    const broker = await context.proxy('broker');
    const [slow, { api: other }, ...sales] = await Promise.all([
      context.start('api', { env: broker.env }),
      context.healthyPrograms(),
      context.openSale({ stock: 200 }),
      context.openSale({ stock: 200 }),
    ]);
    broker.proxy.requestDelayMs = 700; // for so long after its 202 no purchase can be an order
    const users = userIds(context.random.whole(10, 40));
    const statuses: string[] = [];
    const buyAll = async (saleId: string): Promise<void> => {
      const buyers = context.buyers(saleId, [slow, other]);
      const buyOne = async (userId: string): Promise<void> => {
        expectEqual(outcomeOf(await buyers.buy(userId, { tries: 5, url: slow.url })), 'accepted', 'the answer');
        const statusOf = async (waitSeconds: number) =>
          (await buyers.status(userId, 'k1', waitSeconds).catch(() => null))?.json.status;
        for (const status of [await statusOf(0), await statusOf(0)]) statuses.push(String(status ?? 'nothing'));
        await context.until('the order is there', async () => (await statusOf(5)) === 'ordered');
      };
      await Promise.all(users.map(buyOne));
    };
    await Promise.all(sales.map(({ saleId }) => buyAll(saleId)));
    for (const status of statuses) expectOneOf(status, ['pending', 'ordered', 'nothing'], 'a status');
    await context.observed('a GET came before the order', () => statuses.includes('pending'));
    context.faultEnded();
    for (const { saleId } of sales) {
      await context.expectFigures(saleId, { rows: users.length, failedRows: 0 }, 'a row in each sale');
    }
  },
};

const FOREIGN: Scenario = {
  name: 'S4',
  title: 'a user id in the body, the order and request of another buyer: the token decides, foreign things are 404',
  fast: true,
  async run(context) {
    const [api, { saleId }] = await Promise.all([
      context.start('api'), // its metrics count this scenario only
      context.openSale({ stock: 20 }),
      context.healthyPrograms(),
    ]);
    const buyers = context.buyers(saleId, [api]);
    expectTrue(isAccepted(await buyers.buy('ann', { requestId: 'of-ann', tries: 4 })), 'a purchase of ann');
    const { orderId } = (await buyers.status('ann', 'of-ann', 20)).json as { orderId: string };
    const token = buyers.token('eve');
    const purchases = `${api.url}/v1/sales/${saleId}/purchases`;
    const headers = { 'Idempotency-Key': 'k1' };
    for (const userId of ['ann', 'eve', '']) {
      const { status } = await ask(purchases, { method: 'POST', token, headers, body: { quantity: 1, userId } });
      expectEqual(status, 400, 'a user id in the body');
    }
    const order = `${api.url}/v1/orders/${orderId}`;
    const foreign = await Promise.all([
      ask(order, { token }),
      ask(`${order}/pay`, { method: 'POST', token }),
      ask(`${order}/cancel`, { method: 'POST', token }),
      ask(`${purchases}/of-ann`, { token }),
      ask(`${purchases}/of-ann/events`, { token }),
    ]);
    await context.observed('the api found nothing for eve, five times', async () => {
      const codes = ['order_not_found', 'purchase_not_found'];
      const counts = codes.map((code) => readMetric(api, `seckill_http_answers_total{code="${code}"}`));
      return (await Promise.all(counts)).join() === '3,2';
    });
    for (const { status } of foreign) expectEqual(status, 404, 'what belongs to ann');
    context.faultEnded();
    expectFields((await buyers.order('ann', orderId)).json, { orderId, state: 'pending_payment' }, 'the order of ann');
    await context.expectFigures(saleId, { rows: 1, sold: 1, failedRows: 0 }, 'one order');
  },
};

type Json = Readonly<Record<string, unknown>>;
type Signer = (input: string) => string;

/** A token by hand, since no library makes these. */
function forge(alg: string, claims: Json, signer: Signer, header: Json = {}): string {
  const encoded = (value: Json): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const input = `${encoded({ alg, typ: 'JWT', ...header })}.${encoded(claims)}`;
  return `${input}.${signer(input)}`;
}
const hmac =
  (key: string): Signer =>
  (input) =>
    createHmac('sha256', key).update(input).digest('base64url');
const unsigned: Signer = () => '';
const HOUR_S = 3600;

/** Tokens that an api must refuse which checks `alg` with this signer. */
function forgeries(alg: string, sub: string, exp: number, signer: Signer): string[] {
  const claims = { sub, exp, roles: ['admin'] };
  const kids = ['../../dev/null', "' OR 1=1", { a: 1 }, 'x'.repeat(65)];
  return [
    ...['none', 'None', ''].map((none) => forge(none, claims, unsigned)),
    forge(alg, claims, unsigned),
    forge(alg, claims, hmac('another secret')),
    forge(alg, { ...claims, exp: exp - 2 * HOUR_S }, signer),
    forge(alg, { sub }, signer),
    ...kids.map((kid) => forge(alg, claims, signer, { kid })),
  ];
}

const FORGED: Scenario = {
  name: 'S5',
  title: 'unsigned, expired and wrongly signed tokens, odd key ids, admin calls: 401 or 403, nothing reaches Redis',
  async run(context) {
    const { stack } = context;
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
    const [{ api }, rsaApi, { saleId }] = await Promise.all([
      context.healthyPrograms(),
      context.start('api', { env: { JWT_ALGORITHM: 'RS256', JWT_SECRET: pem } }),
      context.openSale({ stock: 20 }),
    ]);
    const rsa: Signer = (input) => sign('sha256', Buffer.from(input), privateKey).toString('base64url');
    const [sub, exp] = [`forged-${saleId}`, Math.floor(Date.now() / 1000) + HOUR_S];
    const hmacOfPem = [pem, pem.trim()].map((key) => forge('HS256', { sub, exp, roles: ['admin'] }, hmac(key)));
    const ofHmac = [...forgeries('HS256', sub, exp, hmac(stack.env.JWT_SECRET)), forge('RS256', { sub, exp }, rsa)];
    const ofRsa = [...forgeries('RS256', sub, exp, rsa), ...hmacOfPem];
    const listener = await listenToRedis(stack.env.REDIS_URL);
    const purchases = `/v1/sales/${saleId}/purchases`;
    const pause = `/admin/v1/sales/${saleId}/pause`;
    const buy = (url: string, token: string) =>
      ask(`${url}${purchases}`, { method: 'POST', token, headers: { 'Idempotency-Key': 'k1' }, body: { quantity: 1 } });
    const expectRefused = async ({ url, operatorsUrl }: Program, tokens: readonly string[]): Promise<void> => {
      for (const token of tokens) {
        const statuses = [
          (await buy(url, token)).status,
          (await ask(`${url}${purchases}/k1`, { token })).status,
          (await ask(`${operatorsUrl}${pause}`, { method: 'POST', token })).status,
        ];
        expectEqual(statuses, [401, 401, 401], `answers to ${token.slice(0, 60)}`);
      }
    };
    await Promise.all([expectRefused(api, ofHmac), expectRefused(rsaApi, ofRsa)]);
    const buyers = context.buyers(saleId, [api]);
    const withoutRole = await ask(`${api.operatorsUrl}${pause}`, { method: 'POST', token: buyers.token(sub) });
    expectEqual(withoutRole.status, 403, 'an admin call without the role');
    const honest = forge('RS256', { sub: `honest-${saleId}`, exp }, rsa);
    expectEqual(outcomeOf(await buyers.buy('honest', { tries: 5 })), 'accepted', 'an honest buyer');
    expectEqual((await buy(rsaApi.url, honest)).status, 202, 'an honest buyer with the other algorithm');
    const wasSeen = (name: string): boolean => listener.saw(`${name}-${saleId}`);
    await context.observed('the listener sees the commands of the honest buyer', () => wasSeen('honest'));
    listener.close();
    expectTrue(!wasSeen('forged'), 'no command in Redis for a forged token');
    context.faultEnded();
    await context.expectFigures(saleId, { rows: 2, failedRows: 0 }, 'two orders');
  },
};

const ODD_IDS = [
  "'",
  '"',
  '%27%3B--',
  '{7:0}',
  '%7B7:0%7D',
  '%00',
  '%0d%0aX-Odd:%201',
  '*',
  '..%2f..',
  '%F0%9F%92%A5',
  '7%20',
  '-1',
  '1e3',
  '0x7',
  'x'.repeat(10_000),
];
const KEY_IN_ITS_TAG = /^sk:((card:)?\{\d+:\d+\}|\{entry\}:(hot|rules)|\{live\}:(answers|programs?))(:[\w-]+)*$/;

async function keysOf({ stack }: ScenarioContext): Promise<Set<string>> {
  const keys = new Set<string>();
  for (const server of stack.redis.masters()) {
    for await (const found of server.scanStream({ match: 'sk:*', count: 1000 })) {
      for (const name of found as string[]) keys.add(name);
    }
  }
  return keys;
}

const ODD_REQUESTS: Scenario = {
  name: 'S6',
  title:
    'bodies of 10 MB, headers of 64 kB, __proto__, ids with quotes, braces, NUL, CRLF: 4xx, no key outside its hash tag',
  fast: true,
  async run(context) {
    const [{ api }, { saleId }] = await Promise.all([context.healthyPrograms(), context.openSale({ stock: 20 })]);
    const before = await keysOf(context);
    const buyers = context.buyers(saleId, [api]);
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
      const url = what.startsWith(express) ? api.operatorsUrl : api.url;
      expectOneOf(await sendRaw(url, bytes), expected, what);
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
      if (/^(-1|1e3|0x7)$/.test(id)) continue; // a valid key
      await expectStatus([400], request(fast, `Idempotency-Key: ${id}\r\n`), `key ${name}, fast lane`);
      await expectStatus([400], request(`GET /v1/sales/${saleId}/purchases/${id}`, ''), `key ${name}, Express`);
    }
    await expectStatus([400], request(`POST /v1/sales/7\0/purchases`, key), 'NUL in the address');
    await context.observed(`${refused} odd requests were refused`, () => refused > 60);
    context.faultEnded();
    expectEqual(outcomeOf(await buyers.buy('ann', { tries: 5 })), 'accepted', 'an honest buyer');
    expectTrue(api.running, 'the api runs');
    await context.expectFigures(saleId, { rows: 1, failedRows: 0 }, 'one order');
    const after = await keysOf(context);
    for (const name of after)
      expectTrue(before.has(name) || KEY_IN_ITS_TAG.test(name), `the key ${name} is in its tag`);
    expectAtLeast([...after].filter((name) => name.startsWith(`sk:{${saleId}:0}:`)).length, 4, 'keys of the sale');
  },
};

export const HOSTILE_REQUESTS_SCENARIOS: readonly Scenario[] = [
  ONE_KEY,
  OTHER_QUANTITY,
  TWO_SALES,
  FOREIGN,
  FORGED,
  ODD_REQUESTS,
];
