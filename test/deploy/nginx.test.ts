import { expect } from 'chai';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pickFreePort } from '../../deploy/local/stack/ports.js';
import { ask } from '../chaos/harness/http.js';
import { fetchNginx, Nginx, type FoundNginx } from '../helpers/nginx.js';

const SIGNED = { 'Seckill-Signature': 'x'.repeat(43) };
/** Nobody waits longer for an answer, except for a long poll, a stream and the bank. */
const ANSWER_MAX_MS = 5000;

describe('deploy/nginx in front of APIs that fail', () => {
  let found: FoundNginx;
  const started: { stop(): unknown }[] = [];

  before(async function () {
    const nginxOrNot = await fetchNginx();
    if ('missing' in nginxOrNot) {
      console.log(`      · skipped: ${nginxOrNot.missing}`);
      return this.skip();
    }
    found = nginxOrNot;
  });
  afterEach(async () => {
    for (const one of started.splice(0)) await one.stop();
  });

  async function listen(listener: RequestListener): Promise<number> {
    const server = createServer(listener);
    started.push({ stop: () => (server.closeAllConnections(), server.close()) });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port;
  }
  async function inFrontOf(ports: readonly number[]): Promise<string> {
    const nginx = await Nginx.start(found, { upstreams: ports.map((port) => ({ port, operatorsPort: port })) });
    started.push(nginx);
    return nginx.url;
  }

  it('retries a request at another API if the first API breaks it, but sends a signed request only once', async () => {
    let asked = 0;
    // no API fails often enough to be left out
    const breaking = [1, 2, 3, 4, 5, 6, 7, 8].map(() => listen(({ socket }) => void (asked++, socket.destroy())));
    const url = await inFrontOf(await Promise.all(breaking));
    for (const [method, path, headers, tries, code] of [
      ['POST', '/v1/sales/1/purchases', {}, 3, 'outcome_unknown'],
      ['POST', '/v1/orders/1/pay', {}, 3, 'outcome_unknown'],
      ['GET', '/v1/sales/1', {}, 3, 'unavailable'],
      ['POST', '/v1/sales/1/purchases', SIGNED, 1, 'outcome_unknown'],
      ['GET', '/v1/sales/1/purchases/k1', SIGNED, 1, 'unavailable'],
      ['GET', '/v1/sales/1/purchases/k1?wait=25', SIGNED, 1, 'unavailable'],
      ['GET', '/v1/sales/1/purchases/k1/events', SIGNED, 1, 'unavailable'],
    ] as const) {
      asked = 0;
      const answer = await ask(url + path, { method, headers });
      expect([asked, answer.status, answer.json.code], `${method} ${path}`).to.deep.equal([tries, 503, code]);
    }
  });

  it('answers within 5 s when every API hangs, and asks a second API unless the first may still buy', async () => {
    const asked = new Map<string, number>();
    const hang: RequestListener = ({ url = '' }) => void asked.set(url, (asked.get(url) ?? 0) + 1);
    const url = await inFrontOf([await listen(hang), await listen(hang)]);
    const requests = [
      ['POST', '/v1/sales/1/purchases', {}, 1, 'outcome_unknown'],
      ['POST', '/v1/sales/2/purchases', SIGNED, 1, 'outcome_unknown'],
      ['POST', '/v1/orders/1/cancel', {}, 2, 'outcome_unknown'],
      ['GET', '/v1/sales/1', {}, 2, 'unavailable'],
      ['GET', '/v1/sales/1/purchases/k1', SIGNED, 1, 'unavailable'],
      ['GET', '/s/1', {}, 2, undefined],
      ['GET', '/readyz', {}, 2, 'unavailable'],
    ] as const;
    const answered = requests.map(async ([method, path, headers, tries, code]) => {
      const { status, json } = await ask(url + path, { method, headers, timeoutMs: ANSWER_MAX_MS });
      expect([asked.get(path), status, json.code], `${method} ${path}`).to.deep.equal([tries, 503, code]);
    });
    await Promise.all(answered);
  });

  it('shows a browser a page that loads itself again when no API answers and the page is not in the cache', async () => {
    const url = await inFrontOf([pickFreePort()]);
    const { status, headers, text } = await ask(`${url}/s/1`);
    expect(status).to.equal(503);
    expect(headers).to.include({ 'content-type': 'text/html; charset=utf-8', 'retry-after': '5' });
    expect(headers['cache-control']).to.equal('no-store');
    expect(text).to.include('location.reload()').and.include('does not answer').and.include('重试');
  });

  it('waits for long polls, streams and payments', async () => {
    let sendAnswers = (): void => undefined;
    const sent = new Promise<void>((resolve) => (sendAnswers = resolve));
    const url = await inFrontOf([await listen((_req, res) => void sent.then(() => res.end('{}')))]);
    const requests = [
      ['GET', '/v1/sales/1/purchases/k1?wait=25', {}],
      ['GET', '/v1/sales/1/purchases/k1?wait=25', SIGNED],
      ['GET', '/v1/sales/1/purchases/k1/events', {}],
      ['GET', '/v1/sales/1/purchases/k1/events', SIGNED],
      ['POST', '/v1/orders/1/pay', {}],
    ] as const;
    const waiting = requests.map(([method, path, headers]) => ask(url + path, { method, headers }));
    // these APIs hang, so nginx gives this request up when it would have given up the others
    expect((await ask(`${url}/v1/sales/1/purchases`, { method: 'POST' })).status).to.equal(503);
    sendAnswers();
    expect((await Promise.all(waiting)).map(({ status }) => status)).to.deep.equal(requests.map(() => 200));
  });

  it('sends any request to another API if the first API refuses the connection, also a signed purchase', async () => {
    const url = await inFrontOf([pickFreePort(), await listen((_req, res) => void res.end('{}'))]);
    for (const [path, headers] of [
      ['/v1/sales/1/purchases', {}],
      ['/v1/sales/1/purchases', SIGNED],
      ['/v1/orders/1/pay', {}],
    ] as const)
      for (let i = 0; i < 4; i++)
        expect((await ask(url + path, { method: 'POST', headers })).status, path).to.equal(200);
  });

  it('asks an API that has just returned when nginx leaves out every API', async () => {
    const [first, second] = [pickFreePort(), pickFreePort()];
    const url = await inFrontOf([first, second]);
    const buy = (): Promise<number> => ask(`${url}/v1/sales/1/purchases`, { method: 'POST' }).then((one) => one.status);
    for (let i = 0; i < 12; i++) expect(await buy()).to.equal(503);
    const server = createServer((_req, res) => void res.end('{}'));
    started.push({ stop: () => (server.closeAllConnections(), server.close()) });
    await new Promise<void>((resolve) => server.listen(first, '127.0.0.1', resolve));
    for (let i = 0; i < 12; i++) expect(await buy()).to.equal(200);
  });
});
