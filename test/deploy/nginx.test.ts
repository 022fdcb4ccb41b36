import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { pickFreePort } from '../../deploy/local/stack/ports.js';
import { SALE_CACHING } from '../../src/http/routes/sale-page.js';
import { ask } from '../chaos/harness/http.js';
import { until } from '../chaos/harness/wait.js';
import { fetchNginx, Nginx, type FoundNginx } from '../helpers/nginx.js';

const SIGNED = { 'Seckill-Signature': 'x'.repeat(43) };
/** Maximum wait for an answer, except for a long poll, a stream and the bank. */
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

  it('retries a request at another API if the connection breaks, but never a signed request', async () => {
    let asked = 0;
    // so many that nginx leaves out none
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

  it('answers within 5 s if every API hangs, and asks a second API unless the first may still buy', async () => {
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

  it('shows a browser a self-reloading page if no API answers and the cache has no page', async () => {
    const url = await inFrontOf([pickFreePort()]);
    const { status, headers, text } = await ask(`${url}/s/1`);
    expect(status).to.equal(503);
    expect(headers).to.include({ 'content-type': 'text/html; charset=utf-8', 'retry-after': '5' });
    expect(headers['cache-control']).to.equal('no-store');
    expect(text).to.include('location.reload()').and.include('does not answer').and.include('重试');
  });

  it('passes a request to the cell of its sale, or to the cell that a 421 names', async () => {
    const cellNamed = (number: number): RequestListener =>
      function answer(req, res) {
        const isElsewhere = number === 1 && (req.url ?? '').startsWith('/v1/orders/');
        const chunks: Buffer[] = [];
        req.on('data', (chunk: Buffer) => chunks.push(chunk));
        req.on('end', () => {
          res.writeHead(isElsewhere ? 421 : 200, isElsewhere ? { 'Seckill-Cell': '2' } : {});
          res.end(`${number} ${req.method} ${req.url} ${Buffer.concat(chunks).toString()}`);
        });
      };
    const cells = await Promise.all([1, 2].map((number) => listen(cellNamed(number))));
    const port = pickFreePort();
    const shown = /```nginx\n(map [\s\S]*?)```/.exec(readFileSync(join(REPO_DIR, 'docs/servers.md'), 'utf8'));
    const conf = (shown?.[1] ?? '')
      .replace(/10\.0\.(\d)\.1:80/g, (_address, number: string) => `127.0.0.1:${cells[Number(number) - 1]}`)
      .replace('listen 80', `listen 127.0.0.1:${port}`);
    started.push(
      await Nginx.start(found, { upstreams: cells.map((api) => ({ port: api, operatorsPort: api })), realIp: conf }),
    ); // included in `http`
    for (const [method, path, number, cell] of [
      ['POST', '/v1/sales/1/purchases', 1],
      ['POST', '/v1/sales/2/purchases', 2],
      ['GET', '/v1/sales/702?fresh=1', 2],
      ['GET', '/v1/sales/12001', 1],
      ['GET', '/s/102', 2],
      ['GET', '/v1/me/orders', 1],
      ['GET', '/v1/me/orders', 2, '2'],
      ['GET', '/v1/me/orders?after=1', 1, '1'],
      ['GET', '/v1/me/orders', 1, 'two'],
      ['GET', '/v1/sales/1', 1, '2'],
      ['POST', '/v1/orders/99/pay', 2],
      ['POST', '/v1/orders/99/pay', 2, '2'],
    ] as const) {
      const body = method === 'POST' ? { paymentMethod: 'pm_1' } : undefined;
      const headers: Record<string, string> = cell === undefined ? {} : { 'Seckill-Cell': cell };
      const { text } = await ask(`http://127.0.0.1:${port}${path}`, { method, body, headers });
      expect(text).to.equal(`${number} ${method} ${path} ${body === undefined ? '' : JSON.stringify(body)}`);
    }
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
    // nginx would have given up the other requests before this request
    expect((await ask(`${url}/v1/sales/1/purchases`, { method: 'POST' })).status).to.equal(503);
    sendAnswers();
    expect((await Promise.all(waiting)).map(({ status }) => status)).to.deep.equal(requests.map(() => 200));
  });

  it('asks an API once a second for a crowded sale, and never for other cached answers', async () => {
    let state = 'open';
    const asked = new Map<string, number>();
    const api = await listen(({ url: path = '', headers }, res) => {
      asked.set(path, (asked.get(path) ?? 0) + 1);
      const { origin = '', authorization: buyer } = headers;
      const cors = { Vary: 'Origin', 'Access-Control-Allow-Origin': origin };
      res.writeHead(200, {
        'Content-Type': 'application/json',
        'Cache-Control': SALE_CACHING,
        ETag: `"${state}"`,
        ...cors,
      });
      res.end(JSON.stringify({ state, buyer }));
    });
    const url = await inFrontOf([api]);
    const SALE = '/v1/sales/1';
    const read = (path = SALE, headers = {}): ReturnType<typeof ask> => ask(url + path, { headers });
    const beganMs = performance.now();
    for (let i = 0; i < 50; i++) {
      const answers = await Promise.all(Array.from({ length: 20 }, () => read(`${SALE}?utm=${i}`)));
      for (const { json } of answers) expect(json.state).to.equal('open');
    }
    const timesAsked = (): number =>
      [...asked].reduce((sum, [path, times]) => sum + (path.startsWith(SALE) ? times : 0), 0);
    const seconds = (performance.now() - beganMs) / 1000;
    expect(timesAsked(), `1,000 reads in ${seconds} s`).to.be.within(1, 2 + seconds);
    expect((await read(SALE, { 'If-None-Match': '"open"' })).status).to.equal(304);

    const before = timesAsked();
    state = 'paused';
    await until('everyone sees the change', async () => (await read()).json.state === 'paused');
    expect(timesAsked() - before, 'the first answer after the change').to.equal(1);
    state = 'closed';
    for (const query of ['?fresh=1', '?fresh=1']) expect((await read(SALE + query)).json.state).to.equal('closed');
    expect(asked.get(`${SALE}?fresh=1`)).to.equal(2);
    expect((await read()).json.state, 'a fresh answer is not kept').to.equal('paused');
    for (const origin of ['https://a.example', 'https://b.example', 'https://a.example']) {
      const { headers } = await read('/v1/sales/2', { Origin: origin });
      expect(headers['access-control-allow-origin']).to.equal(origin);
    }
    expect(asked.get('/v1/sales/2'), 'one copy for each origin').to.equal(2);
    for (const path of [`${SALE}/purchases/k1`, '/v1/me/orders', '/v1/orders/9', `${SALE}/queue/t1`]) {
      for (const buyer of ['ann', 'bob']) {
        expect((await read(path, { Authorization: buyer })).json.buyer, path).to.equal(buyer);
      }
    }
  });

  it('sends any request, even a signed purchase, to another API if the first API refuses the connection', async () => {
    const url = await inFrontOf([pickFreePort(), await listen((_req, res) => void res.end('{}'))]);
    for (const [path, headers] of [
      ['/v1/sales/1/purchases', {}],
      ['/v1/sales/1/purchases', SIGNED],
      ['/v1/orders/1/pay', {}],
    ] as const)
      for (let i = 0; i < 4; i++)
        expect((await ask(url + path, { method: 'POST', headers })).status, path).to.equal(200);
  });

  it('asks an API that has just returned, even while nginx leaves out every API', async () => {
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
