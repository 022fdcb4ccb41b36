import { expect } from 'chai';
import request from 'supertest';
import { Cors } from '../../../src/http/cors.js';
import { bearer, FakeServices, RawClient, rawPurchase, startServer, type Started } from './http-harness.js';

const SHOP = 'https://shop.example';
const OTHER = 'https://shop.example:8443';
const PURCHASES = '/v1/sales/7/purchases';

/** Origins of pages that are not allowed, or of programs that pretend to be a page. */
const HOSTILE = [
  'null',
  '*',
  'https://evil.example',
  'https://shop.example.evil.example',
  'https://evil-shop.example',
  'https://evil.example/https://shop.example',
  'https://shop.example@evil.example',
  'https://www.shop.example',
  'http://shop.example',
  'https://shop.example.',
  'https://shop.example:443',
  'https://shop.example:444',
  'https://shop.example/',
  'https://shop.example ,https://evil.example',
  'HTTPS://SHOP.EXAMPLE',
  'https://shop.exampl\u00e9',
  'shop.example',
  'file://',
  '__proto__',
  'constructor',
];

describe('cross-origin access', () => {
  let fake: FakeServices;
  let server: Started | undefined;
  const serve = async (cors: Cors | null = new Cors([SHOP, OTHER])): Promise<string> => {
    fake = new FakeServices({
      cors,
      getSale: { get: () => Promise.resolve({ outcome: 'not_found' }) },
      addressLimit: { isOn: true, refuses: (_address, endpoint) => endpoint !== 'other' }, // Every route limit refuses.
    });
    server = await startServer(fake);
    return server.url;
  };
  afterEach(() => server?.stop());

  const preflight = (url: string, origin: string, path = PURCHASES): request.Test =>
    request(url).options(path).set({
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type,idempotency-key',
    });
  const corsHeaders = (headers: Record<string, string>): string[] =>
    Object.keys(headers).filter((name) => name.startsWith('access-control-'));

  it('allows the headers of a purchase, but no credentials or signature headers', async () => {
    const url = await serve();
    for (const origin of [SHOP, OTHER]) {
      const { headers } = await preflight(url, origin).expect(204);
      expect(headers['access-control-allow-origin']).to.equal(origin);
      expect(headers['access-control-allow-methods']).to.equal('GET, POST');
      expect(headers['access-control-allow-headers']).to.equal(
        'Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Seckill-Cell, Seckill-Lane, Seckill-Purchase-Token, Seckill-Queue-Pass, traceparent',
      );
      expect(headers['access-control-max-age']).to.equal('7200');
      expect(headers).to.include({ vary: 'Origin', 'x-content-type-options': 'nosniff' });
      expect(headers).not.to.have.any.keys('access-control-allow-credentials', 'content-type', 'content-length');
    }
  });

  it('answers the preflight of any API path before every limit and layer', async () => {
    const url = await serve();
    for (const path of [
      PURCHASES,
      '/v1/sales/7',
      '/v1/orders/9/pay',
      '/v1/sales/7/purchases/k1/events?x=1',
      '/v1/nope',
    ]) {
      await preflight(url, SHOP, path).expect(204);
    }
    expect(fake.counted).to.deep.equal(Array(5).fill('preflight allowed'));
    expect(fake.seen, 'attempts to buy').to.deep.equal([]);
  });

  it('lets an allowed origin read the response, including a refusal with Retry-After', async () => {
    const url = await serve();
    const { headers, body } = await request(url)
      .post(PURCHASES)
      .set({ origin: SHOP, authorization: bearer(), 'idempotency-key': 'k1' })
      .expect(429);
    expect(body.code).to.equal('rate_limited');
    expect(headers).to.include({ 'access-control-allow-origin': SHOP, vary: 'Origin', 'retry-after': '1' });
    expect(headers['access-control-expose-headers']).to.equal('Age, Location, Retry-After, Trace-Id');
    expect(headers['content-type'], 'all its own headers are present').to.equal('application/problem+json');
    const { headers: missing } = await request(url).get('/v1/nope').set('origin', SHOP).expect(404);
    expect(missing['access-control-allow-origin']).to.equal(SHOP);
  });

  it('lets an allowed origin read an event stream', async () => {
    await serve();
    fake.services.addressLimit.refuses = () => false;
    (fake.services as { followPurchase: unknown }).followPurchase = {
      open: () =>
        Promise.resolve({
          outcome: 'following',
          async *steps() {
            yield { word: 'failed', status: { status: 'failed', orderId: '9', reason: 'limit_reached' } };
          },
          close: () => undefined,
        }),
    };
    await server?.stop();
    server = await startServer(fake);
    const { headers, text } = await request(server.url)
      .get(`${PURCHASES}/k1/events`)
      .set({ origin: SHOP, authorization: bearer() })
      .expect(200);
    expect(headers).to.include({ 'access-control-allow-origin': SHOP, 'content-type': 'text/event-stream' });
    expect(text).to.contain('event: failed');
  });

  for (const origin of HOSTILE) {
    it(`refuses the origin ${JSON.stringify(origin)} when it sends a purchase or reads a response`, async () => {
      await serve();
      const { port } = server as Started;
      const ask = async (...lines: string[]): Promise<{ status: number; headers: Map<string, string> }> => {
        const client = await RawClient.to(port);
        client.say([...lines, '', ''].join('\r\n'));
        const answer = await client.answer();
        client.socket.destroy();
        if (answer === null) throw new Error('no answer');
        return answer;
      };
      const asked = [`Origin: ${origin}`, 'Host: x'];
      const question = await ask(
        `OPTIONS ${PURCHASES} HTTP/1.1`,
        ...asked,
        'Access-Control-Request-Method: POST',
        'Access-Control-Request-Headers: authorization',
      );
      expect(question.status).to.equal(403);
      const sale = await ask('GET /v1/sales/7 HTTP/1.1', ...asked);
      for (const { headers } of [question, sale]) {
        expect([...headers.keys()].filter((name) => name.startsWith('access-control-'))).to.deep.equal([]);
        expect(headers.get('vary'), 'no cache may give this answer to an allowed page').to.equal('Origin');
      }
    });
  }

  it('allows no origin if a request has two', async () => {
    await serve();
    const client = await RawClient.to((server as Started).port);
    client.say(rawPurchase('', 'Idempotency-Key: k1', `Origin: ${SHOP}`, 'Origin: https://evil.example'));
    const answer = await client.answer();
    expect(answer?.headers.has('access-control-allow-origin')).to.equal(false);
    client.socket.destroy();
  });

  it('offers no cross-origin access to operator routes, probes and pages', async () => {
    const url = await serve();
    for (const path of ['/healthz', '/readyz', '/s/7']) {
      expect(corsHeaders((await request(url).get(path).set('origin', SHOP)).headers), path).to.deep.equal([]);
      expect((await preflight(url, SHOP, path)).status, path).to.be.oneOf([404, 405]);
    }
    const { operatorsUrl } = server as Started;
    const { status, headers } = await preflight(operatorsUrl, SHOP, '/admin/v1/sales');
    expect([status, corsHeaders(headers)]).to.deep.equal([405, []]);
  });

  it('answers OPTIONS with 405 if the request is not a preflight', async () => {
    const url = await serve();
    await request(url).options(PURCHASES).set('origin', SHOP).expect(405).expect('allow', 'POST');
    await request(url).options(PURCHASES).set('access-control-request-method', 'POST').expect(405);
  });

  it('adds no CORS header without an origin, except Vary on cacheable responses', async () => {
    const url = await serve();
    const bought = await request(url).post(PURCHASES).set({ authorization: bearer(), 'idempotency-key': 'k1' });
    expect(bought.headers).not.to.have.property('vary');
    expect(corsHeaders(bought.headers)).to.deep.equal([]);
    expect((await request(url).get('/v1/sales/7')).headers.vary).to.equal('Origin');
  });

  it('adds nothing when it is off, which is the default', async () => {
    const url = await serve(null);
    await preflight(url, SHOP).expect(405);
    await preflight(url, SHOP, '/v1/sales/7').expect(405);
    for (const answer of [
      await request(url).post(PURCHASES).set({ origin: SHOP, authorization: bearer(), 'idempotency-key': 'k1' }),
      await request(url).get('/v1/sales/7').set('origin', SHOP),
    ]) {
      expect(corsHeaders(answer.headers)).to.deep.equal([]);
      expect(answer.headers).not.to.have.property('vary');
    }
  });
});
