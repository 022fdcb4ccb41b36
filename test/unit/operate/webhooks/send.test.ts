import { expect } from 'chai';
import { createSocket, type Socket } from 'node:dgram';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
  let dns: Socket;
  let nameServers: string[];
  /** IPv4 address by name; null: no answer. Unknown names do not exist. */
  let names: Record<string, string | null>;
  let questions: string[];
  const dir = mkdtempSync(join(tmpdir(), 'webhooks-'));
  const hostsFile = join(dir, 'hosts');
  after(() => rmSync(dir, { recursive: true }));

  beforeEach(async () => {
    [requests, questions, names] = [[], [], {}];
    writeFileSync(hostsFile, '');
    dns = createSocket('udp4', (message, { port }) => {
      const reply = replyTo(message, names, questions);
      if (reply !== null) dns.send(reply, port, '127.0.0.1');
    });
    await new Promise<void>((resolve) => dns.bind(0, '127.0.0.1', resolve));
    nameServers = [`127.0.0.1:${dns.address().port}`];
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
    dns.close();
    server.closeAllConnections();
    server.close();
  });
  const urlOf = (host = '127.0.0.1'): string => `http://${host}:${(server.address() as AddressInfo).port}/hook`;
  const senderTo = (allowed: NetworkSet) =>
    createWebhookSender(allowed, () => NOW_MS, { callMaxMs: SHORT_MS, nameServers, hostsFile });
  const send = (url = urlOf(), allowed = HERE, secret_before: string | null = null): Promise<Sent> =>
    senderTo(allowed)({ url, secret: SECRET, secret_before }, EVENT);
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

  it('signs with the previous secret too, so that a receiver may know either secret', async () => {
    status(204);
    await send(urlOf(), HERE, 'whsec_before');
    const [{ req, body } = expect.fail()] = requests;
    for (const [secret, verdict] of [
      [SECRET, 'good'],
      ['whsec_before', 'good'],
      ['whsec_another', 'invalid'],
    ] as const) {
      const verifier = createWebhookVerifier([secret], () => NOW_MS);
      expect(verifier.verify(req.headers['webhook-signature'], body), secret).to.equal(verdict);
    }
  });

  it('distinguishes an event that is rejected from a receiver in trouble', async () => {
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

  it('fails when the receiver is slow, absent, or closes within its answer', async () => {
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

  it('connects to the address in DNS, or asks the system about a name unknown to DNS', async () => {
    status(204);
    names['shop.example'] = '127.0.0.1';
    expect((await send(urlOf('shop.example'))).outcome).to.equal('delivered');
    names['shop.example'] = '10.0.0.1';
    expect(await send(urlOf('shop.example'))).to.deep.equal({
      outcome: 'failed',
      detail: 'the host has the address 10.0.0.1, which may only be called with https',
    });
    expect((await send(urlOf('localhost'))).outcome).to.equal('delivered');
    expect(requests).to.have.length(2);
  });

  it('finds a name in the hosts file when the name server is silent', async () => {
    status(204);
    writeFileSync(hostsFile, '# ours\n127.0.0.1 localhost Receiver.example # a comment\n10.0.0.1\tother.example\n');
    names = { 'receiver.example': null, 'other.example': null };
    expect((await send(urlOf('receiver.example'))).outcome).to.equal('delivered');
    expect((await send(urlOf('other.example'))).detail).to.equal(
      'the host has the address 10.0.0.1, which may only be called with https',
    );
    expect(questions).to.deep.equal([]);
  });

  it('ends in time when a name server is silent, and asks once for all calls', async () => {
    status(204);
    names['silent.example'] = null;
    names['shop.example'] = '127.0.0.1';
    const sender = senderTo(HERE);
    const to = (host: string) => sender({ url: urlOf(host), secret: SECRET, secret_before: null }, EVENT);
    const silent = Array.from({ length: 8 }, () => to('silent.example'));
    expect((await to('shop.example')).outcome, 'another host').to.equal('delivered');
    for (const sent of await Promise.all(silent)) {
      expect(sent).to.deep.equal({ outcome: 'failed', detail: 'no answer within 0.3 s' });
    }
    expect(questions.filter((name) => name === 'silent.example')).to.have.length(2);
  });
});

const DNS_HEADER_BYTES = 12;
const TYPE_A = 1;

/** Builds a DNS answer: the IPv4 address of the name, nothing for IPv6, or no such name. */
function replyTo(message: Buffer, names: Record<string, string | null>, questions: string[]): Buffer | null {
  const labels: string[] = [];
  let at = DNS_HEADER_BYTES;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const name = labels.join('.').toLowerCase();
  questions.push(name);
  const address = names[name];
  if (address === null) return null;
  const answers = address !== undefined && message.readUInt16BE(at + 1) === TYPE_A ? 1 : 0;
  const head = Buffer.alloc(DNS_HEADER_BYTES);
  message.copy(head, 0, 0, 2);
  head.writeUInt16BE(address === undefined ? 0x8183 : 0x8180, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(answers, 6);
  const answer = Buffer.from('c00c00010001000000000004', 'hex');
  const octets = Buffer.from((address ?? '').split('.').map(Number));
  return Buffer.concat([head, message.subarray(DNS_HEADER_BYTES, at + 5), ...(answers === 1 ? [answer, octets] : [])]);
}
