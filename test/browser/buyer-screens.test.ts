import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { Buyers, isAccepted } from '../chaos/harness/buyers.js';
import { ask } from '../chaos/harness/http.js';
import type { Program } from '../chaos/harness/programs.js';
import { ACTOR, draftSale, openSale, type SaleParts } from '../chaos/harness/sales.js';
import { until } from '../chaos/harness/wait.js';
import { accessibilityFaults, OF_COLOURS, OF_LANGUAGE, OF_WIDTH } from '../helpers/accessibility.js';
import { startChromium, type StartedBrowser } from '../helpers/chromium.js';
import { expectInvariants } from '../helpers/invariants.js';
import { zh } from '../../web/buyer/words/zh.js';
import { useSystem } from '../helpers/system.js';
import { PICTURES_IN_DOCS, takePicture, TAKES_PICTURES } from './pictures.js';
import { publishRules, untilInForce, Visitor, type VisitorParts } from './visitor.js';

const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1280, height: 800 };
/** The first look checks every state fully. The other looks only search for their own problems. */
const LOOKS = [
  { name: 'desktop', viewport: DESKTOP, colorScheme: 'light', language: 'English', rules: undefined },
  { name: 'desktop-dark', viewport: DESKTOP, colorScheme: 'dark', language: 'English', rules: OF_COLOURS },
  { name: 'phone', viewport: PHONE, colorScheme: 'light', language: 'English', rules: OF_WIDTH },
  { name: 'phone-zh', viewport: PHONE, colorScheme: 'light', language: '中文', rules: OF_LANGUAGE },
] as const;
/** States that together show every colour and every kind of part. */
const CHECKED_IN_ALL_LOOKS = ['on-sale', 'sold-out', 'waiting-room', 'give-up', 'declined'];

/** Never answers a request. */
const hangs = (): void => undefined;
const TITLE = 'Stoneware tea bowl, celadon';
const HOUR_MS = 3_600_000;

/** Checks every state of the page: it is accessible, and nothing is cut off. */
describe('each state of the sale page', () => {
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
      programs.start('worker'),
      startChromium(),
      programs.start('keeper', {
        env: { KEEPER_EVERY_MS: '500', OUTBOX_EVERY_MS: '100', EXPIRE_SWEEP_EVERY_MS: '500' },
      }),
    ]);
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
    const context = { reducedMotion: 'reduce' } as const; // no colour is measured in transition
    const shop = { url: api.url, sku: 'tea-bowl-7', context };
    return Visitor.open(started, system.stack.env.JWT_SECRET, { ...shop, ...parts });
  }

  /** Checks the current page for users of a screen reader, a keyboard, more contrast or a phone. */
  async function look({ page }: Visitor, name: string): Promise<void> {
    const inAllLooks = CHECKED_IN_ALL_LOOKS.includes(name);
    for (const { name: lookName, viewport, colorScheme, language, rules } of LOOKS) {
      const isChecked = rules === undefined || inAllLooks;
      if (!isChecked && viewport !== PHONE && !TAKES_PICTURES) continue; // has the same width as the first look
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme });
      const other = page.locator('.languages [aria-pressed="false"]', { hasText: language });
      if ((await other.count()) > 0) await other.click();
      await page.locator('.languages [aria-pressed="true"]', { hasText: language }).waitFor();
      if (isChecked) expect(await accessibilityFaults(page, rules), `${name} in ${lookName}`).to.deep.equal([]);
      const wide = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      expect(wide, `${name} in ${lookName}: nothing is wider than the screen`).to.equal(0);
      if (TAKES_PICTURES) await settleAndTake(page, `${name}-${lookName}`);
    }
    shown.push(name);
  }

  async function settleAndTake(page: Page, name: string): Promise<void> {
    await page.evaluate('document.activeElement.blur(); scrollTo(0, 0)');
    await page.evaluate("document.querySelector('.sure')?.scrollIntoView({ block: 'nearest' })");
    await page.mouse.move(2, 2);
    await page.evaluate('document.fonts.ready');
    await takePicture(page, `buyer-page/${name}.png`);
  }

  async function publish(rules: object): Promise<void> {
    const version = await publishRules(system.stack.env.JWT_SECRET, api.operatorsUrl, rules);
    await untilInForce(api.operatorsUrl, version);
  }

  it('before the opening: countdown, guest', async () => {
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

  it('on sale: signed in, guest, nearly gone, offline, very long title', async () => {
    const saleId = await newSale();
    const ann = await visit({ saleId });
    await look(await ann.sees('ready'), 'on-sale');
    await ann.page.context().setOffline(true);
    await ann.page.locator('#go[aria-disabled="true"]').waitFor();
    await look(ann, 'offline');
    await ann.leave();
    const guest = await visit({ saleId, userId: null });
    await look(await guest.sees('signed_out'), 'signed-out');
    await guest.leave();

    const few = await newSale({ stock: 11, limitPerBuyer: 10 });
    expect(isAccepted(await buyersOf(few).buy('zoe', { quantity: 10, tries: 10 }))).to.equal(true);
    const bob = await visit({ saleId: few });
    await until('the page sees it', async () => {
      await bob.lookAgain();
      return (await bob.page.locator('.chip').textContent()) === 'Almost gone';
    });
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

  it('not on sale: sold out, back, paused, over, missing, unreachable, loading', async () => {
    const saleId = await newSale({ stock: 1 });
    const buyers = buyersOf(saleId);
    expect(isAccepted(await buyers.buy('zoe', { tries: 10 }))).to.equal(true);
    const ann = await visit({ saleId });
    await look(await ann.sees('sold_out'), 'sold-out');
    const { json } = await buyers.status('zoe', 'k1', 20);
    expect((await buyers.move('cancel', 'zoe', String(json.orderId)))?.status).to.equal(200);
    await look(await ann.seesSoon('ready'), 'back-in-stock');
    await system.stack.admin.pause(saleId, ACTOR);
    await look(await ann.seesSoon('paused'), 'paused');
    await system.stack.admin.close(saleId, ACTOR);
    await look(await ann.seesSoon('closed'), 'over');
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

  it('waiting: in the room, ready to buy, only in the app', async () => {
    const [room, turn, app] = [await newSale(), await newSale(), await newSale()];
    await publish({
      queue: { mode: 'on', sales: [room, turn], admitPerSecond: 0.1, pollMs: 500, passMs: 118_000 },
      sign: { mode: 'on', sales: [app], keys: ['local'] },
    });
    const join = (userId: string): Promise<unknown> =>
      ask(`${api.url}/v1/sales/${room}/queue`, { method: 'POST', token: buyersOf(room).token(userId) });
    await Promise.all(Array.from({ length: 12 }, (_, i) => join(`early-${i}`)));
    const ann = await visit({ saleId: room });
    await look(await ann.sees('room'), 'waiting-room');
    await ann.leave();
    const bob = await visit({ saleId: turn, userId: 'bob' });
    await look(await bob.sees('ready'), 'your-turn'); // the queue was empty
    await bob.leave();
    const cid = await visit({ saleId: app });
    await look(await cid.sees('app_only'), 'app-only');
    await cid.leave();
    await publishRules(system.stack.env.JWT_SECRET, api.operatorsUrl, {});
  });

  it('after the click: busy, held, to pay, question, declined, paid, given up, link for another buyer', async () => {
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
    await ann.page.locator('#stop').click();
    await ann.page.unroute(isBusy);
    await ann.sees('ready'); // no attempt has arrived
    worker.signal('SIGSTOP');
    await ann.button.click();
    await look(await ann.sees('held'), 'held');
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
    expect(await ann.page.locator('#said').textContent()).to.equal(zh.problems.payment_declined);
    await look(ann, 'declined');
    await ann.page.unroute(/\/pay$/);
    await ann.page.locator('#pay').click();
    await look(await ann.sees('paid'), 'paid');
    await ann.page.locator('#again').click();
    await ann.sees('ready');
    await ann.button.click();
    await ann.sees('to_pay');
    await ann.page.locator('#cancel').click();
    await ann.page.locator('#cancel-yes').click();
    await look(await ann.sees('cancelled'), 'cancelled');
    await ann.page.evaluate(`location.hash = 'token=${buyersOf(saleId).token('bob')}'`);
    await look(await ann.sees('other_buyer'), 'other-buyer');
    await ann.leave();
  });

  it('failures: expired, failed, refused', async () => {
    const saleId = await newSale();
    const ann = await visit({ saleId });
    await ann.sees('ready');
    await ann.button.click();
    await ann.sees('to_pay');
    expect(await ann.page.locator('.time-left .digits').textContent()).to.match(/^1[0-5]:\d\d$/);
    await system.stack.mysql.execute('UPDATE orders SET expires_at = UTC_TIMESTAMP(3) WHERE sale_id = ?', [saleId]);
    await look(await ann.sees('expired'), 'expired');
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

  it('keeps the invariants of every sale, and covers each state with a picture in the documentation', async () => {
    for (const saleId of sales) await expectInvariants(system.stack, saleId);
    const files = shown.flatMap((name) => LOOKS.map((one) => `buyer-page/${name}-${one.name}.png`));
    expect(files).to.include.members(PICTURES_IN_DOCS.filter((name) => name.startsWith('buyer-page/')));
  });
});
