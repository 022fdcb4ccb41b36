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

  it('returns 202 with the request, its status and its status address if accepted', async () => {
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

  it('passes metadata unchanged, and treats an empty object as no metadata', async () => {
    expect((await ask({ body: '{"quantity":2,"metadata":{"cart":"42"}}' })).status).to.equal(202);
    expect((await ask({ body: '{"metadata":{}}' })).status).to.equal(202);
    expect(fake.entered.map(({ quantity, metadata }) => [quantity, metadata])).to.deep.equal([
      [2, { cart: '42' }],
      [1, undefined],
    ]);
  });

  it('returns 400 with a sentence and buys nothing if the metadata is invalid [S6]', async () => {
    for (const metadata of [null, 'x', ['x'], { a: 1 }, { 'a b': 'x' }, { a: 'x'.repeat(512) }]) {
      const { status, body } = await ask({ body: JSON.stringify({ metadata }) });
      expect([status, body.code], JSON.stringify(metadata)).to.deep.equal([400, 'bad_request']);
      expect(body.detail).to.match(/^metadata (must|has) /);
    }
    const polluted = await ask({ body: '{"metadata":{"__proto__":"x"}}' });
    expect([polluted.status, polluted.body.code]).to.deep.equal([400, 'bad_request']);
    expect(fake.entered).to.deep.equal([]);
  });

  it('returns 400 with a sentence and buys nothing if the text is not well-formed Unicode', async () => {
    const half = await ask({ body: '{"metadata":{"note":"\\ud83d"}}' });
    expect([half.status, half.body.detail]).to.deep.equal([
      400,
      'The body contains half a character (an unpaired surrogate); split strings only between characters.',
    ]);
    for (const bytes of [[0xff], [0xb9, 0xe3], [0xed, 0xa0, 0xbd], [0xc0, 0x80], [0xe9]]) {
      const body = new Uint8Array(
        Buffer.concat([Buffer.from('{"metadata":{"note":"'), Buffer.from(bytes), Buffer.from('"}}')]),
      );
      const bad = await ask({ body });
      expect([bad.status, bad.body.detail], String(bytes)).to.deep.equal([
        400,
        'The body is not UTF-8. Send JSON in UTF-8.',
      ]);
    }
    expect(fake.entered).to.deep.equal([]);
    expect((await ask({ body: '{"metadata":{"note":"\\ud83d\\udd8b 🖋"}}' })).status).to.equal(202);
  });

  for (const code of [...REFUSALS, 'outcome_unknown'] as const) {
    it(`answers ${code} of the gate with ${PROBLEMS[code].status} and the same code`, async () => {
      fake.enter = () => Promise.resolve({ outcome: code } as PurchaseOutcome);
      const { status, headers, body } = await ask();
      expect(status).to.equal(PROBLEMS[code].status);
      expect(headers.get('content-type')).to.equal('application/problem+json');
      expect(body).to.include({ code, status, requestId: 'k1', detail: PROBLEMS[code].detail });
      expect(body.retryable).to.equal(headers.has('retry-after'));
      expect(fake.counted).to.deep.equal([`purchase ${code}`]);
    });
  }

  it('returns the first response again if a held request is repeated', async () => {
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

  it('returns 200 with the order and its current state if an ordered request is repeated', async () => {
    const entry = { state: 'ordered', orderId: '99', quantity: 1 } as const;
    fake.enter = () => Promise.resolve({ outcome: 'replayed', entry });
    fake.status = { status: 'ordered', orderId: '99', orderState: 'paid' };
    const { status, body } = await ask();
    expect([status, body]).to.deep.equal([
      200,
      { requestId: 'k1', status: 'ordered', orderId: '99', orderState: 'paid' },
    ]);
  });

  it('returns 200 without the state if an ordered request is repeated while MySQL is down', async () => {
    const entry = { state: 'ordered', orderId: '99', quantity: 1 } as const;
    fake.enter = () => Promise.resolve({ outcome: 'replayed', entry });
    fake.statusFault = new OperationalError('mysql', 'ECONNREFUSED', { retryable: true });
    expect(await ask()).to.deep.include({
      status: 200,
      body: { requestId: 'k1', status: 'ordered', orderId: '99' },
    });
  });

  it('returns no final answer to a repeated ordered request whose row MySQL has lost', async () => {
    const entry = { state: 'ordered', orderId: '99', quantity: 1 } as const;
    fake.enter = () => Promise.resolve({ outcome: 'replayed', entry });
    fake.status = { status: 'pending' };
    expect(await ask()).to.deep.include({ status: 202, body: { requestId: 'k1', status: 'pending' } });
    fake.status = { status: 'not_found' };
    expect(await ask()).to.deep.include({ status: 503 });
  });

  for (const snapshot of ['ready', 'announced'] as const) {
    it(`returns the opening time of a sale that is ${snapshot}, with a spread Retry-After`, async () => {
      const opensAtMs = 3_600_000;
      fake.nowMs = () => 0;
      fake.snapshot = { snapshot, sale: saleOf({ saleId: '7', opensAtMs }) };
      fake.enter = () => Promise.resolve({ outcome: 'not_open' });
      const waits = new Set<number>();
      for (let i = 0; i < 20; i++) {
        const { status, headers, body } = await ask();
        expect([status, body.code, body.requestId]).to.deep.equal([409, 'not_open', 'k1']);
        const seconds = Number(headers.get('retry-after'));
        expect(seconds, 'never before the opening').to.be.within(3600, 3602);
        expect(body).to.include({ retryAfterMs: seconds * 1000, opensAt: '1970-01-01T01:00:00.000Z' });
        waits.add(seconds);
      }
      expect(waits.size, 'not all come back in one second').to.be.above(1);
      fake.nowMs = () => opensAtMs;
      const late = await ask();
      expect(late.headers.get('retry-after'), 'an operator or the keeper has yet to open it').to.equal('1');
      expect(late.body).not.to.have.property('opensAt');
    });
  }

  it('returns the right opening time when requests for two sales alternate', async () => {
    fake.enter = () => Promise.resolve({ outcome: 'not_open' });
    const opensAt = async (opensAtMs: number): Promise<unknown> => {
      fake.nowMs = () => opensAtMs - 1000;
      fake.snapshot = { snapshot: 'ready', sale: saleOf({ saleId: '7', opensAtMs }) };
      return (await ask()).body.opensAt;
    };
    for (let nth = 0; nth < 20; nth++) {
      expect([await opensAt(60_000), await opensAt(120_000)]).to.deep.equal([
        '1970-01-01T00:01:00.000Z',
        '1970-01-01T00:02:00.000Z',
      ]);
    }
  });

  it('returns 200 with the outcome of a released request, or 503 without its row', async () => {
    const entry = { state: 'released', orderId: '99', quantity: 1 } as const;
    fake.enter = () => Promise.resolve({ outcome: 'replayed', entry });
    fake.status = { status: 'ordered', orderId: '99', orderState: 'expired' };
    expect((await ask()).body).to.deep.equal({ requestId: 'k1', ...fake.status });
    fake.status = { status: 'not_found' };
    expect(await ask()).to.deep.include({ status: 503 });
  });

  it('returns 409 while the sold-out flag is set, even if the body never arrives', async () => {
    fake.early = 'sold_out';
    const client = await RawClient.to(server.port);
    const answer = await client.say(rawPurchase('', KEY, 'Content-Length: 14')).answer();
    expect(answer?.status).to.equal(409);
    expect(JSON.parse(answer?.body ?? '')).to.include({ code: 'sold_out', requestId: 'k1', retryable: false });
    expect(fake.asked).to.deep.equal(['7 u1']);
    expect(fake.entered).to.deep.equal([]);
    client.socket.destroy();
  });

  it('buys one unit if the body is missing, empty or an empty object', async () => {
    for (const body of [undefined, '', '{}', ' { } ']) await ask(body === undefined ? {} : { body });
    expect(fake.entered.map(({ quantity }) => quantity)).to.deep.equal([1, 1, 1, 1]);
  });

  it('returns 400 and skips the gate if the body is not a quantity [S4, S6]', async () => {
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

  it('returns 400 with the expected format if the key is missing, malformed or too long [S6]', async () => {
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

  it('returns 400 if the key appears twice, even with the same value [S6]', async () => {
    const client = await RawClient.to(server.port);
    expect((await client.say(rawPurchase('', KEY, KEY)).answer())?.status).to.equal(400);
    client.socket.destroy();
    expect(fake.entered).to.deep.equal([]);
  });

  it('returns 400 and closes the connection on NUL or a bare line feed in a header [S6]', async () => {
    for (const key of ['Idempotency-Key: a\0b', 'Idempotency-Key: a\rb']) {
      const client = await RawClient.to(server.port);
      const answer = await client.say(rawPurchase('', key)).answer();
      expect(answer?.status).to.equal(400);
      expect(JSON.parse(answer?.body ?? '')).to.include({ code: 'bad_request' });
      await client.end();
    }
    expect(fake.entered).to.deep.equal([]);
  });

  it('returns 400 if the sale id is malformed [S6]', async () => {
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

  it('returns 404 if the address only resembles a purchase', async () => {
    for (const path of [`${PATH}/`, `/V1/sales/7/purchases`, '/v1/sales/7/8/purchases', '/v1/purchases', `/x${PATH}`]) {
      const { status, body } = await ask({ path });
      expect([status, body.code], path).to.deep.equal([404, 'route_not_found']);
    }
    expect((await ask({ path: `${PATH}?x=1&y=/purchases` })).status).to.equal(202);
  });

  it('treats an absolute address, as sent by a proxy, as the same purchase', async () => {
    const client = await RawClient.to(server.port);
    client.say(rawPurchase('{}', KEY).replace('/v1', 'HTTP://shop.example:80/v1'));
    expect((await client.answer())?.status).to.equal(202);
    client.socket.destroy();
  });

  it('returns 405 with Allow for another method', async () => {
    for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const { status, headers, body } = await ask({ method });
      expect([status, headers.get('allow')], method).to.deep.equal([405, 'POST']);
      if (method !== 'HEAD') expect(body.code).to.equal('method_not_allowed');
    }
    expect(fake.asked).to.deep.equal([]);
  });

  it('returns 415 if the body is not plain JSON in UTF-8', async () => {
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

  it('returns 401 with a challenge and skips the gate without a valid token [S5]', async () => {
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

  it('returns 413 and closes the connection if the body has 10 MB [S6]', async () => {
    const { status, headers, body } = await ask({ body: ' '.repeat(10_000_000) });
    expect([status, body.code, headers.get('connection')]).to.deep.equal([413, 'payload_too_large', 'close']);
    expect(await ask({ body: `{}${' '.repeat(4094)}` })).to.include({ status: 202 });
    expect(await ask({ body: `{}${' '.repeat(4095)}` })).to.include({ status: 413 });
    expect(fake.entered).to.have.length(1);
  });

  it('returns 413 and closes the connection if a chunked body grows too large [S6]', async () => {
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

  it('accepts a small chunked body, even if the sale is sold out in memory', async () => {
    fake.early = 'sold_out';
    const client = await RawClient.to(server.port);
    client.say(rawPurchase('5\r\n{"qua\r\n9\r\nntity":3}\r\n0\r\n\r\n', KEY, 'Transfer-Encoding: chunked'));
    expect((await client.answer())?.status).to.equal(202);
    expect(fake.entered.map(({ quantity }) => quantity)).to.deep.equal([3]);
    client.socket.destroy();
  });

  it('counts every purchase attempt once, including chunked bodies and refusals from memory', async () => {
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

  it('returns 431 and closes the connection if the headers have 64 kB [S6]', async () => {
    const client = await RawClient.to(server.port);
    const answer = await client.say(rawPurchase('', KEY, `X-Long: ${'x'.repeat(65_536)}`)).answer();
    expect(answer?.status).to.equal(431);
    expect(JSON.parse(answer?.body ?? '')).to.include({ code: 'headers_too_large' });
    await client.end();
  });

  it('answers two pipelined purchases in order', async () => {
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

  it('skips the gate if the client leaves while it sends its body', async () => {
    const client = await RawClient.to(server.port);
    client.say(rawPurchase('{"quan', KEY, 'Content-Length: 14'));
    await until(() => fake.asked.length === 1);
    client.socket.destroy();
    expect(await ask({ headers: { 'idempotency-key': 'k2' } })).to.include({ status: 202 });
    expect(fake.entered.map(({ requestId }) => requestId)).to.deep.equal(['k2']);
  });

  it('finishes a running purchase although its client leaves', async () => {
    let release: () => void = () => undefined;
    fake.enter = () => new Promise((resolve) => (release = () => resolve({ outcome: 'accepted' })));
    const client = await RawClient.to(server.port);
    client.say(rawPurchase('{}', KEY));
    await until(() => fake.entered.length === 1);
    client.socket.destroy();
    await fetch(`${server.url}/healthz`); // The response proves that the server has seen the end of the connection.
    release();
    await until(() => fake.counted.includes('purchase accepted'));
    expect(fake.bugs).to.deep.equal([]);
  });

  it('returns 503 with the dependency, and reports no bug, while a server is down', async () => {
    fake.enter = () =>
      Promise.reject(new OperationalError('redis', 'connection refused at 10.0.0.7', { retryable: true }));
    const { status, headers, body } = await ask();
    expect([status, body.code, headers.get('retry-after')]).to.deep.equal([503, 'unavailable', '1']);
    expect(body.detail)
      .to.match(/^redis does not answer\. This attempt took nothing/)
      .and.not.contain('10.0.0.7');
    expect(fake.bugs).to.deep.equal([]);
  });

  it('returns 500 without detail for an unexpected error, and reports it', async () => {
    const bug = new Error('secret inner detail');
    fake.enter = () => Promise.reject(bug);
    const { status, body } = await ask();
    expect([status, body.code, body.requestId]).to.deep.equal([500, 'internal', 'k1']);
    expect(JSON.stringify(body)).not.to.contain('secret');
    expect(fake.bugs).to.deep.equal([bug]);
  });
});
