import { expect } from 'chai';
import request from 'supertest';
import type { AdmissionRequest, Refused, Verdict } from '../../../src/admission/layer.js';
import type { HttpServices } from '../../../src/http/services.js';
import { bearer, FakeServices, startServer, until, type Started } from './http-harness.js';
import { partial } from '../../helpers/partial.js';

const NO: Verdict = { word: 'denied', retryAfterMs: null };

/** Admission with verdicts set by the test. Records each request for a verdict. */
class FakeAdmission {
  isOn = true;
  anonymousVerdict: Verdict = null;
  buyerVerdict: Verdict = null;
  readonly requests: AdmissionRequest[] = [];
  operatorVerdict: Refused | null = null;
  readonly asked: string[] = [];
  readonly noted: string[] = [];

  anonymous(one: AdmissionRequest): Verdict {
    this.requests.push(one);
    this.asked.push(`anonymous ${one.endpoint}`);
    return this.anonymousVerdict;
  }

  buyer(one: AdmissionRequest, userId: string): Verdict {
    this.asked.push(`${userId} ${one.endpoint}`);
    return this.buyerVerdict;
  }

  answered(userId: string, word: string): void {
    this.noted.push(`${userId} ${word}`);
  }

  operator(userId: string): Refused | null {
    this.asked.push(`operator ${userId}`);
    return this.operatorVerdict;
  }
}

interface Route {
  readonly method: 'get' | 'post';
  readonly path: string;
  readonly endpoint: string;
  readonly counted: string;
}

const PURCHASE: Route = {
  method: 'post',
  path: '/v1/sales/7/purchases',
  endpoint: 'purchase',
  counted: 'purchase',
};
const BUYERS: readonly Route[] = [
  PURCHASE,
  { method: 'get', path: '/v1/sales/7/purchases/k1', endpoint: 'status', counted: 'purchase_status' },
  { method: 'get', path: '/v1/sales/7/purchases/k1/events', endpoint: 'status', counted: 'purchase_events' },
  { method: 'get', path: '/v1/orders/99', endpoint: 'order', counted: 'order' },
  { method: 'post', path: '/v1/orders/99/pay', endpoint: 'order', counted: 'order' },
  { method: 'post', path: '/v1/orders/99/cancel', endpoint: 'order', counted: 'order' },
  { method: 'post', path: '/v1/sales/7/purchase-token', endpoint: 'status', counted: 'purchase_token' },
  { method: 'post', path: '/v1/sales/7/queue', endpoint: 'status', counted: 'queue' },
  { method: 'get', path: '/v1/sales/7/queue/a-ticket', endpoint: 'status', counted: 'queue' },
];
const SALE: Route = { method: 'get', path: '/v1/sales/7', endpoint: 'sale', counted: 'sale' };

describe('admission before the routes', () => {
  let admission: FakeAdmission;
  let fake: FakeServices;
  let server: Started | undefined;
  const serve = async (overrides: Partial<HttpServices> = {}): Promise<void> => {
    fake = new FakeServices({ admission: partial(admission), ...overrides });
    server = await startServer(fake);
  };
  beforeEach(() => void (admission = new FakeAdmission()));
  afterEach(() => server?.stop());

  const ask = ({ method, path }: Route, headers: Record<string, string> = {}): request.Test =>
    request(server?.url ?? '')
      [method](path)
      .set({ authorization: bearer(), 'idempotency-key': 'k1', 'user-agent': 'Test/1', ...headers });

  for (const route of [...BUYERS, SALE]) {
    const { method, path, endpoint, counted } = route;

    it(`${method} ${path}: returns 403 to a refused anonymous caller before it reads the token`, async () => {
      admission.anonymousVerdict = NO;
      await serve();
      const { body, headers } = await ask(route, { authorization: 'Bearer nonsense' }).expect(403);
      expect(body).to.include({ code: 'denied', status: 403, requestId: 'k1', retryable: false });
      expect(body.detail).to.equal('Access is denied.');
      expect(headers['content-type']).to.equal('application/problem+json');
      expect(admission.asked).to.deep.equal([`anonymous ${endpoint}`]);
      expect(admission.requests).to.deep.equal([{ endpoint, address: '192.0.2.1', agent: 'Test/1' }]);
      expect(fake.counted).to.deep.equal([`${counted} denied`]);
    });
  }

  for (const route of BUYERS) {
    it(`${route.method} ${route.path}: returns 403 to a refused buyer and calls nothing else`, async () => {
      admission.buyerVerdict = NO;
      await serve();
      await ask(route).expect(403);
      expect(admission.asked).to.deep.equal([`anonymous ${route.endpoint}`, `u1 ${route.endpoint}`]);
      // The sold-out check is in memory.
      const flags = route.method === 'post' && route.endpoint === 'purchase' ? ['7 u1'] : [];
      expect([fake.asked, fake.entered, fake.bugs]).to.deep.equal([flags, [], []]);
    });

    it(`${route.method} ${route.path}: calls no buyer layer if the token is missing`, async () => {
      await serve();
      await ask(route, { authorization: '' }).expect(401);
      expect(admission.asked).to.deep.equal([`anonymous ${route.endpoint}`]);
    });
  }

  it('notes for a canary only answers to purchases whose user the rules judged', async () => {
    admission.buyerVerdict = NO;
    await serve();
    fake.early = 'sold_out';
    await ask(PURCHASE).expect(409);
    fake.early = null;
    for (const route of BUYERS) await ask(route).expect(403);
    admission.buyerVerdict = null;
    await ask(PURCHASE).expect(202);
    expect(admission.noted).to.deep.equal(['u1 denied', 'u1 accepted']);
  });

  it('is not called while it is off', async () => {
    admission.isOn = false;
    admission.anonymousVerdict = admission.buyerVerdict = NO;
    await serve({ getSale: { get: () => Promise.resolve({ outcome: 'not_found' }) } });
    await ask(PURCHASE).expect(202);
    await ask(BUYERS[1] as Route).expect(200);
    await ask(SALE).expect(404);
    expect([admission.asked, admission.requests]).to.deep.equal([[], []]);
  });

  it('never refuses probes and webhooks, and refuses operators only by user id', async () => {
    admission.anonymousVerdict = admission.buyerVerdict = NO;
    await serve({ sales: partial({ ...new FakeServices().services.sales, list: () => Promise.resolve([]) }) });
    const { url, operatorsUrl } = server as Started;
    await request(operatorsUrl)
      .get('/admin/v1/sales')
      .set('authorization', bearer('boss', ['admin']))
      .expect(200);
    for (const path of ['/healthz', '/readyz']) await request(url).get(path).expect(200);
    for (const path of ['/healthz', '/readyz', '/metrics']) await request(operatorsUrl).get(path).expect(200);
    await request(url)
      .post('/v1/payments/webhook')
      .expect((res) => expect(res.status).not.to.equal(403));
    expect(admission.asked).to.deep.equal(['operator boss']);
    admission.operatorVerdict = { word: 'denied', retryAfterMs: null };
    const { body } = await request(operatorsUrl)
      .get('/admin/v1/sales')
      .set('authorization', bearer('boss', ['admin']))
      .expect(403);
    expect(body.code).to.equal('denied');
  });

  describe('POST purchases', () => {
    it('accepts a purchase if a layer admits the buyer, even asynchronously', async () => {
      admission.anonymousVerdict = Promise.resolve(null);
      admission.buyerVerdict = Promise.resolve(null);
      await serve();
      await ask(PURCHASE).send({ quantity: 2 }).expect(202);
      expect(fake.entered.map(({ quantity }) => quantity)).to.deep.equal([2]);
    });

    it('refuses a purchase if a layer refuses asynchronously', async () => {
      admission.buyerVerdict = Promise.resolve(NO);
      await serve();
      await ask(PURCHASE).send({ quantity: 2 }).expect(403);
      expect(fake.entered).to.deep.equal([]);
    });

    it('returns a problem without a request id if the key is missing', async () => {
      admission.anonymousVerdict = NO;
      await serve();
      const { body } = await ask(PURCHASE, { 'idempotency-key': 'no key!' }).expect(403);
      expect(body.requestId).to.equal(null);
    });

    it('returns 500, reports a bug and serves the next buyer if a layer throws', async () => {
      const broken = Promise.reject<null>(new Error('broken'));
      broken.catch(() => undefined); // The promise is rejected before the request arrives.
      admission.anonymousVerdict = broken;
      await serve();
      await ask(PURCHASE).expect(500);
      await until(() => fake.bugs.length > 0);
      admission.anonymousVerdict = null;
      await ask(PURCHASE).expect(202);
    });
  });
});
