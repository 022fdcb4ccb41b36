import { expect } from 'chai';
import request from 'supertest';
import type { OrderPage } from '../../../../src/core/ports/order-search.js';
import { bearer, FakeServices, ORDER, startServer, type Started } from '../../http/http-harness.js';

describe('order lists over HTTP', () => {
  let server: Started;
  let page: OrderPage | null;
  /** Filter, cursor and page size of each request. */
  let asked: unknown[];
  beforeEach(async () => {
    asked = [];
    page = { orders: [ORDER], next: '98' };
    const orderSearch = {
      page: async (...terms: unknown[]) => (asked.push(terms), page),
      currenciesOf: async () => new Map(),
      detailsOf: async () => new Map(),
    };
    server = await startServer(new FakeServices({ orderSearch }));
  });
  afterEach(() => server.stop());
  const get = (path: string, token: string): request.Test =>
    request(path.startsWith('/admin') ? server.operatorsUrl : server.url)
      .get(path)
      .set('authorization', token);

  it('returns buyers their own orders page by page, and no order of another buyer [S4]', async () => {
    const { body } = await get('/v1/me/orders?after=99&limit=5', bearer('ann')).expect(200);
    expect(asked).to.deep.equal([[{ userId: 'ann' }, '99', 5]]);
    expect(body.next).to.equal('98');
    expect(body.orders[0]).to.include({ orderId: '99', state: 'pending_payment' });
    expect(body.orders[0]).not.to.have.any.keys('userId', 'batchId');
    await get('/v1/me/orders?user=bob', bearer('ann')).expect(400);
    await request(server.url).get('/v1/me/orders').expect(401);
    expect(asked).to.have.length(1);
  });

  it('lets an operator filter orders by user, sale, state and time, but not a buyer [S4]', async () => {
    const path = '/admin/v1/orders?user=u1&sale=7&state=paid&from=2030-01-01T00:00:00Z&to=2030-01-02T00:00:00Z';
    const { body } = await get(path, bearer('boss', ['viewer', 'admin'])).expect(200);
    const [fromMs, toMs] = [Date.UTC(2030, 0, 1), Date.UTC(2030, 0, 2)];
    expect((asked[0] as unknown[]).slice(0, 2)).to.deep.equal([
      { userId: 'u1', saleId: '7', state: 'paid', fromMs, toMs },
      null,
    ]);
    expect(body.orders[0]).to.include({ userId: 'u1', batchId: 'b1' });
    await get('/admin/v1/orders?paidFrom=2030-01-01T00:00:00Z', bearer('boss', ['viewer'])).expect(200);
    expect((asked.pop() as unknown[])[0]).to.deep.equal({ paidFromMs: fromMs });
    await get(path, bearer('ann')).expect(403);
    await get('/admin/v1/orders?state=paid', bearer('boss', ['viewer', 'admin'])).expect(400);
    expect(asked, 'by state alone it would read all orders').to.have.length(1);
  });

  it('returns 400 if the query is not UTF-8', async () => {
    for (const after of ['%FF', '%ED%A0%80', '%zz', '%']) {
      const { body } = await get(`/v1/me/orders?after=${after}`, bearer('ann')).expect(400);
      expect(body.detail, after).to.equal('The address is not well-formed.');
    }
    expect(asked).to.deep.equal([]);
  });

  it('returns 400 for a cursor that no page returned', async () => {
    page = null;
    await get('/v1/me/orders?after=nowhere', bearer('ann')).expect(400);
  });
});
