import { expect } from 'chai';
import {
  FakeServices,
  RawClient,
  rawPurchase,
  sendPurchase,
  startServer,
  type Started,
} from '../unit/http/http-harness.js';
import { pause } from '../chaos/harness/wait.js';
import { partial } from '../helpers/partial.js';

const KEY = 'Idempotency-Key: k1';

/** Tests the time limits of the HTTP server in real time. Tests that need no waiting are in test/unit/http. */
describe('slow HTTP clients', () => {
  let fake: FakeServices;
  let server: Started;
  const start = async (options: Parameters<typeof startServer>[1] = {}): Promise<void> => {
    server = await startServer(fake, options);
  };
  const purchase = (): Promise<Response> => sendPurchase(server);

  beforeEach(() => {
    fake = new FakeServices();
  });
  afterEach(() => server.stop());

  const soon = { headersTimeoutMs: 400, requestTimeoutMs: 800 };

  it('answers 408 and closes the connection if headers come too slowly, and serves others meanwhile [S7]', async () => {
    await start({ ...soon, requestTimeoutMs: 60_000 });
    const client = await RawClient.to(server.port);
    client.say('POST /v1/sales/7/purchases HTTP/1.1', 'Host: localhost', 'X-A: ');
    const trickle = setInterval(() => !client.closed && client.say('x'), 50); // which must not extend the wait
    expect((await purchase()).status).to.equal(202);
    const answer = await client.answer().finally(() => clearInterval(trickle));
    expect(answer?.status).to.equal(408);
    expect(JSON.parse(answer?.body ?? '')).to.include({ code: 'request_timeout' });
    await client.end();
    expect(fake.counted).to.include('other request_timeout');
  });

  it('answers 408, closes the connection and does not call the gate if a body is too slow [S7]', async () => {
    await start(soon);
    const client = await RawClient.to(server.port);
    client.say(rawPurchase('{"q', KEY, 'Content-Length: 14'));
    expect((await client.answer())?.status).to.equal(408);
    await client.end();
    expect(fake.entered).to.deep.equal([]);
  });

  it('does not carry out a request that is completed after its 408 [S7]', async () => {
    await start(soon);
    const halves: readonly (readonly [string, string])[] = [
      ['', rawPurchase('', KEY)],
      [rawPurchase('{"q', KEY, 'Content-Length: 14'), 'uantity":1}'],
    ];
    for (const [early, late] of halves) {
      const client = await RawClient.to(server.port, { allowHalfOpen: true });
      if (early !== '') client.say(early);
      expect((await client.answer())?.status).to.equal(408);
      client.socket.end(late);
      await client.end();
    }
    expect((await purchase()).status, 'the server has read what came before').to.equal(202);
    expect(fake.entered).to.have.length(1);
  });

  it('closes a connection that sends nothing [S7]', async () => {
    await start(soon);
    const client = await RawClient.to(server.port);
    await client.end();
  });

  it('closes a connection that idles after its answer [S7]', async () => {
    await start({ keepAliveTimeoutMs: 100 });
    const client = await RawClient.to(server.port);
    expect((await client.say(rawPurchase('', KEY)).answer())?.headers.get('connection')).to.equal('keep-alive');
    await client.end();
  });

  it('closes a connection if the client never reads its answer [S7]', async () => {
    const metricsPage = { isFor: () => true, read: () => Promise.resolve('x'.repeat(20_000_000)) };
    fake = new FakeServices({ metricsPage: partial(metricsPage) });
    await start({ stalledTimeoutMs: 100 });
    const client = await RawClient.to(server.operatorsPort);
    client.say('GET /metrics HTTP/1.1', 'Host: localhost', '', '');
    client.socket.pause();
    await pause(1000);
    client.socket.resume();
    expect(await client.answer(), 'cut before its end').to.equal(null);
  });

  it('delivers its 413 to a client that keeps sending before it reads [S6]', async () => {
    await start();
    const client = await RawClient.to(server.port);
    // so that the parts arrive separately
    const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 60));
    client.socket.pause();
    client.say(rawPurchase('', KEY, 'Content-Length: 10000000'));
    for (let i = 0; i < 5; i++) {
      client.say(' '.repeat(50_000));
      await pause();
    }
    client.socket.resume();
    expect((await client.answer())?.status).to.equal(413);
  });
});
