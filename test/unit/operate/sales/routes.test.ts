import { expect } from 'chai';
import request from 'supertest';
import type { NewSale, Sale } from '../../../../src/core/sale.js';
import type { SaleFilter } from '../../../../src/core/ports/sale-repository.js';
import type { HttpServices } from '../../../../src/http/services.js';
import type { SaleAdminAnswer, SaleCreated } from '../../../../src/sales/sale-admin.js';
import { bearer, FakeServices, RawClient, startServer, type Started } from '../../http/http-harness.js';
import { partial } from '../../../helpers/partial.js';
import { saleOf } from '../../../helpers/sales.js';

const AT_MS = Date.UTC(2030, 0, 1);
const SALE = saleOf({
  saleId: '7',
  title: 'Café',
  priceCents: 999,
  stock: 100,
  sold: 3,
  state: 'draft',
  opensAtMs: AT_MS,
  closesAtMs: AT_MS + 1000,
});
const { opensAtMs: _opens, closesAtMs: _closes, warmBeforeMs, paymentWindowMs, retiredAtMs, ...SAME } = SALE;
const SALE_BODY = {
  ...SAME,
  opensAt: '2030-01-01T00:00:00.000Z',
  closesAt: '2030-01-01T00:00:01.000Z',
  warmBefore: warmBeforeMs,
  paymentWindow: paymentWindowMs,
  retiredAt: retiredAtMs,
};
const NEW = {
  sku: 'sku-1',
  title: 'Café',
  priceCents: 999,
  stock: 100,
  limitPerBuyer: 2,
  opensAt: '2030-01-01T01:00:00+01:00',
  closesAt: '2030-01-01T00:00:01Z',
};

describe('admin sales', () => {
  let fake: FakeServices;
  let server: Started;
  let calls: string[];
  let created: NewSale[];
  let answer: SaleAdminAnswer;
  let made: SaleCreated;
  let filters: SaleFilter[];
  const admin = bearer('boss', ['viewer', 'admin']);

  beforeEach(async () => {
    calls = [];
    created = [];
    filters = [];
    answer = { outcome: 'done', sale: SALE };
    made = { outcome: 'created', sale: SALE };
    const move = (verb: string) => (saleId: string, actor: string) => {
      calls.push(`${actor}: ${verb} ${saleId}`);
      return Promise.resolve(answer);
    };
    const sales: HttpServices['sales'] = partial({
      create: (sale, actor) => {
        calls.push(`${actor}: create`);
        created.push(sale);
        return Promise.resolve(made);
      },
      show: (saleId) => Promise.resolve(saleId === '7' ? SALE : null),
      list: (filter) => {
        filters.push(filter);
        return Promise.resolve(Array<Sale>(Math.min(filter.max, 2)).fill(SALE));
      },
      warm: move('warm'),
      open: move('open'),
      pause: move('pause'),
      close: move('close'),
    });
    fake = new FakeServices({ sales });
    server = await startServer(fake);
  });
  afterEach(async () => {
    await server.stop();
    expect(fake.bugs, 'no input of a client is reported as a bug').to.deep.equal([]);
  });

  const post = (path: string): request.Test => request(server.operatorsUrl).post(path).set('authorization', admin);

  it('returns 201 with the sale, its times and its buckets if a sale is created', async () => {
    const { body } = await post('/admin/v1/sales').send(NEW).expect(201).expect('location', '/admin/v1/sales/7');
    expect(body).to.deep.equal(SALE_BODY);
    expect(calls, 'in the name of the admin').to.deep.equal(['boss: create']);
    expect(created).to.deep.equal([
      {
        sku: 'sku-1',
        title: 'Café',
        priceCents: 999,
        currency: 'EUR',
        stock: 100,
        limitPerBuyer: 2,
        buckets: 1,
        opensAtMs: AT_MS,
        closesAtMs: AT_MS + 1000,
        warmBeforeMs: null,
        paymentWindowMs: null,
      },
    ]);
  });

  it('lets the keeper run a sale, and names the other sale of a refused overlap', async () => {
    const planned = { ...SALE, warmBeforeMs: 600_000 };
    made = { outcome: 'created', sale: planned };
    const { body } = await post('/admin/v1/sales')
      .send({ ...NEW, warmBefore: '10m' })
      .expect(201);
    expect(body.warmBefore).to.equal('10m');
    expect(created[0]?.warmBeforeMs).to.equal(600_000);
    made = { outcome: 'overlaps', errors: [{ field: 'opensAt', message: 'opensAt overlaps: sale 3 offers sku-1.' }] };
    const refused = await post('/admin/v1/sales')
      .send({ ...NEW, warmBefore: '10m' })
      .expect(409);
    expect(refused.body).to.include({ code: 'sale_overlaps', detail: 'opensAt overlaps: sale 3 offers sku-1.' });

    fake.plan = [{ sale: planned, status: 'not_ready', missing: ['stock: gone'], warmsAtMs: AT_MS - 600_000 }];
    const plan = await request(server.operatorsUrl).get('/admin/v1/sale-plan').set('authorization', admin).expect(200);
    const warmsAt = '2029-12-31T23:50:00.000Z';
    const sale = { ...SALE_BODY, warmBefore: '10m' };
    expect(plan.body).to.deep.equal({ sales: [{ sale, status: 'not_ready', missing: ['stock: gone'], warmsAt }] });
  });

  it('returns 400 with every wrong field [S6]', async () => {
    const wrong = { sku: 'a b', title: '', stock: '1', opensAt: AT_MS, buckets: null, saleId: '9' };
    const { body } = await post('/admin/v1/sales')
      .send({ ...NEW, ...wrong })
      .expect(400);
    expect(body.code).to.equal('bad_request');
    expect(body.errors.map((error: { field: string }) => error.field)).to.have.members(Object.keys(wrong));
    expect(created).to.deep.equal([]);
  });

  it('returns 400, 413 or 415 if the body is malformed, too large or of another type [S6]', async () => {
    const send = (type: string, body: string): request.Test =>
      post('/admin/v1/sales').set('content-type', type).send(body);
    for (const body of ['', 'x', 'null', '[]', '"x"', `{"__proto__":{"a":1},${JSON.stringify(NEW).slice(1)}`]) {
      await send('application/json', body).expect(400);
    }
    await send('text/plain', JSON.stringify(NEW)).expect(415);
    await send('application/json', ' '.repeat(4097)).expect(413).expect('connection', 'close');
    expect(created).to.deep.equal([]);
    const client = await RawClient.to(server.operatorsPort);
    client.say(
      'POST /admin/v1/sales HTTP/1.1',
      'Host: localhost',
      `Authorization: ${admin}`,
      'Transfer-Encoding: chunked',
      '',
      '',
    );
    for (let i = 0; i < 5; i++) client.say('400', ' '.repeat(0x400), '');
    expect((await client.answer())?.status).to.equal(413);
    client.socket.destroy();
  });

  it('returns all sales or one sale, and 404 for an unknown sale', async () => {
    const get = (path: string): request.Test => request(server.operatorsUrl).get(path).set('authorization', admin);
    expect((await get('/admin/v1/sales').expect(200)).body).to.deep.equal({
      sales: [SALE_BODY, SALE_BODY],
      next: null,
    });
    const asked =
      '/admin/v1/sales?state=open&sku=pen&opensFrom=2030-01-01T00:00:00Z&opensTo=2030-01-02T00:00:00Z&before=9&limit=2';
    expect((await get(asked).expect(200)).body).to.include({ next: '7' });
    const times = { opensFromMs: AT_MS, opensToMs: AT_MS + 86_400_000 };
    expect(filters).to.deep.equal([{ max: 50 }, { max: 2, states: ['open'], sku: 'pen', ...times, beforeId: '9' }]);
    for (const wrong of ['state=sold', 'sku=', 'opensFrom=soon', 'before=x', 'limit=201', 'page=2'])
      await get(`/admin/v1/sales?${wrong}`).expect(400);
    expect((await get('/admin/v1/sales/7').expect(200)).body).to.deep.equal(SALE_BODY);
    expect((await get('/admin/v1/sales/8').expect(404)).body.code).to.equal('not_found');
    await get('/admin/v1/sales/x').expect(400);
  });

  it('moves a sale through SaleAdmin, and opens a paused sale on resume', async () => {
    for (const verb of ['warm', 'open', 'pause', 'resume', 'close']) {
      expect((await post(`/admin/v1/sales/7/${verb}`).expect(200)).body).to.deep.equal({
        ...SALE_BODY,
        inRepair: false,
      });
    }
    const asked = ['warm 7', 'open 7', 'pause 7', 'open 7', 'close 7'];
    expect(calls).to.deep.equal(asked.map((move) => `boss: ${move}`));
    await post('/admin/v1/sales/x/open').expect(400);
  });

  it('maps each refusal of SaleAdmin to its status', async () => {
    answer = { outcome: 'not_found' };
    await post('/admin/v1/sales/7/open').expect(404);
    answer = { outcome: 'wrong_state', sale: SALE };
    const { body } = await post('/admin/v1/sales/7/open').expect(409);
    expect(body).to.include({ code: 'wrong_state', detail: 'Cannot open a sale that is draft.' });
  });

  it('returns 200 with the new state if a sale is paused during its repair', async () => {
    answer = { outcome: 'in_repair', sale: { ...SALE, state: 'paused' } };
    const { body } = await post('/admin/v1/sales/7/pause').expect(200);
    expect(body).to.deep.equal({ ...SALE_BODY, state: 'paused', inRepair: true });
  });
});
