import { expect } from 'chai';
import { bearer, FakeServices, RawClient, rawPurchase, startServer, type Started } from '../unit/http/http-harness.js';

/** Connections of each kind. Each costs two file descriptors, because client and server share a process. */
const IDLE = 2000;
const SLOW = 200;
const PURCHASES = 100;
const HEADERS_TIMEOUT_MS = 3000;
const REQUEST_TIMEOUT_MS = 4000;
const TRICKLE_EVERY_MS = 100;
/** Limit for the median purchase, which takes a millisecond unless slow clients block it. */
const PURCHASE_MAX_MS = 1000;

describe('many slow clients', () => {
  let server: Started;
  let polls = 0;
  const fake = new FakeServices({
    getPurchase: {
      get: ({ signal }) =>
        new Promise((resolve) => {
          polls++;
          signal.addEventListener('abort', () => resolve({ status: 'pending' }));
        }),
    },
  });

  before(async () => {
    server = await startServer(fake, {
      maxConnections: 10_000,
      keepAliveTimeoutMs: 60_000,
      headersTimeoutMs: HEADERS_TIMEOUT_MS,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
    });
  });
  after(() => server.stop());

  const connected = (count: number): Promise<RawClient[]> =>
    Promise.all(Array.from({ length: count }, () => RawClient.to(server.port)));

  it('serves buyers beside silent, slow and polling clients, and closes clients that are too slow [S7]', async () => {
    const startedMs = Date.now();
    const idle = await connected(IDLE);
    const heads = await connected(SLOW);
    const bodies = await connected(SLOW);
    const waiting = await connected(SLOW);
    for (const client of heads) client.say('POST /v1/sales/7/purchases HTTP/1.1', 'Host: localhost', 'X-A: ');
    for (const client of bodies) client.say(rawPurchase('{', 'Idempotency-Key: slow', 'Content-Length: 2000'));
    const poll = [
      'GET /v1/sales/7/purchases/k1?wait=30 HTTP/1.1',
      'Host: localhost',
      `Authorization: ${bearer()}`,
      '',
      '',
    ];
    for (const client of waiting) client.say(...poll);
    // an occasional byte, which must not extend the wait
    const trickle = setInterval(() => {
      for (const client of [...heads, ...bodies]) if (!client.closed) client.say(' ');
    }, TRICKLE_EVERY_MS);

    try {
      const buyer = await RawClient.to(server.port);
      const tookMs: number[] = [];
      for (let i = 0; i < PURCHASES; i++) {
        const sentMs = performance.now();
        const answer = await buyer.say(rawPurchase('{"quantity":1}', `Idempotency-Key: k${i}`)).answer();
        tookMs.push(performance.now() - sentMs);
        expect(answer?.status).to.equal(202);
      }
      const open = [...idle, ...heads, ...bodies, ...waiting].filter(({ closed }) => !closed);
      if (Date.now() - startedMs < HEADERS_TIMEOUT_MS)
        expect(open.length, 'the crowd is there').to.equal(IDLE + 3 * SLOW);
      const medianMs = tookMs.sort((a, b) => a - b)[PURCHASES / 2];
      expect(medianMs, 'half of the purchases take so long, ms').to.be.lessThan(PURCHASE_MAX_MS);

      const statuses = await Promise.all([...heads, ...bodies].map(async (client) => (await client.answer())?.status));
      expect(new Set(statuses)).to.deep.equal(new Set([408]));
      await Promise.all([...idle, ...heads, ...bodies].map((client) => client.end()));
      expect(fake.entered.length, 'no slow one got in').to.equal(PURCHASES);
      expect([polls, waiting.filter(({ closed }) => closed).length], 'polls go on').to.deep.equal([SLOW, 0]);
    } finally {
      clearInterval(trickle);
    }
    await server.stop();
    const statuses = await Promise.all(waiting.map(async (client) => (await client.answer())?.body));
    expect(statuses.filter((body) => body?.includes('pending')).length).to.equal(SLOW);
  });
});
