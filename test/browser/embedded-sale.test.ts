import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { createTokenSigner } from '../../src/http/token.js';
import type { Program } from '../chaos/harness/programs.js';
import { openSale } from '../chaos/harness/sales.js';
import { until } from '../chaos/harness/wait.js';
import { startChromium, type StartedBrowser } from '../helpers/chromium.js';
import { expectInvariants } from '../helpers/invariants.js';
import { useSystem } from '../helpers/system.js';

const DOCS = readFileSync(join(REPO_DIR, 'docs/buying.md'), 'utf8');
const BUY = readFileSync(join(REPO_DIR, 'examples/shop-page/buy.mjs'), 'utf8');
const exampleWith = (text: string): string => {
  const found = [...DOCS.matchAll(/```(?:js|html)\n([\s\S]*?)```/g)].map(([, code]) => code as string);
  const example = found.find((code) => code.includes(text));
  if (example === undefined) throw new Error(`no example has ${text}`);
  return example;
};

const TYPES: Readonly<Record<string, string>> = { js: 'text/javascript', svg: 'image/svg+xml' };

const REFUSED = createTokenSigner('another-secret-of-more-than-forty-bytes-length')({
  userId: 'ann',
  roles: [],
  ttlMs: 600_000,
});
const PICTURE =
  '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><rect width="8" height="8" fill="teal"/></svg>';
/** An image element in the browser, whose types a Node test does not have. */
interface Picture {
  readonly naturalWidth: number;
}

describe('a sale embedded in a shop', () => {
  let api: Program;
  let started: StartedBrowser;
  let shop: Server;
  let shopUrl: string;
  /** The pages of the shop, by path. */
  const served = new Map<string, string>();
  const system = useSystem(async ({ programs }) => {
    shop = createServer((req, res) => {
      const body = served.get(req.url ?? '');
      res.writeHead(body === undefined ? 404 : 200, {
        'Content-Type': TYPES[req.url?.split('.')[1] ?? ''] ?? 'text/html',
      });
      res.end(body);
    });
    await new Promise<void>((resolve) => shop.listen(0, '127.0.0.1', resolve));
    shopUrl = `http://localhost:${(shop.address() as AddressInfo).port}`; // a different site from the API
    [api, started] = await Promise.all([
      programs.start('api', {
        env: {
          SHOP_NAME: 'A shop & more',
          SHOP_ORIGINS: shopUrl,
          SHOP_PICTURE_URL: `${shopUrl}/{sku}.svg`,
          SHOP_SIGN_IN_URL: `${shopUrl}/sign-in?sale={saleId}`,
          PAYMENT_PROVIDER: 'simulator',
        },
      }),
      startChromium(),
      programs.start('worker'),
      programs.start('keeper'),
    ]);
  });
  after(async () => {
    shop.closeAllConnections();
    shop.close();
    await started.close();
  });

  const tokenOf = (userId: string): string =>
    createTokenSigner(system.stack.env.JWT_SECRET)({ userId, roles: [], ttlMs: 600_000 });
  const here = (code: string, saleId: string): string =>
    code.replaceAll('https://sale.example', api.url).replaceAll('/s/7', `/s/${saleId}`);
  let context: BrowserContext;
  async function openPage(): Promise<Page> {
    context = await started.browser.newContext();
    return context.newPage();
  }
  afterEach(() => context.close());
  async function openShop(html: string): Promise<{ page: Page; said: string[] }> {
    served.set('/', `<!doctype html><title>A shop</title>${html}`);
    const page = await openPage();
    const said: string[] = [];
    page.on('console', (message) => void said.push(message.text()));
    page.on('pageerror', (error) => void said.push(`error ${error.message}`));
    await page.goto(shopUrl);
    return { page, said };
  }

  it('works in a frame when a message signs the buyer in, as documented', async () => {
    const { saleId, sku } = await openSale(system.stack, { stock: 3 });
    served.set(`/${sku}.svg`, PICTURE);
    // The shop first returns a refused token from its cache, then a valid token.
    const tokens = JSON.stringify([REFUSED, REFUSED, tokenOf('ann')]);
    const signs = `<script>const asked = []; const tokenOfBuyer = async () => ${tokens}[asked.push(performance.now()) - 1];</script>`;
    const { page, said } = await openShop(signs + here(exampleWith('<iframe'), saleId));
    const sale = page.frameLocator('#sale');
    await sale.locator('[data-screen="ready"]').waitFor();
    await sale.locator('#go').click();
    await sale.locator('.headline', { hasText: 'Your sign-in has ended' }).waitFor();
    await sale.locator('[data-screen="to_pay"]').waitFor(); // without another click
    const askedAt = (await page.evaluate('asked')) as number[];
    expect(askedAt, 'when it begins, when the token is refused, and after a pause').to.have.length(3);
    expect((askedAt[2] as number) - (askedAt[1] as number)).to.be.at.least(450);
    await sale.locator('#pay').click();
    await sale.locator('[data-screen="paid"]').waitFor();
    await until('the shop hears of it', () => said.some((line) => /^order \d+ is paid$/.test(line)));
    const ofOrders = /^order \d+ is (pending_payment|paid)$/;
    const ofRefusal = /^Failed to load resource: .* (401|404) /; // the status of a refused click
    expect(said.filter((line) => !ofOrders.test(line) && !ofRefusal.test(line))).to.deep.equal([]);
    expect(await expectInvariants(system.stack, saleId)).to.include({ rows: 1, sold: 1 });
  });

  it('works by a link that signs the buyer in, as documented', async () => {
    const { saleId } = await openSale(system.stack, { stock: 3 });
    const go = here(exampleWith('location.href'), saleId);
    const { page } = await openShop(
      `<script>const token = ${JSON.stringify(tokenOf('ann'))}; function go() { ${go} }</script><button onclick="go()">Buy</button>`,
    );
    await page.getByRole('button').click();
    await page.locator('[data-screen="ready"]').waitFor();
    expect(page.url()).to.equal(`${api.url}/s/${saleId}`);
    expect(await expectInvariants(system.stack, saleId)).to.include({ rows: 0 });
  });

  it('shows the name, picture and sign-in link of the shop, or draws a picture', async () => {
    const { saleId, sku } = await openSale(system.stack);
    served.set(`/${sku}.svg`, PICTURE);
    const page = await openPage();
    await page.goto(`${api.url}/s/${saleId}`);
    await page.locator('[data-screen="signed_out"]').waitFor();
    expect(await page.locator('.shop').textContent()).to.equal('A shop & more');
    await until(
      'the picture is there',
      async () => (await page.locator('img.picture').evaluate((img) => (img as never as Picture).naturalWidth)) === 8,
    );
    expect(await page.locator('a#go').getAttribute('href')).to.equal(`${shopUrl}/sign-in?sale=${saleId}`);
    served.delete(`/${sku}.svg`);
    await page.reload();
    await page.locator('svg.art').waitFor();
    expect(await page.locator('img.picture').count()).to.equal(0);
    expect(await expectInvariants(system.stack, saleId)).to.include({ rows: 0 });
  });

  it('buys again on a page of the shop only once the first order is paid, as documented', async () => {
    const { saleId } = await openSale(system.stack, { stock: 3, limitPerBuyer: 3 });
    served.set('/buy.js', here(BUY, saleId));
    const { page, said } = await openShop('');
    const buy = `import('/buy.js').then(({ buy }) => buy('${saleId}', ${JSON.stringify(tokenOf('ann'))}))`;
    const [first, second] = (await page.evaluate(`Promise.all([${buy}, ${buy}])`)) as Record<string, unknown>[];
    expect(first).to.include({ status: 'ordered' });
    expect(second?.orderId).to.equal(first?.orderId);
    let spared = 0;
    await page.route(/\?wait=/, (route) =>
      spared++ > 0
        ? route.continue()
        : route.fulfill({
            headers: { 'Access-Control-Allow-Origin': shopUrl },
            json: { saleId, status: 'unknown', degraded: 'L3' }, // answer of an API under degradation
          }),
    );
    const third = (await page.evaluate(buy)) as Record<string, unknown>;
    expect(third, 'asked for until it is known').to.include({ status: 'ordered' });
    expect(third.orderId).not.to.equal(first?.orderId);
    expect(spared).to.be.greaterThan(1);
    const wrong = `import('/buy.js').then(({ buy }) => buy('999999999999999999', ${JSON.stringify(tokenOf('ann'))})).catch(({ code, message }) => [code, message])`;
    expect(await page.evaluate(wrong)).to.deep.equal(['not_found', 'There is no such sale.']);
    expect(said.filter((line) => !line.startsWith('Failed to load resource'))).to.deep.equal([]);
    expect(await expectInvariants(system.stack, saleId)).to.include({ rows: 2, sold: 2 });
  });

  it('lets no foreign page read an answer, send a purchase or frame the sale', async () => {
    const { saleId } = await openSale(system.stack, { stock: 3 });
    served.set('/buy.js', here(BUY, saleId));
    const { page } = await openShop('');
    const evil = shopUrl.replace('localhost', '127.0.0.1'); // same server, different origin
    await page.goto(evil);
    const reads = `fetch('${api.url}/v1/sales/${saleId}').then(() => 'read', () => 'refused')`;
    expect(await page.evaluate(reads)).to.equal('refused');
    const sends = `fetch('${api.url}/v1/sales/${saleId}/purchases', { method: 'POST',
      headers: { Authorization: 'Bearer ${tokenOf('ann')}', 'Idempotency-Key': 'k1' } }).then(() => 'sent', () => 'refused')`;
    expect(await page.evaluate(sends)).to.equal('refused');
    await page.setContent(`<iframe id="sale" src="${api.url}/s/${saleId}"></iframe>`);
    await until('the browser refuses the frame', async () => {
      const frame = page.frames().find((one) => one !== page.mainFrame());
      return frame !== undefined && frame.url().startsWith('chrome-error:');
    });
    expect(await expectInvariants(system.stack, saleId), 'nothing was bought').to.include({ rows: 0, sold: 0 });
  });
});
