import { expect } from 'chai';
import { PROBLEMS } from '../../../src/contract/problem.js';
import { OperationalError } from '../../../src/core/errors.js';
import { REFUSALS, type PurchaseOutcome } from '../../../src/core/outcome.js';
import { saleOf } from '../../helpers/sales.js';
import { bearer, FakeServices, RawClient, rawPurchase, startServer, until } from './http-harness.js';
import type { Started } from './http-harness.js';

const PATH = '/v1/sales/7/purchases';
const KEY = 'Idempotency-Key: k1';

interface Ask {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
}

interface Received {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
}

describe('POST purchases', () => {
  let fake: FakeServices;
  let server: Started;

  beforeEach(async () => {
    fake = new FakeServices();
    server = await startServer(fake);
  });
  afterEach(() => server.stop());

  async function ask({ method = 'POST', path = PATH, headers = {}, body }: Ask = {}): Promise<Received> {
    const given = {
      authorization: bearer(),
      'idempotency-key': 'k1',
      'content-type': 'application/json',
      ...headers,
    };
    const sent = Object.entries(given).filter(([, value]) => value !== '');
    const response = await fetch(server.url + path, {
      method,
      headers: Object.fromEntries(sent),
      body: body ?? null,
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === '' ? {} : JSON.parse(text) };
  }

  it('when it is accepted, then 202 with the request, its status and where to ask', async () => {
    const { status, headers, body } = await ask({ body: '{"quantity":2}' });
    expect(status).to.equal(202);
    expect(body).to.deep.equal({ requestId: 'k1', status: 'pending' });
    expect(headers.get('location')).to.equal(`${PATH}/k1`);
    expect(headers.get('content-type')).to.equal('application/json');
    expect(fake.entered).to.deep.equal([
      { saleId: '7', userId: 'u1', requestId: 'k1', quantity: 2, metadata: undefined, traceId: undefined, span: null },
    ]);
    expect(fake.counted).to.deep.equal(['purchase accepted']);
    expect(fake.timed).to.deep.equal(['purchase ok']);
    expect(fake.bySale).to.deep.equal(['7 accepted']);
  });

  it('metadata goes along as it came; an empty one is none', async () => {
    expect((await ask({ body: '{"quantity":2,"metadata":{"cart":"42"}}' })).status).to.equal(202);
    expect((await ask({ body: '{"metadata":{}}' })).status).to.equal(202);
    expect(fake.entered.map(({ quantity, metadata }) => [quantity, metadata])).to.deep.equal([
      [2, { cart: '42' }],
      [1, undefined],
    ]);
  });

  it('metadata that is none is 400 with a sentence, and nothing is bought [S6]', async () => {
    for (const metadata of [null, 'x', ['x'], { a: 1 }, { 'a b': 'x' }, { a: 'x'.repeat(512) }]) {
      const { status, body } = await ask({ body: JSON.stringify({ metadata }) });
      expect([status, body.code], JSON.stringify(metadata)).to.deep.equal([400, 'bad_request']);
      expect(body.detail).to.match(/^metadata (must|has) /);
    }
    const polluted = await ask({ body: '{"metadata":{"__proto__":"x"}}' });
    expect([polluted.status, polluted.body.code]).to.deep.equal([400, 'bad_request']);
    expect(fake.entered).to.deep.equal([]);
  });

  it('text that is not whole Unicode is 400 with a sentence, and nothing is bought', async () => {
    const half = await ask({ body: '{"metadata":{"note":"\\ud83d"}}' });
    expect([half.status, half.body.detail]).to.deep.equal([
      400,
      'The body holds half of a character (an unpaired surrogate): cut texts between characters.',
    ]);
    for (const bytes of [[0xff], [0xb9, 0xe3], [0xed, 0xa0, 0xbd], [0xc0, 0x80], [0xe9]]) {
      const body = new Uint8Array(
        Buffer.concat([Buffer.from('{"metadata":{"note":"'), Buffer.from(bytes), Buffer.from('"}}')]),
      );
      const bad = await ask({ body });
      expect([bad.status, bad.body.detail], String(bytes)).to.deep.equal([
        400,
        'The body is not UTF-8: send JSON in UTF-8.',
      ]);
    }
    expect(fake.entered).to.deep.equal([]);
    expect((await ask({ body: '{"metadata":{"note":"\\ud83d\\udd8b 🖋"}}' })).status).to.equal(202);
  });

  for (const code of [...REFUSALS, 'outcome_unknown'] as const) {
    it(`when the gate answers ${code}, then ${PROBLEMS[code].status} with that code`, async () => {
      fake.enter = () => Promise.resolve({ outcome: code } as PurchaseOutcome);
      const { status, headers, body } = await ask();
      expect(status).to.equal(PROBLEMS[code].status);
      expect(headers.get('content-type')).to.equal('application/problem+json');
      expect(body).to.include({ code, status, requestId: 'k1', detail: PROBLEMS[code].detail });
      expect(body.retryable).to.equal(headers.has('retry-after'));
      expect(fake.counted).to.deep.equal([`purchase ${code}`]);
    });
  }

  it('when a held request is asked again, then the first answer comes again', async () => {
    const first = await ask();
    fake.enter = () =>
      Promise.resolve({
        outcome: 'replayed',
        entry: { state: 'held', batchId: 'b', quantity: 1 },
      } as PurchaseOutcome);
    const second = await ask();
    expect([second.status, second.body]).to.deep.equal([first.status, first.body]);
    expect(second.headers.get('location')).to.equal(first.headers.get('location'));
  });

  it('when an ordered request is asked again, then 200 with the order and its state, as a payment has left it', async () => {
    const entry = { state: 'ordered', orderId: '99', quantity: 1 } as const;
    fake.enter = () => Promise.resolve({ outcome: 'replayed', entry });
    fake.status = { status: 'ordered', orderId: '99', orderState: 'paid' };
    const { status, body } = await ask();
    expect([status, body]).to.deep.equal([
      200,
      { requestId: 'k1', status: 'ordered', orderId: '99', orderState: 'paid' },
    ]);
  });

  it('when an ordered request is asked again while MySQL is out, then 200 without the state', async () => {
    const entry = { state: 'ordered', orderId: '99', quantity: 1 } as const;
    fake.enter = () => Promise.resolve({ outcome: 'replayed', entry });
    fake.statusFault = new OperationalError('mysql', 'ECONNREFUSED', { retryable: true });
    expect(await ask()).to.deep.include({
      status: 200,
      body: { requestId: 'k1', status: 'ordered', orderId: '99' },
    });
  });

  it('when an ordered request is asked again and MySQL has lost its row, then nothing final is said', async () => {
    const entry = { state: 'ordered', orderId: '99', quantity: 1 } as const;
    fake.enter = () => Promise.resolve({ outcome: 'replayed', entry });
    fake.status = { status: 'pending' };
    expect(await ask()).to.deep.include({ status: 202, body: { requestId: 'k1', status: 'pending' } });
    fake.status = { status: 'not_found' };
    expect(await ask()).to.deep.include({ status: 503 });
  });

  it('when the sale opens in an hour, then Retry-After says so, up to two seconds later for some', async () => {
    const opensAtMs = 3_600_000;
    fake.nowMs = () => 0;
    fake.snapshot = { snapshot: 'ready', sale: saleOf({ saleId: '7', opensAtMs }) };
    fake.enter = () => Promise.resolve({ outcome: 'not_open' });
    const waits = new Set<number>();
    for (let i = 0; i < 20; i++) {
      const { status, headers, body } = await ask();
      expect([status, body.code, body.requestId]).to.deep.equal([409, 'not_open', 'k1']);
      const seconds = Number(headers.get('retry-after'));
      expect(seconds, 'never before the opening').to.be.within(3600, 3602);
      expect(body.retryAfterMs).to.equal(seconds * 1000);
      waits.add(seconds);
    }
    expect(waits.size, 'not all come back in one second').to.be.above(1);
    fake.nowMs = () => opensAtMs;
    expect((await ask()).headers.get('retry-after'), 'an operator has yet to open it').to.equal('1');
  });

  it('when a released request is asked again, then 200 with how it ended, or 503 while MySQL has no row of it', async () => {
    const entry = { state: 'released', orderId: '99', quantity: 1 } as const;
    fake.enter = () => Promise.resolve({ outcome: 'replayed', entry });
    fake.status = { status: 'ordered', orderId: '99', orderState: 'expired' };
    expect((await ask()).body).to.deep.equal({ requestId: 'k1', ...fake.status });
    fake.status = { status: 'not_found' };
    expect(await ask()).to.deep.include({ status: 503 });
  });

  it('when a sold-out flag stands, then 409 although the body never comes', async () => {
    fake.early = 'sold_out';
    const client = await RawClient.to(server.port);
    const answer = await client.say(rawPurchase('', KEY, 'Content-Length: 14')).answer();
    expect(answer?.status).to.equal(409);
    expect(JSON.parse(answer?.body ?? '')).to.include({ code: 'sold_out', requestId: 'k1', retryable: false });
    expect(fake.asked).to.deep.equal(['7 u1']);
    expect(fake.entered).to.deep.equal([]);
    client.socket.destroy();
  });

  it('when the body is missing, empty or an empty object, then one unit', async () => {
    for (const body of [undefined, '', '{}', ' { } ']) await ask(body === undefined ? {} : { body });
    expect(fake.entered.map(({ quantity }) => quantity)).to.deep.equal([1, 1, 1, 1]);
  });

  it('when the body is anything but a quantity, then 400 and nothing is asked of the gate [S4, S6]', async () => {
    const bodies = ['nonsense', 'null', '[]', '7', '"x"', '{"quantity":1', '\u0000', '{"quantity":1}\u0000'];
    for (const quantity of ['0', '-1', '1.5', '1001', '"1"', 'null', '1e9', 'true', '[1]']) {
      bodies.push(`{"quantity":${quantity}}`);
    }
    for (const field of ['__proto__', 'constructor', 'userId', 'saleId', 'Quantity', '', 'a'.repeat(900)]) {
      bodies.push(JSON.stringify({ quantity: 1 }).replace('{', `{${JSON.stringify(field)}:{"quantity":1},`));
    }
    for (const body of bodies) {
      const answer = await ask({ body });
      expect(answer.status, body).to.equal(400);
      expect(answer.body, body).to.include({ code: 'bad_request', requestId: 'k1' });
    }
    expect(fake.entered).to.deep.equal([]);
    expect((await ask({ body: '{"userId":"u2"}' })).body.detail).to.contain('token');
  });

  it('when the key is missing, odd or too long, then 400 that says the shape [S6]', async () => {
    const odd = [
      '',
      ' ',
      'a b',
      'a"b',
      "a'b",
      'a{b}',
      'a:b',
      'ü',
      'a/b',
      '../k',
      'x'.repeat(65),
      'x'.repeat(10_000),
      'a,b',
    ];
    for (const key of odd) {
      const { status, body } = await ask({ headers: { 'idempotency-key': key } });
      expect(status, key).to.equal(400);
      expect(body).to.include({ code: 'bad_request', requestId: null });
      expect(body.detail).to.contain('1 to 64');
    }
    expect(fake.asked).to.deep.equal([]);
    expect((await ask({ headers: { 'idempotency-key': 'Az09_-'.repeat(10) } })).status).to.equal(202);
  });

  it('when the key is given twice, even the same, then 400 [S6]', async () => {
    const client = await RawClient.to(server.port);
    expect((await client.say(rawPurchase('', KEY, KEY)).answer())?.status).to.equal(400);
    client.socket.destroy();
    expect(fake.entered).to.deep.equal([]);
  });

  it('when a header holds NUL or a bare line feed, then 400 and the connection ends [S6]', async () => {
    for (const key of ['Idempotency-Key: a\0b', 'Idempotency-Key: a\rb']) {
      const client = await RawClient.to(server.port);
      const answer = await client.say(rawPurchase('', key)).answer();
      expect(answer?.status).to.equal(400);
      expect(JSON.parse(answer?.body ?? '')).to.include({ code: 'bad_request' });
      await client.end();
    }
    expect(fake.entered).to.deep.equal([]);
  });

  it('when the sale id is odd, then 400 [S6]', async () => {
    const odd = [
      '0',
      '07',
      '-1',
      'x',
      '7%0a',
      '%37',
      "7'",
      '7%7b1%7d',
      '%00',
      '%zz',
      '9'.repeat(19),
      'x'.repeat(10_000),
      '',
    ];
    for (const saleId of odd) {
      const { status, body } = await ask({ path: `/v1/sales/${saleId}/purchases` });
      expect(status, saleId).to.equal(400);
      expect(body).to.include({ code: 'bad_request' });
    }
    expect(fake.asked).to.deep.equal([]);
  });

  it('when the address only resembles that of a purchase, then 404', async () => {
    for (const path of [`${PATH}/`, `/V1/sales/7/purchases`, '/v1/sales/7/8/purchases', '/v1/purchases', `/x${PATH}`]) {
      const { status, body } = await ask({ path });
      expect([status, body.code], path).to.deep.equal([404, 'route_not_found']);
    }
    expect((await ask({ path: `${PATH}?x=1&y=/purchases` })).status).to.equal(202);
  });

  it('when a proxy sends the whole address, then it is the same purchase', async () => {
    const client = await RawClient.to(server.port);
    client.say(rawPurchase('{}', KEY).replace('/v1', 'HTTP://shop.example:80/v1'));
    expect((await client.answer())?.status).to.equal(202);
    client.socket.destroy();
  });

  it('when the method is another, then 405 with Allow', async () => {
    for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const { status, headers, body } = await ask({ method });
      expect([status, headers.get('allow')], method).to.deep.equal([405, 'POST']);
      if (method !== 'HEAD') expect(body.code).to.equal('method_not_allowed');
    }
    expect(fake.asked).to.deep.equal([]);
  });

  it('when the body is not plain JSON in UTF-8, then 415', async () => {
    for (const type of [
      'application/json; charset=gbk',
      'application/json;charset="ISO-8859-1"',
      'application/json; charset=utf-16',
      'application/json; charset=utf-8; charset=gbk',
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/jsonx',
      'xapplication/json',
    ]) {
      expect((await ask({ headers: { 'content-type': type }, body: '{}' })).status, type).to.equal(415);
    }
    expect((await ask({ headers: { 'content-encoding': 'gzip' }, body: '{}' })).status).to.equal(415);
    for (const type of [
      'application/json; charset=utf-8',
      'application/json;Charset="UTF-8"',
      'APPLICATION/JSON',
      'application/json ;x=y',
    ]) {
      expect((await ask({ headers: { 'content-type': type }, body: '{}' })).status, type).to.equal(202);
    }
    const client = await RawClient.to(server.port);
    expect((await client.say(rawPurchase('{}', KEY)).answer())?.status, 'no type').to.equal(202);
    client.socket.destroy();
  });

  it('when the token is missing or bad, then 401 with a challenge, and the gate is not called [S5]', async () => {
    const missing = await ask({ headers: { authorization: '' } });
    expect([missing.status, missing.headers.get('www-authenticate')]).to.deep.equal([401, 'Bearer']);
    for (const authorization of ['Bearer', 'Bearer x.y.z', 'Basic dTpw', `${bearer()}x`, 'Bearer '.repeat(40)]) {
      const { status, headers, body } = await ask({ headers: { authorization } });
      expect([status, body.code], authorization).to.deep.equal([401, 'unauthorized']);
      expect(headers.get('www-authenticate')).to.match(/^Bearer/);
    }
    expect(fake.asked).to.deep.equal([]);
    expect(fake.entered).to.deep.equal([]);
  });

  it('when the body has 10 MB, then 413 and the connection is closed [S6]', async () => {
    const { status, headers, body } = await ask({ body: ' '.repeat(10_000_000) });
    expect([status, body.code, headers.get('connection')]).to.deep.equal([413, 'payload_too_large', 'close']);
    expect(await ask({ body: `{}${' '.repeat(4094)}` })).to.include({ status: 202 });
    expect(await ask({ body: `{}${' '.repeat(4095)}` })).to.include({ status: 413 });
    expect(fake.entered).to.have.length(1);
  });

  it('when a chunked body grows too large, then 413 and the connection is closed [S6]', async () => {
    const client = await RawClient.to(server.port);
    client.say(rawPurchase('', KEY, 'Transfer-Encoding: chunked'));
    client.say('2', '{}', '');
    for (let i = 0; i < 20; i++) client.say('400', ' '.repeat(0x400), '');
    const answer = await client.answer();
    expect([answer?.status, answer?.headers.get('connection')]).to.deep.equal([413, 'close']);
    client.say('0', '', '');
    await client.end();
    expect(fake.entered).to.deep.equal([]);
  });

  it('when a chunked body is small, then it is a purchase, also while sold_out stands in memory', async () => {
    fake.early = 'sold_out';
    const client = await RawClient.to(server.port);
    client.say(rawPurchase('5\r\n{"qua\r\n9\r\nntity":3}\r\n0\r\n\r\n', KEY, 'Transfer-Encoding: chunked'));
    expect((await client.answer())?.status).to.equal(202);
    expect(fake.entered.map(({ quantity }) => quantity)).to.deep.equal([3]);
    client.socket.destroy();
  });

  it('every attempt to buy is counted once, also one with a chunked body or refused from memory', async () => {
    const client = await RawClient.to(server.port);
    client.say(rawPurchase('2\r\n{}\r\n0\r\n\r\n', KEY, 'Transfer-Encoding: chunked'));
    expect((await client.answer())?.status).to.equal(202);
    client.socket.destroy();
    await ask();
    fake.early = 'sold_out';
    await ask();
    expect(fake.seen).to.have.length(3);
    expect(new Set(fake.seen).size).to.equal(1);
  });

  it('when the headers have 64 kB, then 431 and the connection is closed [S6]', async () => {
    const client = await RawClient.to(server.port);
    const answer = await client.say(rawPurchase('', KEY, `X-Long: ${'x'.repeat(65_536)}`)).answer();
    expect(answer?.status).to.equal(431);
    expect(JSON.parse(answer?.body ?? '')).to.include({ code: 'headers_too_large' });
    await client.end();
  });

  it('when two purchases are pipelined, then both are answered, in order', async () => {
    let release: () => void = () => undefined;
    const slow = new Promise<void>((resolve) => (release = resolve));
    fake.enter = async ({ requestId }) => {
      if (requestId === 'first') await slow;
      return requestId === 'first' ? { outcome: 'accepted' } : { outcome: 'limit_reached' };
    };
    const client = await RawClient.to(server.port);
    client.say(rawPurchase('{}', 'Idempotency-Key: first') + rawPurchase('{"quantity":2}', 'Idempotency-Key: second'));
    await until(() => fake.entered.length === 2);
    release();
    expect((await client.answer())?.status).to.equal(202);
    expect(JSON.parse((await client.answer())?.body ?? '')).to.include({
      code: 'limit_reached',
      requestId: 'second',
    });
    client.socket.destroy();
  });

  it('when the client leaves in the middle of its body, then the gate is not called', async () => {
    const client = await RawClient.to(server.port);
    client.say(rawPurchase('{"quan', KEY, 'Content-Length: 14'));
    await until(() => fake.asked.length === 1);
    client.socket.destroy();
    expect(await ask({ headers: { 'idempotency-key': 'k2' } })).to.include({ status: 202 });
    expect(fake.entered.map(({ requestId }) => requestId)).to.deep.equal(['k2']);
  });

  it('when the client leaves while its purchase is under way, then the purchase ends and nothing breaks', async () => {
    let release: () => void = () => undefined;
    fake.enter = () => new Promise((resolve) => (release = () => resolve({ outcome: 'accepted' })));
    const client = await RawClient.to(server.port);
    client.say(rawPurchase('{}', KEY));
    await until(() => fake.entered.length === 1);
    client.socket.destroy();
    await fetch(`${server.url}/healthz`); // by its answer the server has seen the end of the connection
    release();
    await until(() => fake.counted.includes('purchase accepted'));
    expect(fake.bugs).to.deep.equal([]);
  });

  it('when a dependency is down, then 503 unavailable names it and no bug is reported', async () => {
    fake.enter = () =>
      Promise.reject(new OperationalError('redis', 'connection refused at 10.0.0.7', { retryable: true }));
    const { status, headers, body } = await ask();
    expect([status, body.code, headers.get('retry-after')]).to.deep.equal([503, 'unavailable', '1']);
    expect(body.detail)
      .to.match(/^redis does not answer; this try took nothing/)
      .and.not.contain('10.0.0.7');
    expect(fake.bugs).to.deep.equal([]);
  });

  it('when something unforeseen happens, then 500 without detail, and it is reported', async () => {
    const bug = new Error('secret inner detail');
    fake.enter = () => Promise.reject(bug);
    const { status, body } = await ask();
    expect([status, body.code, body.requestId]).to.deep.equal([500, 'internal', 'k1']);
    expect(JSON.stringify(body)).not.to.contain('secret');
    expect(fake.bugs).to.deep.equal([bug]);
  });
});
