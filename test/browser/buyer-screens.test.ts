import { expect } from 'chai';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { createTokenSigner } from '../../src/http/token.js';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask } from '../chaos/harness/http.js';
import type { Program } from '../chaos/harness/programs.js';
import { ACTOR, draftSale, openSale, type SaleParts } from '../chaos/harness/sales.js';
import { until } from '../chaos/harness/wait.js';
import { startChromium, type StartedBrowser } from '../helpers/chromium.js';
import { expectInvariants } from '../helpers/invariants.js';
import { smallPng } from '../helpers/small-png.js';
import { useSystem } from '../helpers/system.js';
import { Visitor, type VisitorParts } from './visitor.js';

/** `UPDATE_PICTURES=1` makes the pictures of docs/buyer-page anew. */
const MAKES_PICTURES = process.env.UPDATE_PICTURES === '1';
const PICTURES = join(REPO_DIR, 'docs/buyer-page');

const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1280, height: 800 };
/** How each state is seen. */
const LOOKS = [
  { name: 'desktop', viewport: DESKTOP, colorScheme: 'light', language: 'English' },
  { name: 'desktop-dark', viewport: DESKTOP, colorScheme: 'dark', language: 'English' },
  { name: 'phone', viewport: PHONE, colorScheme: 'light', language: 'English' },
  { name: 'phone-zh', viewport: PHONE, colorScheme: 'light', language: '中文' },
] as const;

/** Of a request that is never answered. */
const hangs = (): void => undefined;
const PAYMENT_WINDOW_MS = 900_000;
const TITLE = 'Stoneware tea bowl, celadon';
const HOUR_MS = 3_600_000;

/** Every state of the page, each seen in each look: nothing keeps anybody out, and nothing is cut off. */
describe('each state of the page of a sale', () => {
  let api: Program;
  let worker: Program;
  let started: StartedBrowser;
  const shown: string[] = [];
  const system = useSystem(async ({ programs }) => {
    const env = {
      PAYMENT_PROVIDER: 'simulator',
      SHOP_NAME: 'Nordlicht',
      SHOP_SIGN_IN_URL: 'https://shop.example/sign-in',
    };
    [api, worker, started] = await Promise.all([
      programs.start('api', { env }),
      programs.start('worker', { env: { ORDER_PAYMENT_WINDOW_MS: String(PAYMENT_WINDOW_MS) } }),
      startChromium(),
      programs.start('keeper', {
        env: { KEEPER_EVERY_MS: '500', OUTBOX_EVERY_MS: '100', EXPIRE_SWEEP_EVERY_MS: '500' },
      }),
    ]);
    if (MAKES_PICTURES) mkdirSync(PICTURES, { recursive: true });
  });
  afterEach(() => worker.signal('SIGCONT'));
  after(() => started.close());

  const sales: string[] = [];
  const newSale = async (parts: SaleParts = {}): Promise<string> => {
    const { saleId } = await openSale(system.stack, { title: TITLE, priceCents: 24_900, stock: 40, ...parts });
    sales.push(saleId);
    return saleId;
  };
  const buyersOf = (saleId: string): Buyers => new Buyers(saleId, system.stack.env.JWT_SECRET, () => [api.url]);

  async function visit(parts: Omit<VisitorParts, 'url'>): Promise<Visitor> {
    return Visitor.open(started, system.stack.env.JWT_SECRET, { url: api.url, sku: 'tea-bowl-7', ...parts });
  }

  /** Sees the page as it stands in each look. */
  async function look(visitor: Visitor, name: string): Promise<void> {
    const { page } = visitor;
    for (const { name: lookName, viewport, colorScheme, language } of LOOKS) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme });
      await page.getByRole('button', { name: language }).click();
      await page.evaluate('document.activeElement.blur(); scrollTo(0, 0)');
      await page.mouse.move(2, 2);
      await visitor.isAccessible();
      const wide = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      expect(wide, `${name} in ${lookName}: nothing is wider than the screen`).to.equal(0);
      if (MAKES_PICTURES) {
        await page.evaluate('document.fonts.ready');
        writeFileSync(
          join(PICTURES, `${name}-${lookName}.png`),
          smallPng(await page.screenshot({ animations: 'disabled' })),
        );
      }
    }
    shown.push(name);
  }

  async function publish(rules: object): Promise<void> {
    const token = createTokenSigner(system.stack.env.JWT_SECRET)({ userId: 'root', roles: ['admin'], ttlMs: 600_000 });
    const url = `${api.operatorsUrl}/admin/v1/rules`;
    const { version } = (await ask(url, { token })).json;
    const { status, text, json } = await ask(url, { method: 'PUT', token, body: { version, rules } });
    expect(status, text).to.equal(200);
    await until('the rules are in force', async () => {
      const { text: metrics } = await ask(`${api.operatorsUrl}/metrics`);
      return Number(/^seckill_admission_rules_version\S* (\d+)$/m.exec(metrics)?.[1]) === json.version;
    });
  }

  it('before the opening: counting down; as a guest', async () => {
    const opensAtMs = Date.now() + 2.2 * HOUR_MS;
    const window = { opensAtMs, closesAtMs: opensAtMs + 4 * HOUR_MS };
    const { saleId } = await draftSale(system.stack, { title: TITLE, priceCents: 24_900, limitPerBuyer: 2, ...window });
    await system.stack.admin.warm(saleId, ACTOR);
    sales.push(saleId);
    const ann = await visit({ saleId });
    await look(await ann.sees('countdown'), 'countdown');
    await ann.leave();
    const guest = await visit({ saleId, userId: null });
    await look(await guest.sees('countdown'), 'countdown-signed-out');
    await guest.leave();
  });

  it('on sale: signed in, as a guest, nearly gone, offline, with a very long title', async () => {
    const saleId = await newSale();
    const ann = await visit({ saleId });
    await look(await ann.sees('ready'), 'on-sale');
    await ann.page.context().setOffline(true);
    await ann.page.locator('.offline').waitFor();
    await look(ann, 'offline');
    await ann.leave();
    const guest = await visit({ saleId, userId: null });
    await look(await guest.sees('signed_out'), 'signed-out');
    await guest.leave();

    const few = await newSale({ stock: 11, limitPerBuyer: 10 });
    expect((await buyersOf(few).buy('zoe', { quantity: 10 }))?.status).to.equal(202);
    const bob = await visit({ saleId: few });
    await until(
      'the page sees it',
      async () => (await bob.page.locator('.chip').textContent()) === 'Almost gone',
      30_000,
    );
    await look(bob, 'nearly-gone');
    await bob.leave();

    const long = await newSale({
      title:
        'Hand-thrown stoneware tea bowl with celadon glaze and kintsugi repair, numbered edition of three hundred, in a box',
    });
    const cid = await visit({ saleId: long });
    await look(await cid.sees('ready'), 'long-title');
    await cid.leave();
  });

  it('not on sale: sold out, back, paused, over, missing, unreachable, being loaded', async () => {
    const saleId = await newSale({ stock: 1 });
    const buyers = buyersOf(saleId);
    expect((await buyers.buy('zoe'))?.status).to.equal(202);
    const ann = await visit({ saleId });
    await look(await ann.sees('sold_out'), 'sold-out');
    const { json } = await buyers.status('zoe', 'k1', 20);
    expect((await buyers.move('cancel', 'zoe', String(json.orderId)))?.status).to.equal(200);
    await look(await ann.sees('ready', 40_000), 'back-in-stock');
    await system.stack.admin.pause(saleId, ACTOR);
    await look(await ann.sees('paused', 40_000), 'paused');
    await system.stack.admin.close(saleId, ACTOR);
    await look(await ann.sees('closed', 40_000), 'over');
    await ann.leave();

    const lost = await visit({ saleId: '999999999999999999' });
    await look(await lost.sees('missing'), 'missing');
    await lost.leave();

    const far = await visit({ saleId, route: (page) => page.route(/\/v1\/sales\/\d+$/, (route) => route.abort()) });
    await look(await far.sees('unreachable'), 'unreachable');
    await far.leave();
    const slow = await visit({ saleId, route: (page) => page.route(/\/v1\/sales\/\d+$/, hangs) });
    await look(await slow.sees('loading'), 'loading');
    await slow.leave();
  });

  it('waiting: in the room, one’s turn, in the app only', async () => {
    const room = await newSale();
    const app = await newSale();
    await publish({
      queue: { mode: 'on', sales: [room], admitPerSecond: 0.1, pollMs: 500, passMs: 118_000, processes: 1 },
      sign: { mode: 'on', sales: [app], keys: ['local'] },
    });
    try {
      const join = (userId: string): Promise<unknown> =>
        ask(`${api.url}/v1/sales/${room}/queue`, { method: 'POST', token: buyersOf(room).token(userId) });
      await Promise.all(Array.from({ length: 12 }, (_, i) => join(`early-${i}`)));
      const ann = await visit({ saleId: room });
      await look(await ann.sees('room'), 'waiting-room');
      await ann.leave();
      await publish({
        queue: { mode: 'on', sales: [room], admitPerSecond: 1000, pollMs: 500, passMs: 118_000 },
        sign: { mode: 'on', sales: [app], keys: ['local'] },
      });
      const bob = await visit({ saleId: room, userId: 'bob' });
      await look(await bob.sees('ready', 40_000), 'your-turn');
      await bob.leave();
      const cid = await visit({ saleId: app });
      await look(await cid.sees('app_only'), 'app-only');
      await cid.leave();
    } finally {
      await publish({});
    }
  });

  it('after the click: busy, held, to pay, the question, declined, paid; given up', async () => {
    const saleId = await newSale({ limitPerBuyer: 3 });
    const ann = await visit({ saleId });
    await ann.sees('ready');
    const isBusy = (url: URL): boolean => url.pathname.endsWith('/purchases');
    await ann.page.route(isBusy, (route) =>
      route.fulfill({
        status: 503,
        contentType: 'application/problem+json',
        body: '{"code":"overloaded","retryAfterMs":3000}',
      }),
    );
    await ann.button.click();
    await ann.page.locator('.panel .note').waitFor();
    await look(ann, 'busy');
    await ann.page.unroute(isBusy);
    worker.signal('SIGSTOP');
    await look(await ann.sees('held', 40_000), 'held');
    worker.signal('SIGCONT');
    await look(await ann.sees('to_pay'), 'to-pay');
    await ann.page.locator('#cancel').click();
    await ann.page.locator('#cancel-no').waitFor();
    await look(ann, 'give-up');
    await ann.page.route(/\/pay$/, (route) =>
      route.fulfill({ status: 402, contentType: 'application/problem+json', body: '{"code":"payment_declined"}' }),
    );
    await ann.page.locator('#pay').click();
    await ann.page.locator('.panel .note').waitFor();
    await look(ann, 'declined');
    await ann.page.unroute(/\/pay$/);
    await ann.page.locator('#pay').click();
    await look(await ann.sees('paid'), 'paid');
    await ann.page.locator('#again, .panel .quiet').click();
    await ann.sees('ready');
    await ann.button.click();
    await ann.sees('to_pay');
    await ann.page.locator('#cancel').click();
    await ann.page.locator('#cancel-yes').click();
    await look(await ann.sees('cancelled'), 'cancelled');
    await ann.leave();
  });

  it('when it does not work: expired, failed, refused', async () => {
    await worker.stop();
    worker = await system.programs.start('worker', { env: { ORDER_PAYMENT_WINDOW_MS: '1000' } });
    const saleId = await newSale();
    const ann = await visit({ saleId });
    await ann.sees('ready');
    await ann.button.click();
    await look(await ann.sees('expired', 40_000), 'expired');
    await ann.leave();

    const answering = async (name: string, status: number, body: object): Promise<void> => {
      const bob = await visit({ saleId, userId: 'bob' });
      await bob.sees('ready');
      const contentType = status < 400 ? 'application/json' : 'application/problem+json';
      const isPurchase = (url: URL): boolean => url.pathname.endsWith('/purchases');
      await bob.page.route(isPurchase, (route) => route.fulfill({ status, contentType, body: JSON.stringify(body) }));
      await bob.button.click();
      await look(await bob.sees(name), name);
      await bob.leave();
    };
    await answering('failed', 200, { status: 'failed', orderId: '9', reason: 'units_lost' });
    await answering('refused', 403, { code: 'denied' });
  });

  it('all of them are in the documentation, and nothing else', async () => {
    for (const saleId of sales) await expectInvariants(system.stack, saleId);
    const expected = shown.flatMap((name) => LOOKS.map((one) => `${name}-${one.name}.png`));
    expect(readdirSync(PICTURES).sort()).to.deep.equal(expected.sort());
  });
});
