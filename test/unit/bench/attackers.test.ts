import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { addressIn } from '../../../bench/attack/addresses.js';
import { Crowd } from '../../../bench/attack/crowd.js';
import { SlowHeaders } from '../../../bench/attack/slow-headers.js';
import { waitUntil } from '../../../deploy/local/stack/probes.js';

const WAIT = { timeoutMs: 20_000, everyMs: 10 };

/** Attackers against a server of node:http alone: what they do must not depend on the product. */
describe('attackers of the bench', () => {
  let server: Server;

  async function serve(answer: (req: IncomingMessage, res: ServerResponse) => void, options = {}): Promise<number> {
    server = createServer(options, answer);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port;
  }

  afterEach(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );

  const request = (): Buffer => Buffer.from('POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}');

  it('a crowd sends what is due and no more, its addresses take turns, and it counts what it hears', async () => {
    const asked = new Map<string, number>();
    const port = await serve((req, res) => {
      const address = req.socket.remoteAddress ?? '';
      asked.set(address, (asked.get(address) ?? 0) + 1);
      res.writeHead(address === addressIn('flood', 0) ? 403 : 429, { 'Content-Length': 0 }).end();
    });
    const addressOf = (place: number): string => addressIn('flood', place % 4);
    const heard: number[] = [];
    const note = (place: number): void => void heard.push(place);
    const crowd = new Crowd({ port, connections: 8, addressOf, rate: 1000, total: 40, request, heard: note });
    await crowd.start();
    const sendUntil = async (elapsedMs: number, count: number): Promise<void> => {
      const done = await waitUntil(() => {
        crowd.sendDue(elapsedMs);
        return Promise.resolve(heard.length >= count && crowd.isAnswered);
      }, WAIT);
      expect(done, `${count} answers, ${heard.length} came`).to.equal(true);
    };
    for (let elapsedMs = 0; elapsedMs < 8; elapsedMs++) await sendUntil(elapsedMs, elapsedMs + 1); // one is due at once
    expect(heard).to.have.length(8);
    expect([...asked.values()], 'two connections of each address').to.deep.equal([2, 2, 2, 2]);
    await sendUntil(60_000, 40);
    const denied = asked.get(addressIn('flood', 0)) ?? 0;
    expect(crowd.end()).to.deep.equal({ sent: 40, answered: 40, byStatus: { 403: denied, 429: 40 - denied } });
    expect(heard.sort((a, b) => a - b)).to.deep.equal(Array.from({ length: 40 }, (_, place) => place));
  });

  it('a connection that the server closes comes again, from the same address', async () => {
    const sockets = new Set<unknown>();
    const port = await serve((req, res) => {
      sockets.add(req.socket);
      expect(req.socket.remoteAddress).to.equal(addressIn('oversized', 0));
      res.writeHead(413, { 'Content-Length': 0, Connection: 'close' }).end();
    });
    const crowd = new Crowd({
      port,
      connections: 1,
      rate: 1000,
      total: 3,
      request,
      addressOf: (place) => addressIn('oversized', place),
    });
    await crowd.start();
    const done = await waitUntil(() => {
      crowd.sendDue(1000);
      return Promise.resolve(sockets.size === 3 && crowd.isAnswered);
    }, WAIT);
    expect(done).to.equal(true);
    expect(crowd.end()).to.deep.equal({ sent: 3, answered: 3, byStatus: { 413: 3 } });
  });

  it('slow ones never finish a request, are closed by headersTimeout, and come again', async () => {
    let requests = 0;
    const port = await serve(() => requests++, { headersTimeout: 300, connectionsCheckingInterval: 50 });
    server.on('clientError', (_error, socket) =>
      socket.end('HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n'),
    );
    const slow = new SlowHeaders({ port, path: '/x', sockets: 3, addressOf: (place) => addressIn('slow', place) });
    let tally = slow.tally;
    const done = await waitUntil(() => Promise.resolve((tally = slow.tally).closed >= 6 && tally.opened >= 9), WAIT);
    expect(done, JSON.stringify(tally)).to.equal(true);
    const { closed, toldWhy, longestMs } = slow.end();
    expect(toldWhy).to.equal(closed);
    expect(longestMs).to.be.at.least(250);
    expect(requests).to.equal(0);
  });

  it('slow ones that nobody closes are told of with their age', async () => {
    const port = await serve(() => undefined, { headersTimeout: 0, requestTimeout: 0 });
    const slow = new SlowHeaders({ port, path: '/x', sockets: 2, addressOf: (place) => addressIn('slow', place) });
    await waitUntil(() => Promise.resolve(slow.tally.opened === 2), WAIT);
    const openedMs = performance.now(); // their age counts from here at the latest; to open them may take its time
    await waitUntil(() => Promise.resolve(performance.now() - openedMs > 100), WAIT);
    const { closed, longestMs } = slow.end();
    expect(closed).to.equal(0);
    expect(longestMs).to.be.at.least(100);
  });
});
