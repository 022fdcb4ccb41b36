import { expect } from 'chai';
import express, { type Express } from 'express';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { authenticatorOf, type Caller } from '../../../src/http/auth.js';
import type { HttpServices } from '../../../src/http/services.js';
import { routesOf } from '../../../src/http/route.js';
import { ROUTES } from '../../../src/programs/routes.js';
import type { Middleware } from '../../../src/http/app.js';
import { createRouter, type Router } from '../../../src/library/router.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { bearer, FakeServices, until } from '../http/http-harness.js';
import { grantedMsOf } from '../../chaos/harness/wait.js';
import { partial } from '../../helpers/partial.js';

const PURCHASES = '/v1/sales/7/purchases';

describe('the router in an Express app', () => {
  let server: Server | undefined;
  let fake: FakeServices;
  let router: Router;
  let url: string;

  /** @param build adds the router to an app */
  async function start(build: (app: Express) => void, services: Partial<HttpServices> = {}): Promise<void> {
    stop();
    fake = new FakeServices(services);
    router = createRouter(fake.api);
    const app = express();
    build(app);
    app.use((_, res) => void res.status(418).send('the app'));
    await new Promise<void>((resolve) => (server = app.listen(0, '127.0.0.1', () => resolve())));
    url = `http://127.0.0.1:${(server?.address() as AddressInfo).port}`;
  }
  const stop = (): void => {
    server?.closeAllConnections();
    server?.close();
  };
  afterEach(stop);

  const buy = (
    path = PURCHASES,
    headers: Record<string, string> = {},
    body: string | ReadableStream | null = '{"quantity":2}',
  ) =>
    fetch(url + path, {
      duplex: 'half',
      method: 'POST',
      headers: {
        authorization: bearer(),
        'idempotency-key': 'k1',
        'content-type': 'application/json',
        ...headers,
      },
      body,
    });

  it('sells through the same pipeline, and leaves all other paths to the app', async () => {
    await start((app) => app.use(router.middleware));
    const answer = await buy();
    expect(answer.status).to.equal(202);
    expect(answer.headers.get('location')).to.equal(`${PURCHASES}/k1`);
    expect(answer.headers.get('trace-id')).to.match(/^[0-9a-f]{32}$/);
    expect(fake.entered).to.have.length(1);
    expect(fake.entered[0]).to.include({ saleId: '7', userId: 'u1', requestId: 'k1', quantity: 2 });
    expect(fake.counted).to.deep.equal(['purchase accepted']);
    for (const path of ['/', '/healthz', '/readyz', '/s/7', '/v1/none', '/v2/sales/7/purchases', '/admin/v1/sales'])
      expect((await fetch(url + path)).status, path).to.equal(418);
    expect((await fetch(url + PURCHASES)).status).to.equal(405);
    expect((await fetch(`${url}/v1/sales/%zz`)).status).to.equal(400);
  });

  it('puts the path of the app before every address in an answer', async () => {
    await start((app) => app.use('/shop', router.middleware));
    expect((await buy(`/shop${PURCHASES}`)).headers.get('location')).to.equal(`/shop${PURCHASES}/k1`);
    expect((await buy(PURCHASES)).status).to.equal(418);
    fake.status = { status: 'ordered', orderId: '99', orderState: 'paid' };
    const status = await fetch(`${url}/shop${PURCHASES}/k1?wait=5`, { headers: { authorization: bearer() } });
    expect(await status.json()).to.deep.include({ requestId: 'k1', status: 'ordered', orderId: '99' });
    const twice = await fetch(`${url}/shop${PURCHASES}/k1?wait=5&wait=6`, { headers: { authorization: bearer() } });
    expect(twice.status, 'queries are read as ours are').to.equal(400);
  });

  it('uses the body that a body parser has left in the request', async () => {
    await start((app) => app.use(express.json(), router.middleware));
    expect((await buy()).status).to.equal(202);
    expect((await buy(PURCHASES, { 'idempotency-key': 'k2' }, null)).status).to.equal(202);
    expect((await buy(PURCHASES, { 'idempotency-key': 'k3' }, '{"amount":2}')).status).to.equal(400);
    expect(fake.entered.map(({ quantity }) => quantity)).to.deep.equal([2, 1]);
    for (const parser of [express.text({ type: '*/*' }), express.raw({ type: '*/*' })]) {
      await start((app) => app.use(parser, router.middleware));
      expect((await buy()).status).to.equal(202);
      expect(fake.entered.map(({ quantity }) => quantity)).to.deep.equal([2]);
    }
  });

  it('reports an error of the app if other middleware has consumed the body', async () => {
    const swallow: Middleware = (req, _, next) => void req.on('end', next).resume();
    const peek: Middleware = (req, _, next) => void req.once('data', () => setImmediate(next));
    const parseLikeExpress4: Middleware = (req, res, next) =>
      swallow(req, res, () => next(void Object.assign(req, { body: {} })));
    for (const [name, middleware] of Object.entries({ swallow, peek, parseLikeExpress4 })) {
      const lines: unknown[] = [];
      const log = { ...new FakeServices().services.log, error: (...line: unknown[]) => void lines.push(line[1]) };
      await start((app) => app.use(middleware, router.middleware), { log });
      for (const body of ['{"quantity":3}', 'garbage', '{"metadata":{"a":"\\ud800"}}']) {
        expect((await buy(PURCHASES, {}, body)).status, `${name} ${body}`).to.equal(500);
        const chunked = new Blob([body]).stream();
        expect((await buy(PURCHASES, {}, chunked)).status, `${name} ${body} without a length`).to.equal(500);
      }
      expect(fake.entered, name).to.deep.equal([]);
      expect(lines, name).to.deep.equal(Array(6).fill('unexpected error while answering a request'));
      expect(String(fake.bugs[0]), name).to.match(/Mount the router of Seckill before that middleware/);
    }
    await start((app) => app.use(swallow, router.middleware));
    expect((await buy(PURCHASES, {}, null)).status, 'no body was sent').to.equal(202);
  });

  it('reads text if the app has set an encoding', async () => {
    await start((app) => app.use((req, _, next) => next(void req.setEncoding('utf8')), router.middleware));
    expect((await buy(PURCHASES, {}, '{"metadata":{"a":"é🖋"}}')).status).to.equal(202);
    expect(fake.entered[0]?.metadata).to.deep.equal({ a: 'é🖋' });
  });

  it('accepts text from a parser only if it is valid Unicode', async () => {
    for (const parser of [express.json(), express.text({ type: '*/*' }), express.raw({ type: '*/*' })]) {
      await start((app) => app.use(parser, router.middleware));
      expect((await buy(PURCHASES, {}, '{"metadata":{"a":"\\ud800"}}')).status).to.equal(400);
      expect(fake.entered).to.deep.equal([]);
    }
  });

  it('checks a signature over the address that the client sent', async () => {
    const signed: string[] = [];
    const signatures = {
      areNeeded: () => true,
      begin: () => ({}) as never,
      finish: (_: unknown, { path }: { readonly path: string }) => {
        signed.push(path);
        return Promise.resolve(null);
      },
    };
    const admission = {
      isOn: true,
      anonymous: () => null,
      buyer: () => null,
      operator: () => null,
      answered: () => undefined,
    };
    await start((app) => app.use('/shop', router.middleware), {
      admission: partial(admission),
      signatures: partial(signatures),
    });
    expect((await buy(`/shop${PURCHASES}`)).status).to.equal(202);
    expect(signed).to.deep.equal([`/shop${PURCHASES}`]);
  });

  describe('with an authenticator of the app', () => {
    const startWith = (identify: (cookie: string | undefined) => Caller | null | Promise<Caller | null>) =>
      start((app) => app.use(router.middleware), {
        auth: authenticatorOf((req) => identify(req.headers.cookie), {
          clock,
          log: partial({ error: (line) => void logged.push(line) }),
        }),
      });
    const clock = new ManualClock();
    let logged: object[];
    beforeEach(() => (logged = []));
    const buyWithout = (cookie: string) => {
      const headers = { 'idempotency-key': 'k1', ...(cookie === '' ? {} : { cookie }) };
      return fetch(url + PURCHASES, { method: 'POST', headers });
    };

    it('accepts a cookie, and answers 401 if the authenticator returns null', async () => {
      await startWith((cookie) => (cookie === 'ann' ? { userId: 'ann', roles: ['vip'] } : null));
      expect((await buyWithout('ann')).status).to.equal(202);
      expect(fake.entered[0]).to.include({ userId: 'ann' });
      const unknown = await buyWithout('');
      expect([unknown.status, unknown.headers.get('www-authenticate')]).to.deep.equal([401, null]);
      expect(await unknown.json())
        .to.include({ code: 'unauthorized' })
        .and.have.property('detail')
        .not.contain('Bearer');
      expect(fake.entered).to.have.length(1);
    });

    it('waits for an asynchronous authenticator', async () => {
      await startWith(async (cookie) => (cookie === undefined ? null : { userId: cookie }));
      expect((await buyWithout('bob')).status).to.equal(202);
      expect(fake.entered[0]).to.include({ userId: 'bob' });
    });

    it('answers 503 if the authenticator fails and 401 for a bad user id', async () => {
      const bad = new Error('the session store is away');
      for (const [identify, status, code] of [
        [
          () => {
            throw bad;
          },
          503,
          'unavailable',
        ],
        [() => Promise.reject(bad), 503, 'unavailable'],
        [() => ({ userId: '' }), 401, 'unauthorized'],
        [() => Promise.resolve({ userId: 'a b' }), 401, 'unauthorized'],
        [() => Promise.resolve(undefined as unknown as Caller), 503, 'unavailable'],
      ] as const) {
        logged = [];
        await startWith(identify);
        for (let nth = 0; nth < 3; nth++) {
          const answer = await buyWithout('ann');
          expect([answer.status, ((await answer.json()) as { code: string }).code]).to.deep.equal([status, code]);
        }
        expect(logged).to.have.length(1);
        clock.advance(59_999);
        await buyWithout('ann');
        expect(logged).to.have.length(1);
        clock.advance(1);
        await buyWithout('ann');
        expect(logged).to.have.length(2);
        expect([fake.bugs, fake.entered]).to.deep.equal([[], []]);
      }
    });

    it('refuses every write from a page of another site, but no read', async () => {
      await startWith(() => ({ userId: 'ann' }));
      const writes = routesOf(ROUTES, 'buyers').filter(({ method, asks }) => method !== 'get' && asks.token);
      expect(writes.length).to.be.above(4);
      const send = (method: string, path: string, site: string) =>
        fetch(url + path.replaceAll(/\{\w+\}/g, '7'), {
          method: method.toUpperCase(),
          headers: { 'sec-fetch-site': site, 'idempotency-key': 'k1' },
        });
      for (const { method, path } of writes) {
        const answer = await send(method, path, 'cross-site');
        expect([answer.status, ((await answer.json()) as { code: string }).code], path).to.deep.equal([403, 'denied']);
      }
      expect(fake.entered).to.deep.equal([]);
      for (const site of ['same-origin', 'same-site', 'none'])
        expect((await send('post', PURCHASES, site)).status, site).to.equal(202);
      expect((await send('get', `${PURCHASES}/k1`, 'cross-site')).status).to.equal(200);
      await start((app) => app.use(router.middleware));
      expect((await buy(PURCHASES, { 'sec-fetch-site': 'cross-site' })).status, 'with a bearer token').to.equal(202);
    });
  });

  it('answers running requests and refuses new requests with 503 while it drains', async () => {
    await start((app) => app.use(router.middleware));
    let accept = (): void => undefined;
    fake.enter = () => new Promise((resolve) => (accept = () => resolve({ outcome: 'accepted' })));
    const underWay = buy();
    await until(() => fake.entered.length === 1);
    let isDrained = false;
    const drained = router.drain(5_000).then(() => (isDrained = true));
    const late = await buy(PURCHASES, { 'idempotency-key': 'k2' });
    expect([late.status, late.headers.get('connection')]).to.deep.equal([503, 'close']);
    expect(await late.json()).to.include({ code: 'unavailable', retryable: true });
    expect((await fetch(`${url}/mine`)).status).to.equal(418);
    expect(isDrained).to.equal(false);
    accept();
    expect((await underWay).status).to.equal(202);
    await drained;
    expect(fake.entered).to.have.length(1);
  });

  it('drains at once if nothing is running, and in limited time if a request hangs', async () => {
    await start((app) => app.use(router.middleware));
    await router.drain(60_000);
    await start((app) => app.use(router.middleware));
    fake.enter = () => new Promise(() => undefined);
    buy().catch(() => undefined); // cut off at the end
    await until(() => fake.entered.length === 1);
    const startedMs = performance.now();
    const tookMs = await grantedMsOf(() => router.drain(100));
    expect(performance.now() - startedMs).to.be.at.least(90);
    expect(tookMs).to.be.below(5_000);
  });
});
