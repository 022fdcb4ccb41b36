import { expect } from 'chai';
import { ServerResponse, type IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import request from 'supertest';
import { OperationalError } from '../../../src/core/errors.js';
import type { PurchaseStatus } from '../../../src/core/outcome.js';
import type { Denial, Principal } from '../../../src/http/auth.js';
import { EventStream } from '../../../src/http/event-stream.js';
import type { HttpServices } from '../../../src/http/services.js';
import type { FollowAnswer, FollowQuery } from '../../../src/purchase/follow-purchase.js';
import { stepOf, type PurchaseStep } from '../../../src/purchase/follow-purchase.js';
import { EventStreamClient } from '../../helpers/event-stream-client.js';
import { bearer, FakeServices, startServer, until, type Started } from './http-harness.js';
import { grantedMsOf } from '../../chaos/harness/wait.js';
import { partial } from '../../helpers/partial.js';

const PATH = '/v1/sales/7/purchases/k1/events';
const ORDERED: PurchaseStatus = { status: 'ordered', orderId: '101', orderState: 'pending_payment' };
const TIMES = { heartbeatMs: 15_000, streamMaxMs: 60_000, retryMs: 1500 };

describe('purchase event stream over HTTP', () => {
  let server: Started;
  let asked: FollowQuery[];
  let closed: number;
  /** Steps of the purchase. Null ends it. */
  let make: (status: PurchaseStatus | null) => void;
  let clients: EventStreamClient[];

  const serve = async (
    answer?: FollowAnswer['outcome'] | Error,
    times = TIMES,
    overrides: Partial<HttpServices> = {},
  ): Promise<FakeServices> => {
    [asked, closed, clients] = [[], 0, []];
    const waiting: (PurchaseStep | null)[] = [];
    const wakes = new Set<() => void>();
    const wake = (): void => wakes.forEach((one) => one());
    make = (status) => {
      waiting.push(status === null ? null : stepOf(status));
      wake();
    };
    async function* steps({ signal }: FollowQuery): AsyncGenerator<PurchaseStep> {
      signal.addEventListener('abort', () => wake());
      while (!signal.aborted) {
        const step = waiting.shift();
        if (step === null) return;
        if (step !== undefined) yield step;
        else await new Promise<void>((resolve) => wakes.add(resolve));
      }
    }
    const open = async (query: FollowQuery): Promise<FollowAnswer> => {
      asked.push(query);
      if (answer instanceof Error) throw answer;
      if (answer !== undefined && answer !== 'following') return { outcome: answer };
      return { outcome: 'following', steps: () => steps(query), close: () => void closed++ };
    };
    const fake = new FakeServices({ followPurchase: partial({ open }), streamTimes: times, ...overrides });
    server = await startServer(fake);
    return fake;
  };
  const listen = async (lastEventId?: string): Promise<EventStreamClient> => {
    const options = { token: bearer(), ...(lastEventId === undefined ? {} : { lastEventId }) };
    const client = await EventStreamClient.open(server.url + PATH, options);
    clients.push(client);
    return client;
  };
  afterEach(async () => {
    for (const client of clients) client.close();
    await server.stop();
  });

  it('sends the headers, an event per step with the body of GET, and the end', async () => {
    const fake = await serve();
    const client = await listen();
    expect(client.status).to.equal(200);
    expect(client.headers).to.include({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
      connection: 'close',
    });
    make({ status: 'pending' });
    await client.received('pending');
    make(ORDERED);
    make({ ...ORDERED, orderState: 'paid' });
    make(null);
    await client.end();
    expect(client.retryMs).to.equal(1500);
    expect(client.events).to.deep.equal([
      { id: 'pending', event: 'pending', data: { requestId: 'k1', saleId: '7', status: 'pending' } },
      { id: 'ordered', event: 'ordered', data: { requestId: 'k1', saleId: '7', ...ORDERED } },
      { id: 'paid', event: 'paid', data: { requestId: 'k1', saleId: '7', ...ORDERED, orderState: 'paid' } },
    ]);
    expect([closed, fake.counted]).to.deep.equal([1, ['purchase_events stream']]);
  });

  it('returns only the headers of the stream for HEAD, and follows nothing', async () => {
    await serve();
    const { headers } = await request(server.url).head(PATH).set('authorization', bearer()).expect(200);
    expect(headers).to.include({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
    });
    expect(headers).to.have.property('trace-id');
    expect(closed).to.equal(1);
  });

  it('follows a purchase from the last seen event, and ignores a malformed Last-Event-ID', async () => {
    await serve();
    for (const lastEventId of [undefined, 'ordered', 'toString']) await listen(lastEventId);
    expect(asked.map(({ userId, saleId, requestId, seen }) => [userId, saleId, requestId, seen])).to.deep.equal([
      ['u1', '7', 'k1', null],
      ['u1', '7', 'k1', 'ordered'],
      ['u1', '7', 'k1', null],
    ]);
  });

  for (const [answer, status, code] of [
    ['not_found', 404, 'purchase_not_found'],
    ['overloaded', 503, 'overloaded'],
    [new OperationalError('redis', 'gone', { retryable: true }), 503, 'unavailable'],
  ] as const) {
    it(`answers ${code} with ${status} before any stream [S7, R8]`, async () => {
      await serve(answer);
      const { body } = await request(server.url).get(PATH).set('authorization', bearer()).expect(status);
      expect(body.code).to.equal(code);
    });
  }

  it('returns 204 to end an EventSource whose client has seen the last event', async () => {
    await serve('ended');
    const { text } = await request(server.url).get(PATH).set('authorization', bearer()).expect(204);
    expect(text).to.equal('');
  });

  it('returns 401 without a token and 400 for a malformed address [S4]', async () => {
    await serve();
    await request(server.url).get(PATH).expect(401);
    await request(server.url).get('/v1/sales/x/purchases/k1/events').set('authorization', bearer()).expect(400);
    await request(server.url).head(PATH).set('authorization', bearer()).expect(200);
    expect([asked.length, closed]).to.deep.equal([1, 1]);
  });

  it('sends comments to keep the stream alive, and ends it after its maximum time', async () => {
    await serve(undefined, { ...TIMES, heartbeatMs: 10, streamMaxMs: 60 });
    const client = await listen();
    await client.end();
    expect(client.comments).to.be.within(1, 10);
    expect(asked[0]?.signal.aborted).to.equal(true);
  });

  for (const [what, later] of [
    ['its token is revoked', 'revoked'],
    ['its token expires', 'expired'],
    ['the caller is another one', { userId: 'u2', roles: [], expiresAtMs: Infinity }],
  ] as const) {
    it(`ends at the next heartbeat when ${what}`, async () => {
      let answer: Principal | Denial = { userId: 'u1', roles: [], expiresAtMs: Infinity };
      await serve(undefined, { ...TIMES, heartbeatMs: 10 }, { auth: { authenticate: () => answer } });
      const client = await listen();
      await until(() => client.comments > 1);
      answer = later;
      await client.end();
      expect(closed).to.equal(1);
    });
  }

  it('stays open while the token cannot be checked', async () => {
    let answer: Principal | Denial = { userId: 'u1', roles: [], expiresAtMs: Infinity };
    await serve(undefined, { ...TIMES, heartbeatMs: 10 }, { auth: { authenticate: async () => answer } });
    const client = await listen();
    answer = 'keys_unavailable';
    const before = client.comments;
    await until(() => client.comments > before + 2);
  });

  it('ends at once when the server drains [T13]', async () => {
    await serve();
    const client = await listen();
    expect(await grantedMsOf(() => server.drain(8000))).to.be.below(2000);
    await client.end();
    expect(closed).to.equal(1);
  });

  it('stops following when the client disconnects [S7]', async () => {
    await serve();
    (await listen()).close();
    await until(() => closed === 1);
  });
});

describe('event-stream', () => {
  /** A response whose client reads nothing. */
  function slowResponse(): { res: ServerResponse; req: IncomingMessage } {
    const socket = Object.assign(new PassThrough({ highWaterMark: 16 }), { setNoDelay: () => socket });
    const req = { method: 'GET', httpVersionMajor: 1, httpVersionMinor: 1, headers: {}, socket } as never;
    const res = new ServerResponse(req);
    res.assignSocket(socket as never);
    return { res, req };
  }

  it('disconnects a client at the next heartbeat if the client reads nothing [S7]', async () => {
    const { res, req } = slowResponse();
    const stream = new EventStream(
      req,
      res,
      { ...TIMES, heartbeatMs: 10 },
      async () => true,
      () => undefined,
    );
    await until(() => res.destroyed);
    stream.send({ id: 'paid', event: 'paid', data: {} });
    stream.end();
  });

  it('writes nothing to a full socket [S7]', () => {
    const { res, req } = slowResponse();
    const stream = new EventStream(
      req,
      res,
      { ...TIMES, heartbeatMs: 60_000 },
      async () => true,
      () => undefined,
    );
    for (let i = 0; i < 3 && !res.destroyed; i++)
      stream.send({ id: 'x', event: 'x', data: { text: 'x'.repeat(40_000) } });
    expect(res.destroyed).to.equal(true);
    stream.end();
  });
});
