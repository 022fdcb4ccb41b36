import { expect } from 'chai';
import request from 'supertest';
import { OperationalError, type Dependency } from '../../../src/core/errors.js';
import type { ShownOrder } from '../../../src/core/order.js';
import {
  Degrade,
  DegradeLayer,
  degradeRules,
  type DegradeRules,
  type Level,
} from '../../../src/admission/degrade/degrade.js';
import { DegradedReads, FallbackCache } from '../../../src/admission/degrade/degraded-reads.js';
import type { Endpoint } from '../../../src/admission/layer.js';
import { Admission } from '../../../src/admission/admission.js';
import type { GetSaleAnswer, SaleView } from '../../../src/sales/get-sale.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { AT_MS, bearer, FakeServices, ORDER, startServer, type Started } from './http-harness.js';
import { noAdmissionMetrics } from '../../helpers/no-metrics.js';
import { partial } from '../../helpers/partial.js';

const VIEW: SaleView = {
  saleId: '7',
  sku: 'S-1',
  title: 'A thing',
  priceCents: 990,
  currency: 'EUR',
  limitPerBuyer: 1,
  paymentWindowMs: null,
  state: 'open',
  stock: 'few',
  opensAtMs: AT_MS,
  closesAtMs: AT_MS + 1000,
  nowMs: AT_MS,
};
const PATHS = { status: '/v1/sales/7/purchases/k1', sale: '/v1/sales/7', order: '/v1/orders/99' } as const;
const READS = ['status', 'sale', 'order'] as const;

/** The real layer in front of sources that can fail and count their calls. */
class World {
  rules: DegradeRules = degradeRules.parse({ mode: 'on' });
  open: Dependency[] = [];
  sources = 0;
  out: Dependency | null = null;
  sale: GetSaleAnswer = { outcome: 'found', view: VIEW };
  order: ShownOrder | null = ORDER;
  readonly clock = new ManualClock(AT_MS);
  readonly fake: FakeServices;

  constructor() {
    const degrade = new Degrade({
      rules: () => this.rules,
      refuses: (dependency) => this.open.includes(dependency),
      metrics: noAdmissionMetrics,
    });
    const cache = () =>
      new FallbackCache<Readonly<Record<string, unknown>>>({
        rules: () => this.rules.cache,
        clock: this.clock,
        max: 10,
      });
    const on = {
      get isAnyOn(): boolean {
        return degrade.isOn;
      },
      count: () => undefined,
    };
    this.fake = new FakeServices({
      admission: new Admission(partial(on), [new DegradeLayer(degrade)], noAdmissionMetrics),
      degrade,
      reads: {
        status: new DegradedReads('status', cache()),
        sale: new DegradedReads('sale', cache()),
        order: new DegradedReads('order', cache()),
      },
      getPurchase: { get: () => this.#read(this.fake.status) },
      getSale: { get: () => this.#read(this.sale) },
      getOrder: () => this.#read(this.order),
      payOrder: () => this.#read({ outcome: 'paid', order: ORDER } as const),
      cancelOrder: () => this.#read({ outcome: 'cancelled', order: ORDER } as const),
    });
  }

  switch(endpoint: Endpoint, level: Level, percent = 100): void {
    this.rules = degradeRules.parse({ mode: 'on', switches: { [endpoint]: { level, percent } } });
  }

  async #read<T>(value: T): Promise<T> {
    this.sources++;
    if (this.out !== null) throw new OperationalError(this.out, 'out', { retryable: true });
    return value;
  }
}

describe('degradation before the routes', () => {
  let world: World;
  let server: Started;
  beforeEach(async () => {
    world = new World();
    world.fake.status = { status: 'ordered', orderId: '9', orderState: 'pending_payment' };
    server = await startServer(world.fake);
  });
  afterEach(() => server.stop());
  const get = (endpoint: (typeof READS)[number], user = 'u1'): request.Test =>
    request(server.url).get(PATHS[endpoint]).set('authorization', bearer(user));

  it('status: does not cache a pending status, so that its order appears at once', async () => {
    world.fake.status = { status: 'pending' };
    await get('status').expect(200);
    world.switch('status', 'L1');
    expect((await get('status').expect(200)).body.status).to.equal('pending');
    world.fake.status = { status: 'ordered', orderId: '9', orderState: 'pending_payment' };
    expect((await get('status').expect(200)).body).to.include({ status: 'ordered', orderId: '9' });
  });

  for (const endpoint of READS) {
    it(`${endpoint}: returns the previous answer with its age at level 1, without a read`, async () => {
      const { body: full } = await get(endpoint).expect(200);
      world.switch(endpoint, 'L1');
      await get(endpoint).expect(200);
      const read = world.sources;
      world.clock.advance(1500);
      const { body, headers } = await get(endpoint).expect(200);
      expect(body.degraded).to.equal('L1');
      expect(body.ageMs).to.be.at.least(1500);
      expect({ ...body, degraded: undefined, ageMs: undefined }).to.deep.equal({
        ...full,
        degraded: undefined,
        ageMs: undefined,
      });
      expect(headers['cache-control'], 'no cache on the way may keep it').to.equal('no-store');
      expect(world.sources).to.equal(read);
      expect(world.fake.counted.at(-1)).to.match(/ stale$/);
    });

    it(`${endpoint}: serves the last answer if its source fails, or 503 if it has no answer`, async () => {
      await get(endpoint).expect(200);
      world.out = endpoint === 'order' ? 'mysql' : 'redis';
      const { body } = await get(endpoint).expect(200);
      expect(body.degraded).to.equal('L1');
      world.clock.advance(60_000);
      const { body: problem } = await get(endpoint).expect(503).expect('retry-after', '1');
      expect(problem.code).to.equal('unavailable');
    });

    it(`${endpoint}: calls no source and returns "unknown" while the breaker is open`, async () => {
      world.rules = degradeRules.parse({ mode: 'on', asked: { redis: { [endpoint]: 'L1' } } });
      world.open = ['redis'];
      const { body } = await get(endpoint).expect(200);
      expect(body).to.include({ degraded: 'L1', [endpoint === 'status' ? 'status' : 'state']: 'unknown' });
      expect(world.sources).to.equal(0);
      expect(world.fake.counted.at(-1)).to.match(/ empty$/);
      world.open = [];
      expect((await get(endpoint).expect(200)).body, 'the breaker is closed').not.to.have.property('degraded');
    });

    it(`${endpoint}: behaves as if there were no layer when off or in a dry run`, async () => {
      for (const mode of ['off', 'dry_run'] as const) {
        world.rules = degradeRules.parse({ mode, switches: { [endpoint]: { level: 'L4' } } });
        const { body } = await get(endpoint).expect(200);
        expect(body, mode).not.to.have.property('degraded');
        world.out = 'redis';
        await get(endpoint).expect(503);
        world.out = null;
      }
    });
  }

  it('returns the essential fields at level 2, and only the ids at level 3', async () => {
    world.switch('order', 'L2');
    const { body } = await get('order').expect(200);
    expect(body).to.have.all.keys('orderId', 'saleId', 'state', 'amountCents', 'currency', 'expiresAt', 'degraded');
    world.switch('order', 'L3');
    expect((await get('order').expect(200)).body).to.deep.equal({ orderId: '99', state: 'unknown', degraded: 'L3' });
    world.switch('status', 'L3');
    expect((await get('status').expect(200)).body).to.deep.equal({
      requestId: 'k1',
      saleId: '7',
      status: 'unknown',
      degraded: 'L3',
    });
  });

  it('returns 204 for a sale page and 503 for all other requests at level 4', async () => {
    world.switch('sale', 'L4');
    expect((await get('sale').expect(204)).text).to.equal('');
    for (const endpoint of ['status', 'order'] as const) {
      world.switch(endpoint, 'L4');
      const { body } = await get(endpoint).expect(503).expect('retry-after', '2');
      expect(body).to.include({ code: 'degraded', retryable: true });
      expect(body.requestId).to.equal(endpoint === 'status' ? 'k1' : null);
    }
    expect(world.sources).to.equal(0);
  });

  it('never returns the answer of one buyer to another, and keeps a 404', async () => {
    world.switch('order', 'L1');
    await get('order').expect(200);
    world.order = null;
    expect((await get('order', 'u2').expect(404)).body.code).to.equal('order_not_found');
    world.switch('status', 'L1');
    await get('status').expect(200);
    world.fake.status = { status: 'not_found' };
    expect((await get('status', 'u2').expect(404)).body).to.include({ code: 'purchase_not_found', requestId: 'k1' });
    world.switch('sale', 'L1');
    world.sale = { outcome: 'loading' };
    expect((await get('sale').expect(503).expect('retry-after', '1')).body.code).to.equal('loading');
    world.sale = { outcome: 'not_found' };
    expect((await get('sale').expect(404)).body.code).to.equal('not_found');
  });

  it('pays and cancels orders at every level below 4, and starts nothing at level 4', async () => {
    for (const move of ['pay', 'cancel']) {
      const post = (): request.Test =>
        request(server.url).post(`/v1/orders/99/${move}`).set('authorization', bearer()).set('idempotency-key', 'k9');
      for (const level of ['L0', 'L1', 'L2', 'L3'] as const) {
        world.switch('order', level);
        await post().expect(200);
      }
      world.switch('order', 'L4');
      world.sources = 0;
      const { body } = await post().expect(503).expect('retry-after', '2');
      expect(body.code).to.equal('degraded');
      expect(world.sources).to.equal(0);
    }
  });

  it('refuses an event stream and names the route to use instead', async () => {
    for (const level of ['L1', 'L4'] as const) {
      world.switch('status', level);
      const { body } = await request(server.url)
        .get(`${PATHS.status}/events`)
        .set('authorization', bearer())
        .expect(503)
        .expect('retry-after', '2');
      expect(body).to.include({ code: 'degraded', requestId: 'k1' });
    }
  });

  it('returns 503 degraded with Retry-After to POST purchases at level 4', async () => {
    const own = await startServer(world.fake);
    try {
      const buy = (): request.Test =>
        request(own.url).post('/v1/sales/7/purchases').set({ authorization: bearer(), 'idempotency-key': 'k1' });
      await buy().expect(202);
      world.switch('purchase', 'L4');
      const { body } = await buy().expect(503).expect('retry-after', '2');
      expect(body).to.include({ code: 'degraded', requestId: 'k1', retryable: true, retryAfterMs: 2000 });
      world.switch('purchase', 'L0');
      world.open = ['rocketmq'];
      await buy().expect(503);
      expect(world.fake.entered).to.have.length(1);
      world.open = [];
      await buy().expect(202);
    } finally {
      await own.stop();
    }
  });
});
