import fc from 'fast-check';
import { signWebhook } from '../helpers/sign-webhook.js';
import { ROUTES } from '../../src/programs/routes.js';
import { createTokenSigner } from '../../src/http/token.js';
import type { Sent } from './exchange.js';
import { asBytes, bytes, MAGIC_NAMES, nested, poison } from './fuzz.js';
import { authorizations, SMUGGLED } from './tokens.js';
import { ALLOWED_ORIGIN, BUSY_SALE, MOVED_SALE, SECRET, WEBHOOK_SECRET } from './world.js';

/** Placeholder for the newest order, which is unknown when the cases are generated. */
export const ORDER_HERE = '@order@';

/** Placeholder for a sale: the sale that buyers use, or the sale that admins open and close. */
const SALE_HERE = '@sale@';

const PURCHASE = `/v1/sales/${BUSY_SALE}/purchases`;
const KB_64 = 64 * 1024;
const JUNK_BYTES = [10_000_000, 1_000_000, 70_000, 4097];

const goodId = fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/);
const oddText = fc.oneof(
  fc.constantFrom(
    "'",
    '"',
    '{',
    '}',
    '{}',
    '7}:x{',
    "7' OR '1'='1",
    '\0',
    '\r\n',
    'a\r\nX-Injected: 1',
    'a\nb',
    'a\rb',
    '\t',
    '..',
    '../..',
    '%',
    '%0',
    '%00',
    '%0d%0aSet-Cookie:%20a=b',
    '%7B7:0%7D',
    '%ff',
    '%c0%ae',
    '%zz',
    '%2e%2e%2f',
    '-1',
    '0',
    '07',
    '1e3',
    'NaN',
    '9'.repeat(18),
    '9'.repeat(19),
    '9'.repeat(40),
    '7.0',
    '0x7',
    '+7',
    ' 7',
    '7 ',
    '7/8',
    '7;a=b',
    '7?x',
    '7#x',
    '*',
    '',
    'x'.repeat(65),
    'x'.repeat(10_240),
    '$ne',
    '[]',
    '7,8',
    ...MAGIC_NAMES,
  ),
  fc.constantFrom('é', '７', '\u202e7', '💥', '\ufeff7').map(asBytes),
  bytes(20),
);
const id = fc.oneof(
  { arbitrary: fc.constantFrom(SALE_HERE, SALE_HERE, 'u1', 'k1', '1', ORDER_HERE, ORDER_HERE), weight: 9 },
  { arbitrary: goodId, weight: 2 },
  { arbitrary: oddText, weight: 2 },
);

const method = fc.oneof(
  { arbitrary: fc.constantFrom('GET', 'POST'), weight: 8 },
  {
    arbitrary: fc.constantFrom('HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'CONNECT', 'PRI', 'M-SEARCH'),
    weight: 2,
  },
  fc.constantFrom('get', 'Post', '', 'GET\0', 'PO ST', 'X'.repeat(10_000), '\r\nGET', 'GET\r'),
);

const query = fc.oneof(
  { arbitrary: fc.constant(''), weight: 3 },
  fc
    .tuple(fc.constantFrom('wait', 'limit', 'after', 'since', 'saleId', 'state', 'apply', ...MAGIC_NAMES), id)
    .map((pair) => `?${pair.join('=')}`),
  fc.constantFrom(
    '?wait=1',
    '?wait=99',
    '?wait=1&wait=2',
    '?wait[]=1',
    '?wait[__proto__]=1',
    '?__proto__[polluted]=1',
    '?',
    '??',
    '?limit=200',
    '?limit=0',
    '?limit=1e2',
    '?apply=true',
    '?since=2030-01-01T00:00:00Z',
    '?since=now',
    '?&&&=',
    '?%',
    `?${'a=b&'.repeat(2000)}`,
    `?a=${'x'.repeat(10_240)}`,
    '?a=%00%0d%0a',
    '?constructor.prototype.polluted=1',
  ),
);
const operations = ROUTES.map(({ method, path }) => [method.toUpperCase(), path] as const);
const operation = fc
  .tuple(fc.constantFrom(...operations), id, id, query)
  .map(([[verb, route], first, second, asked]): [string, string] => {
    const ids = [first, second];
    const path = route.replace(/\{\w+\}/g, () => ids.shift() ?? '');
    return [verb, path.replaceAll(SALE_HERE, route.startsWith('/admin') ? MOVED_SALE : BUSY_SALE) + asked];
  });
const target = fc.oneof(
  { arbitrary: operation.map(([, address]) => address), weight: 2 },
  fc.constantFrom(
    '*',
    '/',
    '//',
    '//evil/v1/sales/7/purchases',
    'http://x/v1/sales/7/purchases',
    'http://x',
    'x:443',
    'HTTPS://X/%',
    `${PURCHASE}/`,
    `${PURCHASE}//`,
    `${PURCHASE.toUpperCase()}`,
    `/v1/../admin/v1/sales`,
    `/v1/sales/%37/purchases`,
    '/admin/v1/sales/',
    '/./admin/v1/sales',
    '/admin%2fv1%2fsales',
    '/admin/v1/sales;x=1',
    '/metrics#',
    '/__proto__',
  ),
  bytes(40),
);
const asked = fc.oneof(
  { arbitrary: operation, weight: 6 },
  { arbitrary: query.map((more): [string, string] => ['POST', PURCHASE + more]), weight: 4 },
  { arbitrary: fc.tuple(method, target), weight: 3 },
);

const wellFormedBody = fc.constantFrom('', '{}', '{"quantity":1}', '{"quantity":1000}');
const body: fc.Arbitrary<string | number> = fc.oneof(
  { arbitrary: wellFormedBody, weight: 20 },
  { arbitrary: fc.json().map(asBytes), weight: 2 },
  { arbitrary: fc.oneof(poison, nested(3000), bytes(60)), weight: 3 },
  fc.constantFrom(
    '{"quantity":"1"}',
    '{"quantity":1e999}',
    '{"quantity":-1}',
    '{"quantity":1.5}',
    '{"quantity":[1]}',
    '{"quantity":null}',
    '{"quantity":1',
    '{"quantity":1}}',
    '{"quantity":1}\0',
    '\ufeff{"quantity":1}',
    '{"userId":"u2"}',
    '{"quantity":\xff\xfe}',
    '"\xed\xa0\x80"',
    '{"a":"\xc0\x80"}',
    '{"sku":{"$gt":""}}',
    '[1]',
    'null',
    'quantity=1',
    '<a/>',
    '{"sku":"s","title":"t","priceCents":1,"stock":5,"limitPerBuyer":1,"opensAt":"2020-01-01T00:00:00Z","closesAt":"2090-01-01T00:00:00Z"}',
  ),
);
const junk = fc.constantFrom(...JUNK_BYTES);

type Header = readonly [name: string, value: string];
const header = (name: string, values: fc.Arbitrary<string>): fc.Arbitrary<Header> =>
  values.map((value): Header => [name, value]);
const usualHeaders = (authorization: fc.Arbitrary<string>): fc.Arbitrary<Header[]> =>
  fc
    .tuple(
      fc.option(header('Authorization', authorization), { freq: 12 }),
      fc.option(header('Idempotency-Key', id), { freq: 6 }),
      fc.option(header('Content-Type', fc.constantFrom('application/json', 'application/json; charset=utf-8')), {
        freq: 2,
      }),
    )
    .map((headers) => headers.filter((one) => one !== null));
const oddHeader: fc.Arbitrary<Header> = fc.oneof(
  header(
    'Content-Type',
    fc.oneof(fc.constantFrom('text/plain', 'application/json;', 'multipart/form-data; boundary=x'), oddText),
  ),
  header('Content-Encoding', fc.constantFrom('gzip', 'identity', 'br, gzip', '')),
  header('Expect', fc.constantFrom('100-continue', '200-ok', '')),
  header('Connection', fc.constantFrom('close', 'keep-alive', 'upgrade', 'close, upgrade', '\0')),
  header('Upgrade', fc.constantFrom('websocket', 'h2c', 'TLS/1.0')),
  header('Last-Event-ID', fc.oneof(fc.constantFrom('pending', 'ordered', 'paid'), oddText)),
  header('traceparent', fc.oneof(fc.constant(`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`), oddText)),
  header('Payment-Signature', fc.oneof(fc.constantFrom('t=1,v1=00', `t=1,v1=${'0'.repeat(64)}`), oddText)),
  header('X-Forwarded-For', fc.oneof(fc.constantFrom('127.0.0.1', '::1', '1.1.1.1, '.repeat(100)), oddText)),
  header(
    'Origin',
    fc.oneof(
      fc.constantFrom(ALLOWED_ORIGIN, `${ALLOWED_ORIGIN}.evil`, `${ALLOWED_ORIGIN}, https://evil`, 'null', '*'),
      oddText,
    ),
  ),
  header('Access-Control-Request-Method', fc.oneof(fc.constantFrom('POST', 'GET'), oddText)),
  header('Access-Control-Request-Headers', oddText),
  header('X-HTTP-Method-Override', fc.constantFrom('DELETE', 'POST')),
  header('Host', fc.oneof(fc.constantFrom('', 'evil', 'a, b', 'a:b:c'), oddText)),
  header('Authorization', oddText),
  header('Idempotency-Key', id),
  header('Cookie', fc.constant('a=b; '.repeat(500))),
  fc.tuple(fc.constantFrom(...MAGIC_NAMES), oddText),
  fc.tuple(bytes(10), bytes(10)),
  fc.constantFrom<Header>(
    ...([
      ['X-Big', 'x'.repeat(KB_64)],
      ['x'.repeat(KB_64), '1'],
      ['X A', '1'],
      ['', '1'],
      ['X-A ', '1'],
    ] as const),
    ...([
      ['X-A', 'a\r\n b'],
      ['X-A', 'a\nX-B: 1'],
      ['X-A', 'a\rX-B: 1'],
      ['X-A', '\0'],
      [' X-A', '1'],
      ['X-A\0', '1'],
    ] as const),
  ),
  fc
    .constantFrom(300, 3000)
    .map((count): Header => [`X-0`, Array.from({ length: count }, (_, i) => `1\r\nX-${i}: 1`).join('')]),
);

/** States the length of the body, correctly or ambiguously. */
type Framing = (body: string | number) => { readonly headers: readonly Header[]; readonly body: string | number };
const lengthOf = (content: string | number): number => (typeof content === 'string' ? content.length : content);
const chunked = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;
const rightly: Framing = (content) => ({ headers: [['Content-Length', String(lengthOf(content))]], body: content });
const inChunks: Framing = (content) => ({
  headers: [['Transfer-Encoding', 'chunked']],
  body: typeof content === 'string' ? chunked(content) : content,
});
const smuggled = (key: string): string =>
  `POST ${PURCHASE} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${GOOD_TOKEN_HERE}\r\nIdempotency-Key: ${SMUGGLED}-${key}\r\nContent-Length: 2\r\n\r\n{}`;
/** Placeholder for a valid token of a buyer. */
export const GOOD_TOKEN_HERE = '@token@';
/** Hides a second request that only a lenient server would carry out. */
const disputed = fc
  .tuple(
    goodId,
    fc.constantFrom<readonly Header[]>(
      [
        ['Content-Length', '4'],
        ['Transfer-Encoding', 'chunked'],
      ],
      [
        ['Transfer-Encoding', 'chunked'],
        ['Content-Length', '4'],
      ],
      [
        ['Content-Length', '4'],
        ['Content-Length', '5'],
      ],
      [['Content-Length', '4, 5']],
      [
        ['Content-Length', '4'],
        ['Transfer-Encoding', 'xchunked'],
      ],
      [['Transfer-Encoding', 'chunked, identity']],
      [
        ['Transfer-Encoding', 'identity, chunked'],
        ['Content-Length', '4'],
      ],
      [
        ['Transfer-Encoding\t', 'chunked'],
        ['Content-Length', '4'],
      ],
      [
        ['Transfer-Encoding', 'chunked\r\n\tx'],
        ['Content-Length', '4'],
      ],
      [['Content-Length', '+4']],
      [['Content-Length', '-4']],
      [['Content-Length', '0x4']],
      [['Content-Length', '4e0']],
      [['Content-Length', '99999999999999999999']],
      [['Content-Length', '4\r\n 0']],
      [['Content-Length', '']],
      [['Content-Length\0', '4']],
    ),
  )
  .map(([key, headers]): Framing => () => ({ headers, body: `0\r\n\r\n${smuggled(key)}` }));
const badChunks = fc
  .constantFrom(
    'zz\r\n{}\r\n0\r\n\r\n',
    '-2\r\n{}\r\n',
    'ffffffffffffffffff\r\n{}',
    '2;x=y\r\n{}\r\n0\r\n\r\n',
    `2;${'x'.repeat(20_000)}\r\n{}`,
    '2\n{}\n0\n\n',
    '3\r\n{}\r\n',
    '0\r\n__proto__: x\r\n\r\n',
  )
  .map((text): Framing => () => ({ headers: [['Transfer-Encoding', 'chunked']], body: text }));
const wrongLength = fc.integer({ min: -3, max: 30 }).map((off): Framing => (content) => ({
  headers: [['Content-Length', String(Math.max(0, lengthOf(content) + off))]],
  body: content,
}));
const framing = fc.oneof(
  { arbitrary: fc.constant(rightly), weight: 30 },
  { arbitrary: fc.constant(inChunks), weight: 2 },
  { arbitrary: disputed, weight: 3 },
  badChunks,
  wrongLength,
);

const then = fc.oneof(
  { arbitrary: fc.constant('waits' as const), weight: 12 },
  fc.constantFrom('closes_its_side' as const, 'resets' as const),
);

/** Generates a request of an admin or a buyer with dishonest parts. */
function request(authorization: fc.Arbitrary<string>): fc.Arbitrary<Sent> {
  const parts = fc.record({
    asked,
    framing,
    then,
    content: fc.oneof({ arbitrary: body, weight: 80 }, junk),
    usual: usualHeaders(authorization),
    odd: fc.oneof({ arbitrary: fc.constant([]), weight: 5 }, fc.array(oddHeader, { minLength: 1, maxLength: 3 })),
    version: fc.oneof(
      { arbitrary: fc.constant('HTTP/1.1'), weight: 30 },
      fc.constantFrom('HTTP/1.0', 'HTTP/2.0', 'HTTP/1.2', 'HTTP/9.9', 'X/1', ''),
    ),
    lineEnd: fc.oneof({ arbitrary: fc.constant('\r\n'), weight: 30 }, fc.constantFrom('\n', '\r')),
  });
  return parts.map(({ asked: [verb, address], version, lineEnd, framing: frame, usual, odd, then: end, content }) => {
    const framed = frame(content);
    const hasBody = verb !== 'GET' || framed.body !== '';
    const headers: readonly Header[] = [['Host', 'localhost'], ...usual, ...odd, ...(hasBody ? framed.headers : [])];
    const lines = [
      `${verb} ${address} ${version}`,
      ...headers.map((one) => one.join(': ').replace(SALE_HERE, BUSY_SALE)),
    ];
    return { method: verb, head: lines.join(lineEnd) + lineEnd + lineEnd, body: framed.body, then: end };
  });
}

const reportTypes = fc.constantFrom('payment.succeeded', 'payment.refunded', 'payment.disputed', 'refund.failed');

/** A message with a valid signature and any body. */
const signedWebhook: fc.Arbitrary<Sent> = fc
  .oneof(
    fc.oneof(poison, nested(2000), fc.json().map(asBytes)),
    fc
      .tuple(reportTypes, id, id, fc.oneof(fc.integer(), fc.constantFrom(1999, 1e21, -1)), oddText)
      .map(([type, orderId, paymentId, amountCents, detail]) =>
        asBytes(
          JSON.stringify({
            type,
            detail,
            disputeId: paymentId,
            isOver: false,
            orderId,
            paymentId,
            amountCents,
            currency: 'EUR',
            live: true,
          }),
        ),
      ),
  )
  .map((content) => {
    const signature = signWebhook(WEBHOOK_SECRET, Buffer.from(content, 'latin1').toString('utf8'), Date.now());
    const head = ['POST /v1/payments/webhook HTTP/1.1', 'Host: localhost', `Payment-Signature: ${signature}`];
    return {
      method: 'POST',
      head: `${head.join('\r\n')}\r\nContent-Length: ${content.length}\r\n\r\n`,
      body: content,
      then: 'waits',
    };
  });

/** Requests whose address contains odd ids that no parser refuses. */
const oddAddress: fc.Arbitrary<Sent> = fc
  .tuple(fc.constantFrom(...operations), oddText, fc.constantFrom('u1', 'ann'), goodId)
  .map(([[verb, route], odd, userId, key]) => {
    const address = route.replace(/\{\w+\}/g, encodeURIComponent(odd));
    const token = `Bearer ${createTokenSigner(SECRET)({ userId, roles: ['admin'], ttlMs: 3_600_000 })}`;
    const head = [
      `${verb} ${address} HTTP/1.1`,
      'Host: localhost',
      `Authorization: ${token}`,
      `Idempotency-Key: ${key}`,
    ];
    return { method: verb, head: `${head.join('\r\n')}\r\nContent-Length: 0\r\n\r\n`, body: '', then: 'waits' };
  });

/** Bytes that are not a request. */
const noise: fc.Arbitrary<Sent> = bytes(300).map((head) => ({ method: '', head, body: '', then: 'closes_its_side' }));

/** Generates every kind of hostile request. */
export const hostileRequests = (): fc.Arbitrary<Sent> =>
  fc.oneof(
    { arbitrary: request(authorizations(SECRET)), weight: 18 },
    { arbitrary: oddAddress, weight: 2 },
    signedWebhook,
    noise,
  );
