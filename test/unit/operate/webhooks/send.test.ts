import { expect } from 'chai';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { NetworkSet } from '../../../../src/admission/lists/network-set.js';
import { createWebhookVerifier } from '../../../../src/http/webhook-signature.js';
import { createWebhookSender, type Sent } from '../../../../src/operate/webhooks/send.js';

const SECRET = 'whsec_a-secret-of-a-test';
const EVENT = { id: '41-paid-99', type: 'order.paid', saleId: '7', orderId: '99', at: 1_764_000_000_000 };
const NOW_MS = 1_764_000_000_500;
const SHORT_MS = 300;
const HERE = new NetworkSet(['127.0.0.1', '::1']);

describe('send a webhook', () => {
  let server: Server;
  let answer: (req: IncomingMessage, res: ServerResponse, body: string) => void;
  let requests: { readonly req: IncomingMessage; readonly body: string }[];

  beforeEach(async () => {
    requests = [];
    server = createServer((req, res) => {
      let body = '';
      req.on('data', (part: Buffer) => (body += part));
      req.on('end', () => {
        requests.push({ req, body });
        answer(req, res, body);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });
  const urlOf = (host = '127.0.0.1'): string => `http://${host}:${(server.address() as AddressInfo).port}/hook`;
  const send = (url = urlOf(), allowed = HERE): Promise<Sent> =>
    createWebhookSender(allowed, { nowMs: () => NOW_MS }, SHORT_MS)({ url, secret: SECRET }, EVENT);
  const status = (code: number, headers = {}): void => {
    answer = (_, res) => void res.writeHead(code, headers).end();
  };

  it('signs the body as the verifier of payment reports expects', async () => {
    status(204);
    expect(await send()).to.deep.equal({ outcome: 'delivered', detail: 'status 204' });
    const [{ req, body } = expect.fail()] = requests;
    const verifier = createWebhookVerifier([SECRET], () => NOW_MS);
    expect(verifier.verify(req.headers['webhook-signature'], body)).to.equal('good');
    expect(verifier.verify(req.headers['webhook-signature'], `${body} `)).to.equal('invalid');
    expect(req.headers).to.include({ 'webhook-id': EVENT.id, 'content-type': 'application/json' });
    expect(JSON.parse(body)).to.deep.equal(EVENT);
  });

  it('tells an event that is rejected from a receiver in trouble', async () => {
    const outcomes: Record<number, string> = {};
    for (const code of [200, 299, 301, 400, 401, 403, 404, 408, 410, 422, 425, 429, 500, 503]) {
      status(code);
      outcomes[code] = (await send()).outcome;
    }
    expect(outcomes).to.deep.equal({
      ...{ 200: 'delivered', 299: 'delivered' },
      ...{
        301: 'failed',
        401: 'failed',
        403: 'failed',
        404: 'failed',
        410: 'failed',
        408: 'failed',
        425: 'failed',
        429: 'failed',
        500: 'failed',
        503: 'failed',
      },
      ...{ 400: 'rejected', 422: 'rejected' },
    });
  });

  it('follows no redirect', async () => {
    status(307, { location: urlOf() });
    expect(await send()).to.deep.equal({ outcome: 'failed', detail: 'status 307' });
    expect(requests).to.have.length(1);
  });

  it('reads a bounded part of the answer', async () => {
    let ended = false;
    answer = (_, res) => {
      res.on('close', () => (ended = true));
      const more = (): void => void (ended || res.write('x'.repeat(65_536), more));
      res.writeHead(200);
      more();
    };
    expect((await send()).outcome).to.equal('delivered');
  });

  it('fails when the receiver is slow, closes within its answer, or is not there', async () => {
    answer = () => undefined;
    expect(await send(), 'no answer').to.deep.equal({ outcome: 'failed', detail: 'no answer within 0.3 s' });
    answer = (_, res) => void res.writeHead(200, { 'content-length': '10' }).write('half');
    expect(await send(), 'half an answer').to.deep.equal({ outcome: 'failed', detail: 'no answer within 0.3 s' });
    answer = (req, res) => {
      res.writeHead(200, { 'content-length': '10' }).write('half', () => req.socket.destroy());
    };
    expect(await send(), 'closed').to.deep.equal({ outcome: 'failed', detail: 'ECONNRESET' });
    const url = urlOf();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    expect(await send(url), 'not there').to.deep.equal({ outcome: 'failed', detail: 'ECONNREFUSED' });
  });

  it('checks the address that it connects to, not only the name', async () => {
    status(204);
    expect((await send(urlOf('localhost'))).outcome).to.equal('delivered');
    const elsewhere = await send(urlOf('localhost'), new NetworkSet(['10.0.0.0/8']));
    expect(elsewhere).to.include({ outcome: 'failed' });
    expect(elsewhere.detail).to.match(
      /^the host has the address (127\.0\.0\.1|::1), which may only be called with https$/,
    );
    const secure = await send(urlOf('localhost').replace('http:', 'https:'), new NetworkSet([]));
    expect(secure.detail).to.match(/^the host has the address (127\.0\.0\.1|::1), which is not a public address$/);
    expect(requests).to.have.length(1);
  });
});
