import { expect } from 'chai';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import request from 'supertest';
import { Pages, type Shop } from '../../../src/http/pages.js';
import type { HttpServices } from '../../../src/http/services.js';
import { FakeServices, startServer, type Started } from './http-harness.js';

const SHELL = '<!doctype html><title>Sale</title>';
const SCRIPT = `console.log('${'long enough to be worth compressing '.repeat(20)}');`;

describe('pages', () => {
  let folder: string;
  let server: Started;
  let fake: FakeServices;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pages-'));
    for (const page of ['buyer', 'console']) {
      mkdirSync(join(folder, page, 'assets'), { recursive: true });
      writeFileSync(join(folder, page, 'index.html'), SHELL);
      writeFileSync(join(folder, page, 'assets/index-abc.js'), SCRIPT);
      writeFileSync(join(folder, page, 'assets/index-abc.js.map'), '{}');
    }
    const pages: HttpServices['pages'] = {
      buyers: await Pages.load('buyers', undefined, folder),
      operators: await Pages.load('operators', undefined, folder),
    };
    fake = new FakeServices({ pages });
    server = await startServer(fake);
  });
  after(async () => {
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  it('serve one shell for every sale, which caches may show while they revalidate the shell', async () => {
    for (const saleId of ['7', '123456789']) {
      const { text, headers } = await request(server.url).get(`/s/${saleId}?from=mail`).expect(200);
      expect(text).to.equal(SHELL);
      expect(headers['cache-control']).to.equal('public, max-age=60, stale-while-revalidate=300');
      expect(headers['content-type']).to.equal('text/html; charset=utf-8');
      expect(headers['content-security-policy']).to.include("default-src 'none'").and.not.include('unsafe');
    }
    expect(fake.counted).to.include('page 200');
  });

  it('return 304 to a client with the current tag, which is the same at every API', async () => {
    const { headers } = await request(server.url).get('/s/7').expect(200);
    const again = await request(server.url).get('/s/7').set('if-none-match', String(headers.etag)).expect(304);
    expect(again.text).to.equal('');
    await request(server.url).get('/s/7').set('if-none-match', 'W/"another"').expect(200);
    const other = await Pages.load('buyers', undefined, folder);
    const tags: string[] = [];
    const req = { method: 'GET', url: '/s/1', headers: {} } as never;
    other.send(other.find(req) as never, req, {
      writeHead: (_status: number, all: string[]) => void tags.push(...all),
      end: () => undefined,
    } as never);
    expect(tags).to.include(headers.etag);
  });

  it('serve assets that never change, compressed for clients that accept it', async () => {
    const { headers, text } = await request(server.url).get('/s/assets/index-abc.js').expect(200);
    expect(text).to.equal(SCRIPT);
    expect(headers['cache-control']).to.equal('public, max-age=31536000, immutable');
    expect(headers['content-encoding']).to.equal('gzip');
    const plain = await request(server.url)
      .get('/s/assets/index-abc.js')
      .set('accept-encoding', 'identity')
      .expect(200);
    expect(plain.headers['content-encoding']).to.equal(undefined);
    expect(plain.headers['content-length']).to.equal(String(SCRIPT.length));
    const head = await request(server.url).head('/s/assets/index-abc.js').expect(200);
    expect(head.text ?? '').to.equal('');
  });

  it('serve every console screen as its page, on the operator listener only', async () => {
    for (const path of ['/console', '/console/', '/console/sales/7']) {
      expect((await request(server.operatorsUrl).get(path).expect(200)).text).to.equal(SHELL);
      await request(server.url).get(path).expect(404);
    }
    await request(server.operatorsUrl).get('/console/assets/index-abc.js').expect(200);
    await request(server.operatorsUrl).get('/s/7').expect(404);
  });

  it('serve no other file, no path outside the folder and no other method', async () => {
    for (const path of [
      '/s/',
      '/s/abc',
      '/s/7/x',
      '/s/assets/',
      '/s/assets/nothing.js',
      '/s/assets/index-abc.js.map',
    ]) {
      await request(server.url).get(path).expect(404);
    }
    for (const path of ['/s/assets/../../console/index.html', '/s/assets/%2e%2e/index.html']) {
      await request(server.url).get(path).expect(404);
    }
    await request(server.url).post('/s/7').expect(404);
  });

  it('may be framed only by the shop, and contain the shop name and sign-in address', async () => {
    const metas = '<meta name="shop" content="" /><meta name="sign-in" content="" />';
    writeFileSync(join(folder, 'buyer/index.html'), SHELL + metas);
    const shown = async (shop?: Shop): Promise<{ policy: string; html: string }> => {
      const written: string[] = [];
      let html = '';
      const pages = await Pages.load('buyers', shop, folder);
      const req = { method: 'GET', url: '/s/1', headers: {} } as never;
      pages.send(pages.find(req) as never, req, {
        writeHead: (_status: number, headers: string[]) => void written.push(...headers),
        end: (body: Buffer) => void (html = body.toString()),
      } as never);
      return { policy: written[written.indexOf('Content-Security-Policy') + 1] ?? '', html };
    };
    try {
      const alone = await shown();
      expect(alone.policy)
        .to.match(/; frame-ancestors 'none'$/)
        .and.contain("; img-src 'self' data:;");
      expect(alone.html).to.equal(SHELL + metas);
      const origins = ['https://shop.example', 'https://m.shop.example'];
      const evil = '"><script>$& alert(1)</script>';
      const signInUrl = 'https://shop.example/in?sale={saleId}&x="y"';
      const pictureUrl = 'https://img.shop.example:8443/{sku}.avif';
      const { policy, html } = await shown({ name: evil, pictureUrl, signInUrl, origins });
      expect(policy).to.contain("; img-src 'self' data: https://img.shop.example:8443;");
      expect(policy).to.match(/; frame-ancestors https:\/\/shop\.example https:\/\/m\.shop\.example$/);
      expect(html).to.equal(
        `${SHELL}<meta name="shop" content="&quot;>&lt;script>$&amp; alert(1)&lt;/script>" />` +
          '<meta name="sign-in" content="https://shop.example/in?sale={saleId}&amp;x=&quot;y&quot;" />',
      );
    } finally {
      writeFileSync(join(folder, 'buyer/index.html'), SHELL);
    }
  });

  it('serve nothing if nothing was built', async () => {
    const none = await Pages.load('buyers', undefined, join(folder, 'nothing'));
    expect(none.areBuilt).to.equal(false);
  });
});
