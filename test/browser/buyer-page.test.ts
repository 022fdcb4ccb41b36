import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask } from '../chaos/harness/http.js';
import type { Program } from '../chaos/harness/programs.js';
import { ACTOR, draftSale, openSale, type SaleParts } from '../chaos/harness/sales.js';
import { statesOf } from '../chaos/harness/sale-state.js';
import { pause, until } from '../chaos/harness/wait.js';
import { startChromium, type StartedBrowser } from '../helpers/chromium.js';
import { expectInvariants } from '../helpers/invariants.js';
import { fetchNginx, Nginx } from '../helpers/nginx.js';
import { useSystem } from '../helpers/system.js';
import { publishRules, untilInForce, Visitor, type VisitorParts } from './visitor.js';

/** Streams end soon, so that each test also sees a stream reopen. */
const API_ENV = {
  PAYMENT_PROVIDER: 'simulator',
  EVENTS_STREAM_MAX_MS: '1500',
  EVENTS_RETRY_MS: '100',
  ACCESS_LOG: 'all',
};
const KEEPER_ENV = { KEEPER_EVERY_MS: '500', OUTBOX_EVERY_MS: '100', EXPIRE_SWEEP_EVERY_MS: '500' };
/** Compressed size of all files together. */
const BYTES_MAX = 31_700;
/** Removes the random part of the page's delays. */
const NO_CHANCE = 'Math.random = () => 0;';
const PURCHASES = /\/purchases$/;

describe('the sale page in a browser', () => {
  let api: Program;
  let worker: Program;
  let started: StartedBrowser;
  const system = useSystem(async ({ programs }) => {
    [api, worker, started] = await Promise.all([
      programs.start('api', { env: API_ENV }),
      programs.start('worker'),
      startChromium(),
      programs.start('keeper', { env: KEEPER_ENV }),
    ]);
  });
  afterEach(() => worker.signal('SIGCONT')); // in case a failed test left it open
  after(() => started.close());

  const visit = (parts: Omit<VisitorParts, 'url'> & { readonly url?: string }): Promise<Visitor> =>
    Visitor.open(started, system.stack.env.JWT_SECRET, { url: api.url, ...parts });
  const newSale = async (parts: SaleParts = {}): Promise<string> =>
    (await openSale(system.stack, { title: 'A cup', ...parts })).saleId;
  const buyersOf = (saleId: string): Buyers => new Buyers(saleId, system.stack.env.JWT_SECRET, () => [api.url]);
  const figuresOf = (saleId: string): ReturnType<typeof expectInvariants> => expectInvariants(system.stack, saleId);

  it('loads few bytes per buyer', () => {
    const folder = join(REPO_DIR, 'dist/web/buyer');
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('.'));
    const sizes = files.map((name) => gzipSync(readFileSync(join(folder, name)), { level: 9 }).length);
    const ofWords = sizes.filter((_, index) => /(^|\/)(en|zh)-[^/]+\.js$/.test(files[index] as string));
    const bytes = sizes.reduce((sum, size) => sum + size, 0) - Math.min(...ofWords); // a page loads one language
    console.log(`      · ${bytes} bytes in ${files.length - 1} files`);
    expect(files).to.include('index.html');
    expect(ofWords).to.have.length(2);
    expect(bytes).to.be.at.most(BYTES_MAX);
  });

  it('buys once despite a double click, reloads and a second tab, and takes a payment', async () => {
    const saleId = await newSale({ stock: 5, limitPerBuyer: 1 });
    const ann = await visit({ saleId });
    await ann.sees('ready');
    await ann.button.dblclick();
    await ann.page.reload();
    await ann.page.reload();
    await ann.sees('to_pay');
    await ann.page.reload();
    await ann.sees('to_pay');
    expect(await ann.keys(), 'one key').to.have.length(1);
    await until('it continues where the stream ended', async () => {
      const streams = await Promise.all(ann.sent('GET', /\/events$/).map((request) => request.allHeaders()));
      return streams.some((headers) => headers['last-event-id'] === 'ordered');
    });
    await ann.page.locator('#pay').dblclick();
    await ann.sees('paid');
    expect(new Set(ann.sent('POST', /\/pay$/).map((request) => request.url())).size).to.equal(1);
    await ann.leave();

    const again = await visit({ saleId });
    await again.sees('ready');
    await again.button.click();
    await again.sees('paid'); // in another tab the server reports the purchase of this buyer, and the page shows it
    await again.leave();
    expect(api.log, 'the access log')
      .to.contain('"user":"ann"')
      .and.not.contain(ann.token)
      .and.not.contain(again.token);
    expect(await statesOf(system.stack, saleId)).to.include({ paid: 1 });
    expect(await figuresOf(saleId)).to.include({ rows: 1, sold: 1 });
  });

  describe('at the opening', () => {
    /** Time for all pages to load and to count down for a while. */
    const BEFORE_MS = 12_000;
    let opensAtMs: number;
    let saleId: string;
    const endings = new Map<string, PromiseSettledResult<void>>();
    const ended = (title: string): void => {
      const ending = endings.get(title);
      if (ending?.status === 'rejected') throw ending.reason;
      expect(ending?.status).to.equal('fulfilled');
    };

    /** Presses the button as soon as possible. Runs in the page, because each call from outside takes time. */
    async function pressesAtOnce(visitor: Visitor): Promise<void> {
      await visitor.press();
      expect(await visitor.canBuy()).to.equal(false);
      const pressedAtMs = Number(
        await visitor.page.evaluate(`new Promise((resolve) => {
          const button = document.querySelector('#go');
          new MutationObserver((_, observer) => {
            if (button.getAttribute('aria-disabled') === 'true') return;
            observer.disconnect();
            const atMs = performance.timeOrigin + performance.now();
            button.click();
            resolve(atMs);
          }).observe(button, { attributes: true });
        })`),
      );
      console.log(`      · pressed ${(pressedAtMs - opensAtMs).toFixed(0)} ms after the opening`);
      expect(pressedAtMs).to.be.within(opensAtMs - 100, opensAtMs + 1500);
      await visitor.sees('to_pay');
      const sent = visitor.sent('POST', PURCHASES);
      const statuses = await Promise.all(sent.map(async (request) => (await request.response())?.status()));
      expect(statuses, 'not a moment too early').to.deep.equal([202]);
    }

    async function staysInPlace(visitor: Visitor): Promise<void> {
      const placeBefore = await visitor.button.boundingBox();
      await visitor.sees('ready');
      expect(await visitor.button.boundingBox()).to.deep.equal(placeBefore);
      const shifts = (await visitor.page.evaluate('window.shifts')) as number[];
      const sum = shifts.reduce((total, value) => total + value, 0);
      expect(sum, `layout shifts: ${shifts.join(' ')}`).to.be.below(0.02);
    }

    /** Clicks quickly from before the opening until after it, and does not stop when the order must be paid. */
    async function hammers(visitor: Visitor): Promise<void> {
      await visitor.button.hover();
      await pause(Math.max(0, opensAtMs - Date.now() - 800));
      await visitor.hammers(20, 80);
      await visitor.sees('to_pay');
      await visitor.page.locator('#pay').hover();
      await visitor.hammers(8, 80, 21);
      expect(visitor.sent('POST', /\/pay$/), 'of clicks that were meant for something else').to.deep.equal([]);
      expect(await visitor.keys()).to.have.length(1);
      await visitor.hammers(1, 0);
      await visitor.sees('paid');
    }

    const wallClock = (hours: number): string => `const now = Date.now; Date.now = () => now() + ${hours * 3_600_000};`;
    const shifts = `window.shifts = []; new PerformanceObserver((list) => {
      for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) window.shifts.push(value);
    }).observe({ type: 'layout-shift', buffered: true });`;
    const phone = { viewport: { width: 390, height: 844 } };
    const people: Record<string, [Partial<VisitorParts>, (visitor: Visitor) => Promise<void>]> = {
      'the button turns on at the second of the server': [{}, pressesAtOnce],
      'also with a wall clock that is an hour ahead': [{ before: wallClock(1) }, pressesAtOnce],
      'also with one that is an hour behind': [{ before: wallClock(-1) }, pressesAtOnce],
      'nothing moves when the page loads, and the button stays where it is when it turns on': [
        { before: shifts, context: phone },
        staysInPlace,
      ],
      'who clicks on and on buys once, and pays nothing by that': [{}, hammers],
    };

    before(async () => {
      opensAtMs = Date.now() + BEFORE_MS;
      ({ saleId } = await draftSale(system.stack, { title: 'A cup', stock: 9, limitPerBuyer: 3, opensAtMs }));
      await system.stack.admin.warm(saleId, ACTOR);
      await system.stack.admin.open(saleId, ACTOR);
      const visits = Object.entries(people).map(async ([title, [parts, does]], nth) => {
        const visitor = await visit({ saleId, userId: `buyer-${nth}`, ...parts });
        await visitor.sees('countdown');
        await does(visitor);
        await visitor.leave();
        return title;
      });
      const settled = await Promise.allSettled(visits);
      Object.keys(people).forEach((title, nth) => endings.set(title, settled[nth] as PromiseSettledResult<never>));
    });

    for (const title of Object.keys(people)) it(title, () => ended(title));

    it('buys once for each buyer', async () => {
      expect(await statesOf(system.stack, saleId)).to.deep.equal({ pending_payment: 3, paid: 1 });
      expect(await figuresOf(saleId)).to.include({ rows: 4, sold: 4 });
    });
  });

  it('counts down to an announced sale and sells it at its opening', async () => {
    const opensAtMs = Date.now() + 10_000;
    const parts = { title: 'A cup', opensAtMs, warmBeforeMs: 4000, paymentWindowMs: 300_000 };
    const { saleId } = await draftSale(system.stack, parts);
    const ann = await visit({ saleId });
    await ann.sees('countdown');
    expect((await ask(`${api.url}/v1/sales/${saleId}`)).json).to.include({ state: 'announced' });
    expect(await ann.page.locator('.chip').textContent()).to.equal('Opens soon');
    expect(await ann.page.locator('.facts').textContent()).to.include('5 minutes to pay');
    expect(await ann.canBuy()).to.equal(false);
    await ann.sees('ready');
    expect(Date.now()).to.be.at.least(opensAtMs - 100);
    await ann.button.click();
    await ann.sees('to_pay');
    await ann.leave();
    expect(await figuresOf(saleId)).to.include({ rows: 1, sold: 1 });
  });

  it('retries with the same key when its API is killed, until another API answers', async () => {
    const saleId = await newSale();
    const ann = await visit({ saleId, before: NO_CHANCE });
    await ann.sees('ready');
    const { port } = new URL(api.url);
    await api.crash();
    await ann.button.click();
    await until('it has tried again', () => ann.sent('POST', PURCHASES).length >= 2);
    expect(await ann.page.locator('.panel .note').textContent()).to.contain('No answer from the shop');
    api = await system.programs.start('api', { env: { ...API_ENV, PORT: port } });
    await ann.sees('to_pay');
    expect(ann.sent('POST', PURCHASES).length).to.be.at.least(3);
    expect(await ann.keys()).to.have.length(1);
    await ann.leave();
    expect(await figuresOf(saleId)).to.include({ rows: 1 });
  });

  it('keeps a buyer informed while no API behind nginx answers, then opens uncached pages', async function () {
    const found = await fetchNginx();
    if ('missing' in found) return this.skip();
    const port = Number(new URL(api.url).port);
    const nginx = await Nginx.start(found, { upstreams: [{ port, operatorsPort: port }] });
    try {
      const [saleId, other] = [await newSale(), await newSale()];
      const ann = await visit({ url: nginx.url, saleId, before: NO_CHANCE });
      await ann.sees('ready');
      await api.crash();
      await ann.button.click();
      await until('it has tried again', () => ann.sent('POST', PURCHASES).length >= 2);
      expect(await ann.page.locator('.panel .note').textContent()).to.contain('The answer was lost on its way');
      await ann.page.reload();
      const bob = await visit({ url: nginx.url, saleId: other, userId: 'bob' });
      expect(await bob.page.locator('body').textContent()).to.contain('The shop does not answer');
      api = await system.programs.start('api', { env: { ...API_ENV, PORT: String(port) } });
      await bob.sees('ready');
      await ann.sees('to_pay');
      expect(await ann.keys()).to.have.length(1);
      await ann.leave();
      await bob.leave();
      expect(await figuresOf(saleId)).to.include({ rows: 1 });
    } finally {
      await nginx.stop();
    }
  });

  describe('proofs that a sale may require', () => {
    let [room, background] = ['', ''];
    before(async () => {
      [room, background] = (await Promise.all([newSale(), newSale()])) as [string, string];
      const version = await publishRules(system.stack.env.JWT_SECRET, api.operatorsUrl, {
        queue: { mode: 'on', sales: [room, background], admitPerSecond: 1, pollMs: 500, idleMs: 3000 },
        sign: { mode: 'on', sales: [], keys: ['local'], tokens: { mode: 'on', sales: [room] } },
      });
      await untilInForce(api.operatorsUrl, version);
    });
    after(() => publishRules(system.stack.env.JWT_SECRET, api.operatorsUrl, {}));

    /**
     * Earlier buyers keep polling and take the first turns, which last longer than a page needs to load, even on a busy
     * machine.
     */
    async function othersCome(saleId: string): Promise<void> {
      const queue = `${api.url}/v1/sales/${saleId}/queue`;
      const comes = async (userId: string): Promise<void> => {
        const token = buyersOf(saleId).token(userId);
        let place = await ask(queue, { method: 'POST', token });
        const waits = async (): Promise<void> => {
          while (place.json.status === 'waiting') {
            await pause(Number(place.json.pollAfterMs));
            place = await ask(`${queue}/${encodeURIComponent(String(place.json.ticket))}`, { token });
          }
        };
        waits().catch(() => undefined); // the API has ended
      };
      await Promise.all(Array.from({ length: 10 }, (_, nth) => comes(`early-${nth}`)));
    }

    async function waitsInRoom(): Promise<void> {
      await othersCome(room);
      const ann = await visit({ saleId: room });
      await ann.sees('room');
      await ann.page.locator('.position', { hasText: /^Place \d+$/ }).waitFor();
      expect(await ann.canBuy()).to.equal(false);
      await ann.page.reload();
      await ann.sees('room');
      await ann.sees('ready');
      expect(await ann.page.locator('.headline').textContent()).to.equal('It is your turn');
      await ann.button.click();
      await ann.sees('to_pay');
      const [headers] = await Promise.all(ann.sent('POST', PURCHASES).map((request) => request.allHeaders()));
      expect(headers).to.include.keys('seckill-queue-pass', 'seckill-purchase-token');
      await ann.leave();
    }

    async function waitsInBackground(): Promise<void> {
      await othersCome(background);
      const sleepy = `const wait = setTimeout;
        window.setTimeout = (done, ms) => wait(done, ms > 100 ? 60_000 : ms);
        Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' });`;
      const bob = await visit({ saleId: background, userId: 'bob', before: sleepy });
      await bob.sees('room');
      await bob.sees('ready');
      expect(bob.sent('GET', /\/queue\//).length, 'asked as often as in front').to.be.at.least(3);
      expect(bob.page.workers()).to.have.length(1);
      await bob.leave();
    }

    it('gets a place, a pass and a token at its turn, even in a background tab', async () => {
      await Promise.all([waitsInRoom(), waitsInBackground()]);
      expect(await figuresOf(room)).to.include({ rows: 1 });
    });
  });

  it('works with a keyboard alone (choose, buy, give up, buy again, pay) and never loses the focus', async () => {
    const saleId = await newSale({ stock: 5, limitPerBuyer: 2 });
    const ann = await visit({ saleId });
    await ann.sees('ready');
    const { keyboard } = ann.page;
    const focused = (): Promise<unknown> =>
      ann.page.evaluate(
        'document.activeElement.id || document.activeElement.ariaLabel || document.activeElement.textContent',
      );
    const tabTo = async (wanted: string): Promise<void> => {
      for (let presses = 0; presses < 15 && (await focused()) !== wanted; presses++) await keyboard.press('Tab');
      expect(await focused()).to.equal(wanted);
    };
    await tabTo('One more');
    await keyboard.press('Enter');
    expect(await ann.page.locator('.quantity output').textContent()).to.match(/^2/);
    worker.signal('SIGSTOP');
    await tabTo('go');
    await keyboard.press('Enter');
    await ann.sees('held');
    expect(await focused(), 'greyed, the button keeps the focus').to.equal('go');
    await keyboard.press('Enter');
    worker.signal('SIGCONT');
    await ann.sees('to_pay');
    await until('the headline is read', async () => (await focused()) === 'headline');
    await tabTo('cancel');
    await keyboard.press('Enter');
    expect(await focused(), 'the answer that costs nothing').to.equal('cancel-no');
    await keyboard.press('Enter');
    expect(await focused()).to.equal('cancel');
    await keyboard.press('Enter');
    await tabTo('cancel-yes');
    await keyboard.press('Enter');
    await ann.sees('cancelled');
    await until('the headline is read', async () => (await focused()) === 'headline');
    expect(await figuresOf(saleId), 'until then the limit counts them').to.include({ sold: 0, unitsLeft: 5 });
    await tabTo('again');
    await keyboard.press('Enter');
    await ann.sees('ready');
    await until('the headline is read', async () => (await focused()) === 'headline');
    await tabTo('go');
    await keyboard.press('Enter');
    await ann.sees('to_pay');
    await tabTo('pay');
    await keyboard.press('Space');
    await ann.sees('paid');
    await until('the headline is read', async () => (await focused()) === 'headline');
    expect(await ann.page.locator('#said').textContent()).to.contain('Your order is paid');
    await ann.leave();
    expect(await figuresOf(saleId)).to.include({ rows: 2, sold: 1 });
  });

  it('uses the language of the browser or the link, or the choice in this tab', async () => {
    const saleId = await newSale();
    const ann = await visit({ saleId, context: { locale: 'zh-CN' } });
    await ann.sees('ready');
    const lang = (): Promise<string | null> => ann.page.locator('html').getAttribute('lang');
    expect(await lang()).to.equal('zh-CN');
    expect(await ann.button.textContent()).to.contain('立即购买');
    await ann.page.getByRole('button', { name: 'English' }).click();
    await ann.button.filter({ hasText: 'Buy for' }).waitFor(); // the texts load first
    await ann.page.reload();
    await ann.sees('ready');
    expect(await lang()).to.equal('en');
    await ann.leave();
    const bob = await visit({ saleId, userId: 'bob', lang: 'zh' });
    await bob.sees('ready');
    await bob.page.reload();
    await bob.sees('ready');
    expect(await bob.page.locator('html').getAttribute('lang'), 'of the link, behind a reload').to.equal('zh-CN');
    await bob.leave();
  });

  it('moves and rotates nothing for buyers who prefer reduced motion', async () => {
    const saleId = await newSale();
    const ann = await visit({ saleId, context: { reducedMotion: 'reduce' } });
    await ann.sees('ready');
    worker.signal('SIGSTOP');
    await ann.button.click();
    await ann.sees('held');
    expect(await ann.page.evaluate('document.getAnimations().length')).to.equal(0);
    worker.signal('SIGCONT');
    await ann.sees('to_pay');
    expect(await ann.page.evaluate('document.getAnimations().length')).to.equal(0);
    await ann.leave();
    expect(await figuresOf(saleId)).to.include({ rows: 1 });
  });

  it('shows a signed-out buyer the sale and where to sign in, and accepts a later link', async () => {
    const saleId = await newSale();
    const guest = await visit({ saleId, userId: null });
    await guest.sees('signed_out');
    expect(guest.requests.some((request) => 'authorization' in request.headers())).to.equal(false);
    const token = buyersOf(saleId).token('ann');
    await guest.page.evaluate(`location.hash = 'token=${token}'`);
    await guest.sees('ready');
    expect(guest.page.url()).not.to.contain('token');
    await guest.button.click();
    await guest.sees('to_pay');
    await guest.leave();
    expect(await figuresOf(saleId)).to.include({ rows: 1 });
  });
});
