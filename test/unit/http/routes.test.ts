import { expect } from 'chai';
import request from 'supertest';
import { OperationalError } from '../../../src/core/errors.js';
import type { AddressShare } from '../../../src/core/places.js';
import type { ShownOrder } from '../../../src/core/order.js';
import { newLifecycle } from '../../../src/http/answer.js';
import { createBuyersListener } from '../../../src/http/app.js';
import type { PurchaseQuery } from '../../../src/purchase/get-purchase.js';
import { ROUTES } from '../../../src/programs/routes.js';
import { SALE_CACHING } from '../../../src/http/routes/sale-page.js';
import type { HttpServices } from '../../../src/http/services.js';
import type { SaleView } from '../../../src/sales/get-sale.js';
import { partial } from '../../helpers/partial.js';
import { AT_MS, bearer, FakeServices, ORDER, RawClient, startServer, until, type Started } from './http-harness.js';

const VIEW: SaleView = {
  saleId: '7',
  sku: 's',
  title: 'Café',
  priceCents: 999,
  currency: 'EUR',
  limitPerBuyer: 1,
  paymentWindowMs: 600_000,
  state: 'open',
  stock: 'few',
  opensAtMs: AT_MS,
  closesAtMs: AT_MS + 1000,
  nowMs: AT_MS + 1,
};

describe('routes', () => {
  it('refuse a reversed time range and a nonsensical year', async () => {
    fake = new FakeServices();
    server = await startServer(fake);
    const asked: string[] = [];
    for (const { method, path, query } of ROUTES) {
      const { shape = {} } = (query ?? {}) as { readonly shape?: object };
      for (const [from, to] of [
        ['from', 'to'],
        ['since', 'until'],
        ['opensFrom', 'opensTo'],
      ] as const) {
        if (!(from in shape && to in shape)) continue;
        asked.push(path);
        for (const [begin, end, sentence] of [
          ['2030-01-02T00:00:00Z', '2030-01-01T00:00:00Z', `${to} must not be earlier than ${from}.`],
          ['0118-01-01T00:00:00Z', '2030-01-01T00:00:00Z', `${from} must be in the years 2000 to 2099.`],
        ]) {
          const url = `${server.operatorsUrl}${path.replace('{saleId}', '7')}?${from}=${begin}&${to}=${end}`;
          const { body } = await request(url)
            [method]('')
            .set('authorization', bearer('boss', ['viewer']))
            .expect(400);
          expect(body.detail, path).to.equal(sentence);
        }
      }
    }
    expect(asked).to.include.members(['/admin/v1/orders/export', '/admin/v1/sales/{saleId}/seconds']);
    expect(asked).to.have.length(6);
  });

  let fake: FakeServices;
  let server: Started | undefined;
  const serve = async (overrides: Partial<HttpServices> = {}): Promise<string> => {
    fake = new FakeServices(overrides);
    server = await startServer(fake);
    return server.url;
  };
  afterEach(() => server?.stop());

  describe('GET purchase', () => {
    const path = '/v1/sales/7/purchases/k1';

    it('returns 200 with the status of a known purchase, not cacheable', async () => {
      const url = await serve();
      for (const status of [
        { status: 'pending' },
        { status: 'ordered', orderId: '99', orderState: 'paid' },
        { status: 'failed', orderId: '99', reason: 'limit_reached' },
      ] as const) {
        fake.status = status;
        const { body, headers } = await request(url).get(path).set('authorization', bearer()).expect(200);
        expect(body).to.deep.equal({ requestId: 'k1', saleId: '7', ...status });
        expect(headers['cache-control']).to.equal('no-store');
      }
      expect(fake.counted).to.deep.equal(['pending', 'ordered', 'failed'].map((word) => `purchase_status ${word}`));
    });

    it("returns 404 when the purchase is not the buyer's, and 401 without a token [S4]", async () => {
      const url = await serve();
      fake.status = { status: 'not_found' };
      const { body } = await request(url).get(path).set('authorization', bearer()).expect(404);
      expect(body).to.include({ code: 'purchase_not_found', requestId: 'k1' });
      await request(url).get(path).expect(401).expect('www-authenticate', 'Bearer');
      expect(fake.bugs).to.deep.equal([]);
    });

    it('passes on a wait of 0 to 30 s, and returns 400 for any other wait', async () => {
      const queries: PurchaseQuery[] = [];
      const get = (query: PurchaseQuery): Promise<{ status: 'pending' }> => {
        queries.push(query);
        return Promise.resolve({ status: 'pending' });
      };
      const limitedAddress = (key: string): readonly AddressShare[] => [{ key, times: 1 }];
      const url = await serve({ getPurchase: { get }, limitedAddress });
      for (const wait of ['', '?wait=0', '?wait=30']) {
        await request(url)
          .get(path + wait)
          .set('authorization', bearer('u9'))
          .expect(200);
      }
      expect(queries.map(({ waitMs }) => waitMs)).to.deep.equal([0, 0, 30_000]);
      expect(queries[0]).to.include({ saleId: '7', requestId: 'k1', userId: 'u9' });
      expect(queries.map(({ shares }) => shares)).to.deep.equal([[], [], [{ key: '192.0.2.1', times: 1 }]]);
      for (const wait of ['31', '-1', '1.5', '', 'x', '1e1', '100', '1&wait=2']) {
        const { body } = await request(url).get(`${path}?wait=${wait}`).set('authorization', bearer()).expect(400);
        expect(body.detail, wait).to.contain('0 to 30');
      }
    });

    it('returns 400 if an id in the address is malformed [S6]', async () => {
      const url = await serve();
      for (const odd of ['/v1/sales/x/purchases/k1', '/v1/sales/7/purchases/a%20b', '/v1/sales/7/purchases/%7B7%7D']) {
        await request(url).get(odd).set('authorization', bearer()).expect(400);
      }
      await request(url)
        .get(`/v1/sales/7/purchases/${'k'.repeat(65)}`)
        .set('authorization', bearer())
        .expect(400);
    });

    it('keeps nothing of a poll in memory after its response', async () => {
      fake = new FakeServices();
      const lifecycle = newLifecycle();
      const listener = createBuyersListener(fake.api, lifecycle);
      await request(listener).get(path).set('authorization', bearer()).expect(200);
      expect(lifecycle.polls.size).to.equal(0);
    });

    it('ends a long poll if the client leaves [S7]', async () => {
      let signal: AbortSignal | undefined;
      const get = (query: PurchaseQuery): Promise<{ status: 'pending' }> => {
        signal = query.signal;
        return new Promise((resolve) => query.signal.addEventListener('abort', () => resolve({ status: 'pending' })));
      };
      await serve({ getPurchase: { get } });
      const client = await RawClient.to(server?.port as number);
      client.say(`GET ${path}?wait=30 HTTP/1.1`, 'Host: x', `Authorization: ${bearer()}`, '', '');
      await until(() => signal !== undefined);
      expect(signal?.aborted).to.equal(false);
      client.socket.destroy();
      await until(() => signal?.aborted === true);
    });
  });

  describe('GET sale', () => {
    it('returns 200 with ISO 8601 times, without a token', async () => {
      const url = await serve({ getSale: { get: () => Promise.resolve({ outcome: 'found', view: VIEW }) } });
      const { body } = await request(url).get('/v1/sales/7').expect(200);
      expect(body).to.deep.equal({
        saleId: '7',
        sku: 's',
        title: 'Café',
        priceCents: 999,
        currency: 'EUR',
        limitPerBuyer: 1,
        paymentWindow: '10m',
        state: 'open',
        stock: 'few',
        opensAt: '2030-01-01T00:00:00.000Z',
        closesAt: '2030-01-01T00:00:01.000Z',
        asksFor: [],
        serverTime: '2030-01-01T00:00:00.001Z',
        pollAfterMs: 10_000,
      });
    });

    it('lets caches keep the answer for a second, and answers 304 until the answer changes', async () => {
      let view: SaleView = VIEW;
      let needsToken = false;
      const url = await serve({
        getSale: { get: (_id, isExact) => Promise.resolve({ outcome: 'found', view: isExact ? { ...VIEW } : view }) },
        tokens: partial({ areIssued: () => needsToken }),
      });
      const read = (query = '', known = ''): request.Test =>
        request(url).get(`/v1/sales/7${query}`).set('if-none-match', known);
      const { headers, body } = await read().expect(200).expect('cache-control', SALE_CACHING);
      const etag = String(headers.etag);
      expect(etag).to.match(/^"[\w-]{22}"$/);
      const unchanged = await read('', `W/"old", W/${etag}`).expect(304).expect('cache-control', SALE_CACHING);
      expect([unchanged.headers.etag, unchanged.text]).to.deep.equal([etag, '']);
      await read('', '*').expect(304);
      expect(fake.counted).to.deep.equal(['sale found', 'sale unchanged', 'sale unchanged']);
      const fresh = await read('?fresh=1', etag).expect(200).expect('cache-control', 'no-store');
      expect([fresh.headers.etag, fresh.body]).to.deep.equal([undefined, body]);
      await read('?fresh=0').expect(400);
      for (const change of [() => (view = { ...VIEW, stock: 'none' }), () => (needsToken = true)]) {
        const before = String((await read()).headers.etag);
        change();
        await read('', before).expect(200);
      }
    });

    it('returns 404 or 503, not cacheable, if the sale is absent or loading', async () => {
      let outcome: 'not_found' | 'loading' = 'not_found';
      const url = await serve({ getSale: { get: () => Promise.resolve({ outcome }) } });
      const { headers } = await request(url).get('/v1/sales/7').expect(404);
      expect(headers['cache-control']).to.equal('no-store');
      outcome = 'loading';
      await request(url).get('/v1/sales/7').expect(503).expect('retry-after', '1');
      await request(url).get('/v1/sales/abc').expect(400);
    });
  });

  describe('GET order', () => {
    it('returns 200 to the buyer of the order, and 404 to others as for absent orders [S4]', async () => {
      const getOrder = (orderId: string, userId: string): Promise<ShownOrder | null> =>
        Promise.resolve(orderId === ORDER.orderId && userId === ORDER.userId ? ORDER : null);
      const url = await serve({ getOrder });
      const { body } = await request(url).get('/v1/orders/99').set('authorization', bearer()).expect(200);
      expect(body).to.deep.equal({
        orderId: '99',
        saleId: '7',
        requestId: 'k1',
        quantity: 2,
        amountCents: 1998,
        currency: 'EUR',
        metadata: null,
        state: 'pending_payment',
        reason: null,
        paidAt: null,
        refundedCents: 0,
        createdAt: '2030-01-01T00:00:00.000Z',
        expiresAt: '2030-01-01T00:01:00.000Z',
      });
      const foreign = await request(url).get('/v1/orders/99').set('authorization', bearer('u2')).expect(404);
      const absent = await request(url).get('/v1/orders/98').set('authorization', bearer('u2')).expect(404);
      expect(foreign.body).to.deep.equal(absent.body);
      await request(url).get('/v1/orders/99').expect(401);
      expect(fake.bugs).to.deep.equal([]);
      await request(url).get("/v1/orders/1'").set('authorization', bearer()).expect(400);
    });

    it('shows refunds that are or were owed, without the ids of the provider', async () => {
      const owed = { amountCents: 1998, reason: 'order_expired', state: 'due' } as const;
      const refundsOf = (orderId: string) => Promise.resolve([{ ...owed, orderId, paymentId: 'p1' }]);
      const url = await serve({ getOrder: () => Promise.resolve(ORDER), refundsOf });
      const { body } = await request(url).get('/v1/orders/99').set('authorization', bearer()).expect(200);
      expect(body.refunds).to.deep.equal([owed]);
    });
  });

  describe('errors', () => {
    it('return 503 with the dependency but without its message if it is down', async () => {
      const down = new OperationalError('mysql', 'ECONNREFUSED 10.0.0.7:3306', { retryable: true });
      const url = await serve({ getOrder: () => Promise.reject(down) });
      const { body } = await request(url).get('/v1/orders/99').set('authorization', bearer()).expect(503);
      expect(body).to.include({ code: 'unavailable', retryable: true, detail: 'mysql does not answer. Try again.' });
      expect(fake.bugs).to.deep.equal([]);
    });

    it('return 500 without detail for an unexpected error, and report it', async () => {
      const url = await serve({ isReady: () => Promise.reject(new TypeError('secret')) });
      const { text } = await request(url).get('/readyz').expect(500);
      expect(text).to.contain('"code":"internal"').and.not.contain('secret');
      expect(fake.bugs).to.have.length(1);
    });

    it('return 404 or 400 for an unknown or malformed address, and never report a bug [S6]', async () => {
      const url = await serve();
      for (const path of [
        '/',
        '/v1',
        '/v1/sales',
        '/v1/sales/7/',
        '/admin',
        '/metrics',
        '/Healthz',
        '/v1/sales/7/purchases/k1/x',
      ]) {
        const { body } = await request(url).get(path).expect(404);
        expect(body, path).to.include({ code: 'route_not_found' });
      }
      for (const path of ['/v1/sales/%zz', '/v1/orders/%c0%80', '/v1/sales/7/purchases/%']) {
        const { body } = await request(url).get(path).set('authorization', bearer()).expect(400);
        expect(body, path).to.include({ code: 'bad_request' });
      }
      expect(fake.bugs).to.deep.equal([]);
    });

    it('return 405 with Allow for another method', async () => {
      const url = await serve();
      await request(url).delete('/v1/sales/7').expect(405).expect('allow', 'GET, HEAD');
      const { operatorsUrl } = server as Started;
      await request(operatorsUrl).put('/admin/v1/sales').expect(405).expect('allow', 'POST, GET, HEAD');
      await request(operatorsUrl).get('/admin/v1/sales/7/open').expect(405).expect('allow', 'POST');
    });

    it('never name the server software in a header', async () => {
      const url = await serve();
      for (const path of ['/healthz', '/nope', '/v1/sales/7/purchases']) {
        const { headers } = await request(url).get(path);
        expect(headers).not.to.have.any.keys('x-powered-by', 'server', 'etag');
      }
      await request(url).get('/healthz').expect('x-content-type-options', 'nosniff');
    });
  });
});
