import { expect } from 'chai';
import { connect, type Socket } from 'node:net';
import { OperationalError } from '../../../../src/core/errors.js';
import type { ShownOrder } from '../../../../src/core/order.js';
import type { OrderFilter, OrderPage } from '../../../../src/core/ports/order-search.js';
import type { FoundOrder } from '../../../../src/contract/orders.js';
import { foundOrderBodies, lineOf } from '../../../../src/operate/orders/order-pages.js';
import { bearer, FakeServices, ORDER, startServer, until, type Started } from '../../http/http-harness.js';
import { pause } from '../../../chaos/harness/wait.js';

const HEADING =
  'orderId,saleId,userId,requestId,batchId,quantity,amountCents,currency,state,reason,createdAt,expiresAt,paidAt,metadata,sku,title,unitPriceCents,paymentId,refundedCents\n';
const LINE =
  '99,7,u1,k1,b1,2,1998,EUR,pending_payment,,2030-01-01T00:00:00.000Z,2030-01-01T00:01:00.000Z,,,mug,A mug,999,pay_1,0\n';
const DETAILS = new Map([['99', { sku: 'mug', title: 'A mug', paymentId: 'pay_1' }]]);
const line = async (order: ShownOrder, format: 'csv' | 'jsonl'): Promise<string> => {
  const [body] = await foundOrderBodies([order], { detailsOf: async () => DETAILS });
  return lineOf(body as FoundOrder, format);
};
const ADMIN = bearer('root', ['admin']);

describe('order export', () => {
  describe('one line', () => {
    it('has a CSV cell for each field, or the body of the search as JSON', async () => {
      expect(await line(ORDER, 'csv')).to.equal(LINE);
      const item = { sku: 'mug', title: 'A mug', unitPriceCents: 999, paymentId: 'pay_1' };
      const expected = { userId: 'u1', currency: 'EUR', metadata: { cart: '42' }, ...item };
      expect(JSON.parse(await line({ ...ORDER, metadata: { cart: '42' } }, 'jsonl'))).to.deep.include(expected);
    });
  });

  describe('over HTTP', () => {
    let fake: FakeServices;
    let server: Started;
    let asked: [OrderFilter, string | null, number][];
    let pages: (nth: number) => OrderPage | Promise<OrderPage>;
    const sockets: Socket[] = [];
    const PATH = '/admin/v1/orders/export?sale=7';

    beforeEach(async () => {
      asked = [];
      pages = () => ({ orders: [ORDER], next: null });
      fake = new FakeServices({
        orderSearch: {
          currenciesOf: async () => new Map(),
          detailsOf: async () => DETAILS,
          page: async (filter, after, max) => {
            asked.push([filter, after, max]);
            return pages(asked.length);
          },
        },
      });
      server = await startServer(fake);
    });
    afterEach(async () => {
      for (const socket of sockets.splice(0)) socket.destroy();
      await server.stop();
    });

    const get = (path: string, authorization = ADMIN): Promise<Response> =>
      fetch(server.operatorsUrl + path, { headers: { authorization } });
    const full = (): ShownOrder[] => Array.from({ length: 1000 }, () => ORDER);
    /** A client that reads nothing until it is resumed. */
    async function deafClient(): Promise<Socket> {
      const socket = connect(server.operatorsPort, '127.0.0.1')
        .on('error', () => undefined)
        .pause();
      sockets.push(socket);
      socket.write(`GET ${PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${ADMIN}\r\n\r\n`);
      return socket;
    }
    /** Waits until the search makes no progress for a while. */
    async function standsStill(): Promise<number> {
      for (;;) {
        const before = asked.length;
        await pause(300);
        if (before > 0 && asked.length === before) return before;
      }
    }

    it('returns all pages as one text to admins', async () => {
      pages = (nth) => ({ orders: nth === 2 ? [] : [ORDER], next: nth < 3 ? `after-${nth}` : null });
      const csv = await get(`${PATH}&state=paid`);
      expect(csv.status).to.equal(200);
      expect(csv.headers.get('content-type')).to.equal('text/csv; charset=utf-8; header=present');
      expect(csv.headers.get('content-disposition')).to.equal('attachment; filename="orders.csv"');
      expect(await csv.text()).to.equal(HEADING + LINE + LINE);
      const filter = { saleId: '7', state: 'paid' };
      expect(asked).to.deep.equal([
        [filter, null, 1000],
        [filter, 'after-1', 1000],
        [filter, 'after-2', 1000],
      ]);
      const lines = await get(`${PATH}&format=jsonl`);
      expect(lines.headers.get('content-type')).to.equal('application/x-ndjson');
      expect(await lines.text()).to.equal(await line(ORDER, 'jsonl'));
      expect((await get(PATH, bearer())).status, 'a buyer').to.equal(403);
      expect(
        (await fetch(server.operatorsUrl + PATH, { method: 'HEAD', headers: { authorization: ADMIN } })).status,
      ).to.equal(200);
    });

    it('stops at its limit', async () => {
      pages = (nth) => ({ orders: full().slice(0, asked[nth - 1]?.[2]), next: 'more' });
      const text = await (await get(`${PATH}&limit=1500&format=jsonl`)).text();
      expect(text.split('\n')).to.have.length(1501);
      expect(asked.map(([, , max]) => max)).to.deep.equal([1000, 500]);
    });

    it('returns 400 for wrong values, and for a filter that would read every order', async () => {
      for (const query of [
        '',
        'state=paid',
        'sale=7&paidTo=2030-01-01T00:00:00Z',
        'sale=7&format=xml',
        'sale=7&limit=0',
        'sale=7&after=x',
        'sale=x',
      ]) {
        expect((await get(`/admin/v1/orders/export?${query}`)).status, query).to.equal(400);
      }
      expect(asked).to.deep.equal([]);
    });

    it('waits for a slow reader, and ends when the reader leaves', async () => {
      pages = () => ({ orders: full(), next: 'more' });
      const client = await deafClient();
      const read = await standsStill();
      expect(read, 'at most the buffers of two sockets').to.be.below(200);
      client.resume();
      await until(() => asked.length > read + 20);
      client.destroy();
      const last = await standsStill();
      expect(last).to.equal(asked.length);
      expect(fake.bugs).to.deep.equal([]);
    });

    it('runs two exports at a time, and asks a third caller to retry', async () => {
      pages = () => ({ orders: full(), next: 'more' });
      const [first] = [await deafClient(), await deafClient()];
      await until(() => asked.length >= 2);
      await standsStill();
      const third = await get(PATH);
      expect([third.status, ((await third.json()) as { code: string }).code]).to.deep.equal([503, 'overloaded']);
      first?.destroy();
      pages = () => ({ orders: [ORDER], next: null });
      for (;;) {
        const next = await get(PATH);
        await next.text();
        if (next.status === 200) break;
      }
    });

    it('returns a problem for an early fault, and aborts the text at a later fault', async () => {
      const down = new OperationalError('mysql', 'ECONNREFUSED', { retryable: true });
      pages = () => Promise.reject(down);
      expect((await get(PATH)).status).to.equal(503);
      asked = [];
      pages = (nth) => (nth === 1 ? { orders: [ORDER], next: 'more' } : Promise.reject(down));
      const text = get(PATH).then((broken) => broken.text());
      expect(await text.catch(() => 'broken off')).to.equal('broken off');
      expect(asked).to.have.length(2);
      expect(fake.bugs).to.deep.equal([]);
      pages = () => ({ orders: [ORDER], next: null });
      expect(await (await get(PATH)).text(), 'and the place is free').to.equal(HEADING + LINE);
    });

    it('aborts when the token of its reader is revoked', async () => {
      pages = (nth) => {
        if (nth === 3) fake.services.auth.authenticate = () => 'revoked';
        return { orders: [ORDER], next: 'more' };
      };
      const text = get(PATH).then((broken) => broken.text());
      expect(await text.catch(() => 'broken off')).to.equal('broken off');
      expect(asked).to.have.length(3);
    });

    it('aborts at once when the API stops', async () => {
      pages = () => ({ orders: full(), next: 'more' });
      const client = await deafClient();
      await standsStill();
      const closed = new Promise((resolve) => client.once('close', resolve));
      const drained = server.drain(60_000);
      client.resume();
      await closed;
      await drained;
    });
  });

  it('finds an order of any buyer by its id', async () => {
    const fake = new FakeServices({ findOrder: async (orderId) => (orderId === '99' ? ORDER : null) });
    const server = await startServer(fake);
    const get = (id: string) =>
      fetch(`${server.operatorsUrl}/admin/v1/orders/${id}`, { headers: { authorization: ADMIN } });
    expect(await (await get('99')).json()).to.deep.include({
      orderId: '99',
      userId: 'u1',
      currency: 'EUR',
      metadata: null,
    });
    expect((await get('98')).status).to.equal(404);
    expect((await get('x')).status).to.equal(400);
    await server.stop();
  });
});
