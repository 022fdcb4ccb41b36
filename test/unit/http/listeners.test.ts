import { expect } from 'chai';
import request from 'supertest';
import type { PurchaseOutcome } from '../../../src/core/outcome.js';
import { MetricsPage } from '../../../src/http/metrics-page.js';
import { startProbeServer } from '../../../src/http/probe-server.js';
import type { Listener, Route } from '../../../src/http/route.js';
import { routesOf } from '../../../src/http/route.js';
import { ROUTES } from '../../../src/programs/routes.js';
import type { HttpServices } from '../../../src/http/services.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { bearer, FakeServices, sendPurchase, startServer, until, type Started } from './http-harness.js';

const TOKEN = 'a-token-for-monitoring';
const REPORT = {
  ready: false,
  dependencies: [{ name: 'rocketmq', ok: false, detail: '10.0.0.7:8081 does not answer' }],
};

/** Sent by Prometheus 2.42. */
const ACCEPTED_BY_PROMETHEUS =
  'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1';

describe('two listeners of an API', () => {
  let server: Started | undefined;
  const serve = async (overrides: Partial<HttpServices> = {}, requestsPerSecond = 10_000): Promise<Started> =>
    (server = await startServer(new FakeServices(overrides), { requestsPerSecond }));
  afterEach(() => server?.stop());

  const urlOf = (listener: Listener): string => (listener === 'buyers' ? server?.url : server?.operatorsUrl) ?? '';
  /** Checks whether a listener serves the address of a route, as a caller with every role. */
  async function isThere(listener: Listener, { method, path }: Route): Promise<boolean> {
    const { body } = await request(urlOf(listener))
      [method](path.replaceAll(/\{\w+\}/g, '7'))
      .set('authorization', bearer('boss', ['admin']))
      .set('idempotency-key', 'not a key!')
      .set('content-type', 'text/plain')
      .send('x');
    return body.code !== 'route_not_found' && body.code !== 'method_not_allowed';
  }

  it('serve each route only on its own listener', async () => {
    await serve({ ready: () => Promise.resolve(REPORT) });
    const BOTH = ['/healthz', '/readyz'];
    for (const route of ROUTES) {
      const forOperators = /^\/(admin|debug|metrics|openapi)/.test(route.path);
      const expected = BOTH.includes(route.path)
        ? { buyers: true, operators: true }
        : { buyers: !forOperators, operators: forOperators };
      const found = { buyers: await isThere('buyers', route), operators: await isThere('operators', route) };
      expect(found, `${route.method} ${route.path}`).to.deep.equal(expected);
    }
  });

  it('show only yes or no on /readyz to buyers, and the reasons to operators', async () => {
    const { url, operatorsUrl } = await serve({ ready: () => Promise.resolve(REPORT), isReady: async () => false });
    expect((await request(url).get('/readyz').expect(503)).body).to.deep.equal({ ready: false });
    expect((await request(operatorsUrl).get('/readyz').expect(503)).body).to.deep.equal(REPORT);
    await server?.stop();
    await serve();
    expect((await request(urlOf('buyers')).get('/readyz').expect(200)).body).to.deep.equal({ ready: true });
    await request(urlOf('operators')).get('/readyz').expect(200);
  });

  it('let Prometheus read /readyz for buyers only while the api is ready', async () => {
    let isReady = true;
    const { url } = await serve({ isReady: async () => isReady });
    const readyz = (): request.Test => request(url).get('/readyz').set('Accept', ACCEPTED_BY_PROMETHEUS);
    const { text, type } = await readyz().expect(200);
    expect({ text, type }).to.deep.equal({ text: '# ready\n', type: 'text/plain' });
    isReady = false;
    await readyz().expect(503);
  });

  it('show operators the shutdown and metrics while buyers get their last responses', async () => {
    const fake = new FakeServices();
    let answer: (outcome: PurchaseOutcome) => void = () => undefined;
    fake.enter = () => new Promise((resolve) => (answer = resolve));
    server = await startServer(fake);
    const bought = sendPurchase(server);
    await until(() => fake.entered.length === 1);
    const drained = server.drain(5000);
    const { body } = await request(server.operatorsUrl).get('/readyz').expect(503);
    expect(body.dependencies).to.deep.equal([{ name: 'api', ok: false, detail: 'this process is shutting down' }]);
    await request(server.operatorsUrl).get('/metrics').expect(200);
    answer({ outcome: 'accepted' });
    expect((await bought).status).to.equal(202);
    await drained;
  });

  it('serve /healthz and /metrics without a token', async () => {
    const { operatorsUrl } = await serve();
    await request(operatorsUrl).get('/healthz').expect(200, { status: 'alive' });
    await request(operatorsUrl).head('/healthz').expect(200);
    const { text } = await request(operatorsUrl)
      .get('/metrics')
      .expect(200)
      .expect('content-type', /^text\/plain; version=0.0.4/);
    expect(text).to.equal('up 1\n');
  });

  it('return 421 to requests for another host on the ports of operators, worker and keeper', async () => {
    const { url, operatorsUrl } = await serve();
    const probe = await startProbeServer(
      {
        ready: () => Promise.resolve(REPORT),
        metricsPage: new MetricsPage(async () => 'up 1', { token: '', cacheMs: 0 }, new ManualClock()),
      },
      { host: '127.0.0.1', port: 0 },
    );
    const probeUrl = `http://127.0.0.1:${probe.port}`;
    try {
      const ask = (at: string, method: Route['method'], path: string, host: string): request.Test =>
        request(at)
          [method](path.replaceAll(/\{\w+\}/g, '7'))
          .set('host', host);
      for (const { method, path } of routesOf(ROUTES, 'operators')) {
        const { body } = await ask(operatorsUrl, method, path, 'evil.example:9103').expect(421);
        expect(body, path).to.include({ code: 'misdirected', retryable: false });
      }
      for (const path of ['/console', '/unknown']) await ask(operatorsUrl, 'get', path, 'evil.example').expect(421);
      for (const path of ['/healthz', '/readyz', '/metrics']) {
        await ask(probeUrl, 'get', path, 'evil.example').expect(421);
      }
      for (const host of ['localhost:9103', '127.0.0.1', '[::1]:9103', '10.1.2.3:9103']) {
        await ask(operatorsUrl, 'get', '/metrics', host).expect(200);
        await ask(probeUrl, 'get', '/metrics', host).expect(200);
      }
      await ask(url, 'get', '/healthz', 'shop.example').expect(200);
    } finally {
      await probe.close();
    }
  });

  it('return 429 to an operator address beyond its limit, and serve other addresses', async () => {
    const clock = new ManualClock();
    let address = '192.0.2.1';
    const { operatorsUrl, url } = await serve({ clock, addressOf: () => address }, 3);
    for (let i = 0; i < 3; i++) await request(operatorsUrl).get('/healthz').expect(200);
    const { body } = await request(operatorsUrl).get('/admin/v1/sales').expect(429).expect('retry-after', '1');
    expect(body).to.include({ code: 'rate_limited', retryable: true });
    await request(url).get('/healthz').expect(200);
    address = '192.0.2.2';
    await request(operatorsUrl).get('/healthz').expect(200);
    address = '192.0.2.1';
    await clock.sleep(1000);
    await request(operatorsUrl).get('/healthz').expect(200);
  });

  describe('/metrics', () => {
    let clock: ManualClock;
    let collected: number;
    const page = (token: string, cacheMs: number): MetricsPage =>
      new MetricsPage(async () => `collected ${++collected}\n`, { token, cacheMs }, clock);
    beforeEach(() => {
      clock = new ManualClock();
      collected = 0;
    });

    it('collects at most once a second, for any number of readers', async () => {
      const { operatorsUrl } = await serve({ metricsPage: page('', 1000) });
      const read = async (): Promise<string> => (await request(operatorsUrl).get('/metrics').expect(200)).text;
      expect(await Promise.all([read(), read(), read()])).to.deep.equal(Array(3).fill('collected 1\n'));
      await clock.sleep(999);
      expect(await read()).to.equal('collected 1\n');
      await clock.sleep(1);
      expect(await read()).to.equal('collected 2\n');
    });

    it('requires its bearer token if one is set, in every program', async () => {
      const { operatorsUrl } = await serve({ metricsPage: page(TOKEN, 0) });
      const probe = await startProbeServer(
        { ready: () => Promise.resolve(REPORT), metricsPage: page(TOKEN, 0) },
        { host: '127.0.0.1', port: 0 },
      );
      try {
        for (const url of [operatorsUrl, `http://127.0.0.1:${probe.port}`]) {
          const ask = (authorization: string): request.Test =>
            request(url).get('/metrics').set('authorization', authorization);
          for (const wrong of ['', TOKEN, `Bearer ${TOKEN}x`, `Bearer ${bearer('boss', ['admin'])}`, 'Bearer']) {
            const { text } = await ask(wrong).expect(401).expect('www-authenticate', 'Bearer');
            expect(text).to.contain('METRICS_TOKEN').and.not.contain(TOKEN);
          }
          expect((await ask(`Bearer ${TOKEN}`).expect(200)).text).to.match(/^collected /);
          await request(url).get('/healthz').expect(200);
        }
      } finally {
        await probe.close();
      }
    });
  });
});
