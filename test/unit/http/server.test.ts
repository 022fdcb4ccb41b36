import { expect } from 'chai';
import type { PurchaseOutcome, PurchaseStatus } from '../../../src/core/outcome.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import {
  bearer,
  FakeServices,
  RawClient,
  type RawAnswer,
  rawPurchase,
  sendPurchase,
  startServer,
  until,
  type Started,
} from './http-harness.js';

const KEY = 'Idempotency-Key: k1';

describe('http server', () => {
  let fake: FakeServices;
  let server: Started;
  const start = async (options: Parameters<typeof startServer>[1] = {}): Promise<void> => {
    server = await startServer(fake, options);
  };
  /** Makes the gate wait until the test calls the returned function with an answer. */
  function holdGate(): (outcome: PurchaseOutcome) => void {
    let answer: (outcome: PurchaseOutcome) => void = () => undefined;
    const held = new Promise<PurchaseOutcome>((resolve) => (answer = resolve));
    fake.enter = () => held;
    return (outcome) => answer(outcome);
  }
  const purchase = (): Promise<Response> => sendPurchase(server);

  beforeEach(() => {
    fake = new FakeServices();
  });
  afterEach(() => server.stop());

  it('closes and counts every connection beyond the maximum [S7]', async () => {
    await start({ maxConnections: 2, headersTimeoutMs: 5000, requestTimeoutMs: 5000 });
    const answer = holdGate();
    const inside = [await RawClient.to(server.port), await RawClient.to(server.port)];
    for (const client of inside) client.say(rawPurchase('', KEY));
    await until(() => fake.entered.length === 2);
    const outside = await RawClient.to(server.port);
    await outside.end();
    await until(() => fake.dropped === 1);
    answer({ outcome: 'accepted' });
    expect((await inside[1]?.answer())?.status).to.equal(202);
  });

  it('closes only idle connections once nine tenths of the connections are in use [S7]', async () => {
    const clock = new ManualClock();
    fake = new FakeServices({ clock });
    await start({ maxConnections: 10, keepAliveTimeoutMs: 600_000 });
    const idle = await Promise.all(Array.from({ length: 7 }, () => RawClient.to(server.port)));
    for (const client of idle) expect((await client.say(rawPurchase('', KEY)).answer())?.status).to.equal(202);
    const answer = holdGate();
    const busy = await RawClient.to(server.port);
    busy.say(rawPurchase('', KEY));
    await until(() => fake.entered.length === 8);
    expect(idle.filter(({ closed }) => closed)).to.have.length(0);
    const honest = await RawClient.to(server.port);
    await Promise.all(idle.map((client) => client.end()));
    answer({ outcome: 'accepted' });
    expect((await busy.answer())?.status).to.equal(202);
    expect((await honest.say(rawPurchase('', KEY)).answer())?.status).to.equal(202);
    expect(fake.dropped).to.equal(0);
  });

  it('answers 16 of 3,000 pipelined requests, and closes the connection [S7]', async () => {
    let asked = 0;
    const get = (): Promise<PurchaseStatus> => Promise.resolve({ status: ++asked > 0 ? 'pending' : 'not_found' });
    fake = new FakeServices({ getPurchase: { get } });
    await start();
    const client = await RawClient.to(server.port);
    const head = ['GET /v1/sales/7/purchases/k1 HTTP/1.1', 'Host: x', `Authorization: ${bearer()}`, '', ''];
    client.say(head.join('\r\n').repeat(3000));
    const answers: RawAnswer[] = [];
    for (let next = await client.answer(); next !== null; next = await client.answer()) answers.push(next);
    expect(answers.map(({ status }) => status)).to.deep.equal(Array(16).fill(200));
    expect(answers.at(-1)?.headers.get('connection')).to.equal('close');
    expect(asked, 'executed requests').to.equal(16);
  });

  it('answers any number of requests on one connection if each follows the previous response', async () => {
    await start();
    const client = await RawClient.to(server.port);
    for (let nth = 0; nth < 40; nth++) {
      expect((await client.say(rawPurchase('', `Idempotency-Key: k${nth}`)).answer())?.status).to.equal(202);
    }
  });

  it('sends no 400 in place of the response if garbage follows a running purchase', async () => {
    await start();
    const answer = holdGate();
    const client = await RawClient.to(server.port);
    client.say(rawPurchase('{}', KEY));
    await until(() => fake.entered.length === 1);
    client.say('nonsense\r\n\r\n');
    expect(await client.answer(), 'the connection just ends: the outcome is unknown to the client').to.equal(null);
    answer({ outcome: 'accepted' });
  });

  it('returns 400 and closes if garbage comes first or after a response', async () => {
    await start();
    for (const first of ['', rawPurchase('{}', KEY)]) {
      const client = await RawClient.to(server.port);
      if (first !== '') expect((await client.say(first).answer())?.status).to.equal(202);
      const answer = await client.say('nonsense\r\n\r\n').answer();
      expect([answer?.status, answer?.headers.get('connection')]).to.deep.equal([400, 'close']);
      await client.end();
    }
  });

  it('returns 400 and skips the gate if the chunks of a body are broken', async () => {
    await start();
    const client = await RawClient.to(server.port);
    client.say(rawPurchase('zz\r\n', KEY, 'Transfer-Encoding: chunked'));
    expect((await client.answer())?.status).to.equal(400);
    await client.end();
    expect(fake.entered).to.deep.equal([]);
  });

  it('answers running requests with Connection: close and refuses new connections while draining', async () => {
    await start();
    const answer = holdGate();
    const client = await RawClient.to(server.port);
    client.say(rawPurchase('{}', KEY));
    await until(() => fake.entered.length === 1);
    const drained = server.drain(5000);
    const refused = await purchase().catch((error: Error) => error);
    expect(refused).to.be.instanceOf(Error);
    answer({ outcome: 'accepted' });
    const received = await client.answer();
    expect([received?.status, received?.headers.get('connection')]).to.deep.equal([202, 'close']);
    await drained;
  });

  it('answers a request that was on its way when draining began [T13]', async () => {
    await start();
    const client = await RawClient.to(server.port);
    expect((await client.say(rawPurchase('', KEY)).answer())?.status).to.equal(202);
    const drained = server.drain(5000);
    const received = await client.say(rawPurchase('', KEY)).answer();
    expect([received?.status, received?.headers.get('connection')]).to.deep.equal([202, 'close']);
    await drained;
  });

  it('closes idle and silent connections and answers a long poll at once while draining', async () => {
    let polled: AbortSignal | undefined;
    fake = new FakeServices({
      getPurchase: {
        get: ({ signal }) =>
          new Promise((resolve) => {
            polled = signal;
            signal.addEventListener('abort', () => resolve({ status: 'pending' }));
          }),
      },
    });
    await start({ headersTimeoutMs: 60_000, requestTimeoutMs: 60_000, keepAliveTimeoutMs: 60_000 });
    const silent = await RawClient.to(server.port);
    const idle = await RawClient.to(server.port);
    expect((await idle.say(rawPurchase('', KEY)).answer())?.status).to.equal(202);
    const poll = fetch(`${server.url}/v1/sales/7/purchases/k1?wait=30`, { headers: { authorization: bearer() } });
    await until(() => polled !== undefined);
    await server.drain(60_000);
    expect(await (await poll).json()).to.include({ status: 'pending' });
    await Promise.all([silent.end(), idle.end()]);
  });

  it('cuts a request that does not end in time while draining', async () => {
    await start();
    holdGate();
    const client = await RawClient.to(server.port);
    client.say(rawPurchase('{}', KEY));
    await until(() => fake.entered.length === 1);
    await server.drain(50);
    expect(await client.answer()).to.equal(null);
  });

  it('does not hang if it is drained twice or before it listens', async () => {
    await start();
    await Promise.all([server.drain(100), server.drain(100)]);
    await server.drain(100);
  });

  it('rejects listen if the port is taken', async () => {
    await start();
    const second = await startServer(fake, { port: server.port }).catch((error: NodeJS.ErrnoException) => error);
    expect((second as NodeJS.ErrnoException).code).to.equal('EADDRINUSE');
  });
});
