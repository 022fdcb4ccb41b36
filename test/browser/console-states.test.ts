import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { accessibilityFaults, OF_COLOURS, OF_LANGUAGE, OF_WIDTH } from '../helpers/accessibility.js';
import { until } from '../chaos/harness/wait.js';
import { startChromium, type StartedBrowser } from '../helpers/chromium.js';
import { FakeApi, type FakeMode } from './console/fake-api.js';
import {
  goTo,
  hasLoaded,
  isShown,
  lookAs,
  LOOKS,
  openConsole,
  SCREEN_NAMES,
  SCREENS,
  type Look,
  type Opened,
  type ScreenName,
} from './console/looks.js';
import { PICTURES_IN_DOCS, takePicture, TAKES_PICTURES } from './pictures.js';

const BUILT = join(REPO_DIR, 'dist/web/console');
/** Screens that together show every colour and kind of part. axe also checks them in dark colours and on a phone. */
const CHECKED_IN_OTHER_LOOKS: readonly ScreenName[] = ['live', 'sale', 'dead-letters', 'rules', 'health'];
/** Screens that differ from their view with data, by state. */
const CHECKED_IN_STATE: Readonly<Record<'empty' | 'failing' | 'long', readonly ScreenName[]>> = {
  empty: ['live', 'dead-letters', 'health'],
  failing: ['live', 'dead-letters', 'health'],
  long: ['dead-letters', 'sale'],
};
const SIZE_MAX = 120 * 1024;
const TOKEN = 'head.body.signature';
/** A chart is redrawn after its colours change. */
const PAINTED_AFTER_MS = 300;

describe('the console screens in each state, with canned answers', () => {
  let api: FakeApi;
  let started: StartedBrowser;
  let opened: Opened;
  before(async () => {
    [api, started] = await Promise.all([FakeApi.start(), startChromium()]);
  });
  after(() => api?.close());
  afterEach(async () => {
    Object.assign(api, { mode: 'data', role: 'admin', snapshotsBefore: 90 });
    api.refused.clear();
    await started?.close();
  });

  /** Opens a signed-in tab at a screen. */
  const open = async (mode: FakeMode, name: ScreenName, look: Look = 'light'): Promise<Page> => {
    api.mode = mode;
    opened = await openConsole(started.browser, { origin: api.url, look, token: TOKEN });
    await opened.page.goto(`${api.url}/console/${SCREENS[name][0]}`);
    await isShown(opened.page, name);
    return opened.page;
  };
  const openLoaded = async (...parts: Parameters<typeof open>): Promise<Page> => {
    const page = await open(...parts);
    await hasLoaded(page);
    return page;
  };

  it(`are at most ${SIZE_MAX / 1024} kB in all, zipped`, () => {
    const sizes = readdirSync(BUILT, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.\w+$/.test(name))
      .map((name) => gzipSync(readFileSync(join(BUILT, name)), { level: 9 }).length);
    const all = sizes.reduce((sum, size) => sum + size, 0);
    console.log(`      ${(all / 1024).toFixed(1)} kB`);
    expect(all).to.be.at.most(SIZE_MAX);
  });

  it('include every screen that a page of the documentation shows', () => {
    const files = SCREEN_NAMES.flatMap((name) => Object.keys(LOOKS).map((look) => `console/${name}-${look}.png`));
    expect(files).to.include.members(PICTURES_IN_DOCS.filter((name) => name.startsWith('console/')));
  });

  it('pass axe, fit their window and ask no other server when they show data', async () => {
    const page = await open('data', 'live');
    const found: string[] = [];
    const picture = async (name: ScreenName, look: Look): Promise<void> => {
      if (!TAKES_PICTURES) return;
      await page.waitForTimeout(PAINTED_AFTER_MS);
      await takePicture(page, `console/${name}-${look}.png`);
    };
    for (const name of SCREEN_NAMES) {
      const add = (faults: readonly string[]): void => void found.push(...faults.map((fault) => `${name}: ${fault}`));
      const inOtherLooks = CHECKED_IN_OTHER_LOOKS.includes(name);
      await goTo(page, name);
      await hasLoaded(page);
      add(await accessibilityFaults(page));
      add(await tooWide(page));
      await picture(name, 'light');
      if (inOtherLooks || TAKES_PICTURES) await lookAs(page, 'dark');
      if (inOtherLooks) add(await accessibilityFaults(page, OF_COLOURS));
      await picture(name, 'dark');
      await lookAs(page, 'phone');
      if (inOtherLooks) add(await accessibilityFaults(page, OF_WIDTH));
      add(await tooWide(page));
      await picture(name, 'phone');
      await lookAs(page, 'light');
    }
    expect(found).to.deep.equal([]);
    expect(opened.faults).to.deep.equal([]);
  });

  for (const mode of ['empty', 'failing', 'long'] as const) {
    it(`report the state and stay usable with ${mode} lists`, async () => {
      const page = await open(mode, 'live', mode === 'long' ? 'phone' : 'light');
      const found: string[] = [];
      for (const name of SCREEN_NAMES) {
        await goTo(page, name);
        await hasLoaded(page);
        if (mode === 'failing') await page.getByText('mysql does not answer').first().waitFor();
        const faults = CHECKED_IN_STATE[mode].includes(name) ? await accessibilityFaults(page) : [];
        for (const fault of [...faults, ...(await tooWide(page))]) found.push(`${name}: ${fault}`);
        const rows = await page.locator('tr').count();
        if (rows > 400) found.push(`${name}: draws ${rows} rows`);
      }
      expect(found).to.deep.equal([]);
      expect(opened.faults).to.deep.equal([]);
    });
  }

  it('show grey bars until an answer arrives', async () => {
    const page = await open('silent', 'live');
    for (const name of SCREEN_NAMES) {
      if (name === 'browse') continue; // the screen asks only after input
      await goTo(page, name);
      await page.locator('.loading').first().waitFor();
    }
    expect(opened.faults).to.deep.equal([]);
  });

  it('scroll through ten thousand rows without drawing them all', async () => {
    const page = await openLoaded('long', 'dead-letters');
    const box = page.locator('.table-box.long');
    await box.evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await page.getByRole('cell', { name: '10016', exact: true }).waitFor();
    expect(await page.locator('tbody tr').count()).to.be.below(100);
    expect(await page.locator('table').first().getAttribute('aria-rowcount')).to.equal('10001');
  });

  it('mark figures as stale, with their age, while updates are missing', async () => {
    const page = await openLoaded('data', 'health');
    const sale = await opened.context.newPage();
    await sale.goto(`${api.url}/console/${SCREENS.sale[0]}`);
    await sale.locator('.chart canvas').waitFor();
    await page.locator('.sign.ok').waitFor();
    api.mode = 'failing';
    api.snapshotsBefore = 0; // the missed snapshots stay missing
    api.drop();
    await page.getByText('5 parts are unknown').waitFor({ timeout: 20_000 });
    await sale
      .locator('.under')
      .getByText(/Stale: \d/)
      .waitFor({ timeout: 20_000 });
    expect(await sale.locator('.is-stale .figure').count(), 'figures of the sale').to.equal(4);
    await goTo(page, 'live');
    await page
      .locator('.is-stale .under')
      .getByText(/Stale: \d/)
      .waitFor();
    await page
      .locator('.sign.bad')
      .getByText(/No data for \d/)
      .waitFor();
    expect(await page.locator('.figure').count(), 'the last known figures stay').to.be.greaterThan(3);

    const readAgain = sale.waitForResponse((response) => response.url().includes('/seconds?') && response.ok());
    api.mode = 'data';
    await page.locator('.sign.ok').waitFor({ timeout: 40_000 });
    const { fromMs, toMs } = (await (await readAgain).json()) as { fromMs: number; toMs: number };
    expect(toMs - fromMs, 'only the seconds that were missed').to.be.within(1_000, 60_000);
  });

  it('keep the token through a reload during an outage, and continue by themselves or on request', async () => {
    const page = await openLoaded('data', 'audit');
    api.mode = 'away';
    await page.reload();
    await page.getByRole('heading', { name: 'Waiting for the api' }).waitFor();
    await page.getByText('(502 Bad Gateway)').waitFor();
    expect(await page.evaluate('Object.values(sessionStorage)')).to.deep.equal([TOKEN]);
    expect(await accessibilityFaults(page)).to.deep.equal([]);
    api.mode = 'data';
    // checked at once, before the page continues by itself
    await page.evaluate(
      "[...document.querySelectorAll('button')].find((one) => one.textContent === 'Try again')?.click()",
    );
    await isShown(page, 'audit');

    api.mode = 'away';
    await page.reload();
    await page.getByRole('heading', { name: 'Waiting for the api' }).waitFor();
    api.mode = 'data';
    await isShown(page, 'audit');
  });

  it('remove rows of an earlier filter, and refresh the shown list', async () => {
    api.mode = 'data';
    api.role = 'viewer';
    opened = await openConsole(started.browser, { origin: api.url, token: TOKEN });
    const { page } = opened;
    await page.clock.install();
    await page.goto(`${api.url}/console/${SCREENS['dead-letters'][0]}`);
    const row = page.locator('tbody tr').first();
    await row.waitFor();
    await page.getByRole('button', { name: 'Read again' }).click(); // a viewer has this button as well
    await row.waitFor();
    await page.locator('[data-busy="false"]').waitFor();
    api.mode = 'silent';
    await page.getByLabel('State').selectOption('parked');
    await page.locator('main .loading').waitFor();
    expect(await row.count()).to.equal(0);
    api.mode = 'data';
    await page.getByLabel('State').selectOption('replayed');
    await row.waitFor();
    await page.locator('[data-busy="false"]').waitFor();
    api.mode = 'empty';
    await page.clock.fastForward(10_000);
    await page.getByText('No dead letter matches').waitFor();
  });

  it('keep selected rows unchanged', async () => {
    api.mode = 'data';
    opened = await openConsole(started.browser, { origin: api.url, token: TOKEN });
    const { page } = opened;
    await page.clock.install();
    await page.goto(`${api.url}/console/${SCREENS['dead-letters'][0]}`);
    await page.getByLabel('Select Dead letter 17').check();
    await page.getByText('1 selected').waitFor();
    await page.waitForTimeout(500); // waits for requests to finish
    const asked: string[] = [];
    page.on('request', (request) => void asked.push(new URL(request.url()).pathname));
    await page.clock.fastForward(30_000);
    await page.getByText(/Read 3\ds ago/).waitFor();
    expect(asked).not.to.include('/admin/v1/dead-letters');
  });

  it('report a running action, and neither leave nor repeat it', async () => {
    const page = await openLoaded('data', 'sale');
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    const question = page.getByRole('dialog');
    api.mode = 'silent';
    await question.getByRole('button', { name: 'Pause' }).click();
    await question.getByRole('status').getByText('Working on it …').waitFor();
    for (let press = 0; press < 3; press++) await page.keyboard.press('Escape');
    await page.mouse.click(5, 400); // a click beside the dialog
    await question.getByText('Working on it …').waitFor();
    expect(await question.getByRole('button', { name: 'Cancel' }).isDisabled()).to.equal(true);
    expect(await question.getByRole('button', { name: 'Close' }).count()).to.equal(0);
    api.mode = 'failing'; // Chromium repeats a request if the reused connection breaks
    api.drop();
    await question.getByText(/No answer came|mysql does not answer/).waitFor();
    await page.keyboard.press('Escape');
    await question.waitFor({ state: 'detached' });
  });

  it('name the requirement of an emptied sale field', async () => {
    const page = await openLoaded('data', 'sale');
    await page.getByRole('button', { name: 'Edit' }).click();
    const question = page.getByRole('dialog');
    const save = question.getByRole('button', { name: 'Edit' });
    await question.getByLabel('Title').fill('Trail shoe, winter run');
    expect(await save.isDisabled()).to.equal(false);
    await question.getByLabel('Closes').fill('');
    await question.getByText('Enter a day and a time.').waitFor();
    await question.getByLabel('Units').fill('');
    await question.getByText('A whole number of units, 1 or more.').waitFor();
    expect(await save.isDisabled()).to.equal(true);
    expect(opened.faults).to.deep.equal([]);
  });

  it('leave changes by another operator out of an edit', async () => {
    api.mode = 'data';
    opened = await openConsole(started.browser, { origin: api.url, token: TOKEN });
    const { page } = opened;
    await page.clock.install();
    await page.goto(`${api.url}/console/${SCREENS.sale[0]}`);
    await page.getByRole('button', { name: 'Edit' }).click();
    const question = page.getByRole('dialog');
    const isRead = page.waitForResponse((response) => response.headers()['x-raised'] === 'yes');
    await page.route(/\/admin\/v1\/sales\/\d+$/, async (route) => {
      if (route.request().method() !== 'GET') return route.continue();
      const sale = (await (await route.fetch()).json()) as { stock: number };
      return route.fulfill({ headers: { 'x-raised': 'yes' }, json: { ...sale, stock: sale.stock + 50 } });
    });
    await page.clock.fastForward(16_000);
    await isRead;
    await question.getByLabel('Title').fill('Trail shoe, winter run');
    const sent = page.waitForRequest((request) => request.method() === 'PATCH');
    await question.getByRole('button', { name: 'Edit' }).click();
    expect((await sent).postDataJSON()).to.deep.equal({ title: 'Trail shoe, winter run' });
  });

  it('process only the matches of the dry run when an action covers all matches', async () => {
    const page = await openLoaded('data', 'dead-letters');
    const bodies: { filter: { until: string }; dryRun: boolean }[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/bulk')) bodies.push(JSON.parse(request.postData() ?? '') as (typeof bodies)[number]);
    });
    await page.getByRole('button', { name: 'Replay all that match' }).click();
    await page.waitForTimeout(1_100);
    await page.getByRole('button', { name: 'Replay (12)' }).click();
    await page.getByText('The connection broke').waitFor(); // the API supports only the dry run
    expect(bodies.map(({ dryRun }) => dryRun)).to.deep.equal([true, false]);
    const [looked, ran] = bodies.map(({ filter }) => Date.parse(filter.until));
    expect(looked).to.be.a('number').and.closeTo(Date.now(), 60_000);
    expect(ran).to.equal(looked);
  });

  it('decide about lost orders after a preview, one request after another', async () => {
    const page = await openLoaded('data', 'reconcile');
    const lost = { kind: 'order_lost', saleId: '41', userId: 'ann', requestId: 'k1', batchId: null, quantity: 1 };
    const report = { runId: '1', outcome: 'findings', saleId: '41', more: false, figures: {}, counts: {}, jobs: [] };
    await page.route(/\/reconcile\/sales\/41\?/, (route) => route.fulfill({ json: { ...report, findings: [lost] } }));
    const asked: string[] = [];
    await page.route(/\/reconcile\/sales\/41\/lost-orders/, (route) => {
      const { searchParams } = new URL(route.request().url());
      asked.push(`${searchParams.get('mode')} ${searchParams.get('dryRun')}`);
      const order = { ...lost, orderId: '99', outcome: 'written', reason: null, evidence: [], note: null };
      const counts = { written: 2, failed: 0, recorded: 0, left: 0 };
      const json = { saleId: '41', dryRun: false, counts, more: asked.length === 2, silent: null, orders: [order] };
      return route.fulfill({ json });
    });
    await page.getByRole('button', { name: 'Compare a sale' }).click();
    const question = page.getByRole('dialog');
    await question.getByLabel('Number of the sale').fill('41');
    await question.getByRole('button', { name: 'Compare a sale' }).click();
    await question.getByRole('button', { name: 'Decide about lost orders' }).click();
    await question.getByLabel('What to do').selectOption('write');
    await question.getByRole('button', { name: 'Preview' }).click();
    await question.getByText('ann/k1').waitFor();
    expect(asked, 'nothing is changed yet').to.deep.equal(['write true']);
    await question.getByRole('button', { name: 'Carry out' }).click();
    await question.getByText('4', { exact: true }).waitFor();
    expect(asked).to.deep.equal(['write true', 'write false', 'write false']);
    expect(opened.faults).to.deep.equal([]);
  });

  it('show in the orders of a buyer and of a sale how much was refunded', async () => {
    const page = await openLoaded('data', 'orders-of-user');
    const refunded = page.getByRole('row').filter({ hasText: '€19.99−€5.00' }).getByText('Refunded', { exact: true });
    await refunded.first().waitFor();
    await goTo(page, 'sale');
    await refunded.first().waitFor();
    expect(opened.faults).to.deep.equal([]);
  });

  it('refund a part once when its button is clicked twice and an answer is lost', async () => {
    const page = await openLoaded('data', 'order');
    const asked: unknown[] = [];
    await page.route(/\/orders\/\d+\/refunds$/, async (route) => {
      const request = route.request();
      if (request.method() === 'GET') return route.continue();
      asked.push([request.headers()['idempotency-key'], request.postDataJSON()]);
      return asked.length === 1 ? route.abort() : route.fulfill({ json: { outcome: 'refunding', refund: null } });
    });
    await page.getByRole('button', { name: 'Refund', exact: true }).click();
    const question = page.getByRole('dialog');
    expect(await question.getByRole('button', { name: 'Refund €19.99' }).isDisabled(), 'without a reason').to.equal(
      true,
    );
    await question.getByLabel('Reason').fill('a scratch');
    await question.getByRole('button', { name: 'A part' }).click();
    for (const text of ['20', '1.234']) {
      await question.getByLabel('Amount (EUR)').fill(text);
      await question.getByText('An amount from 0.01 to 19.99').waitFor();
    }
    await question.getByLabel('Amount (EUR)').fill('5.5');
    await question.getByLabel('Sell the units again').check();
    expect(await accessibilityFaults(page)).to.deep.equal([]);
    const act = question.getByRole('button', { name: 'Refund €5.50' });
    await act.evaluate((button: { click(): void }) => (button.click(), button.click()));
    await question.getByText('No answer came').waitFor();
    await act.click();
    await question.getByText('The refund is ordered.').waitFor();
    const [first, second, ...more] = asked as [string, unknown][];
    expect(more).to.deep.equal([]);
    expect(first?.[0]).to.match(/^[0-9a-f]{32}$/);
    expect(first?.[1]).to.deep.equal({ restock: true, reason: 'a scratch', amountCents: 550 });
    expect(second).to.deep.equal(first);
    expect(opened.faults).to.deep.equal([]);
  });

  it('advise on a failed refund, and retry the refund or claim it with a reason', async () => {
    const page = await openLoaded('data', 'order');
    const asked: unknown[] = [];
    await page.route('**/order-refunds/**', (route) => {
      asked.push([new URL(route.request().url()).pathname, route.request().postDataJSON()]);
      return route.fulfill({ json: { outcome: 'done', refund: null } });
    });
    await page.getByText('The provider refused a refund. Try it again, or pay it by hand').waitFor();
    const failed = page.getByRole('row').filter({ hasText: 'the card was closed' });
    for (const [verb, says] of [
      ['Try again', 'The keeper tries it again'],
      ['Pay by hand', 'The refund is yours. Pay it now.'],
    ] as const) {
      await failed.getByRole('button', { name: verb }).click();
      const question = page.getByRole('dialog');
      const act = question.getByRole('button', { name: verb });
      expect(await act.isDisabled(), 'without a reason').to.equal(true);
      await question.getByLabel('Reason').fill('the buyer called');
      await act.click();
      await question.getByText(says).waitFor();
      await question.getByRole('button', { name: 'Close' }).last().click();
    }
    const body = { reason: 'the buyer called' };
    expect(asked).to.deep.equal([
      ['/admin/v1/order-refunds/14/retry', body],
      ['/admin/v1/order-refunds/14/done', body],
    ]);
    await goTo(page, 'refunds');
    await page.getByText('tried again as 24').waitFor();
    const read = page.waitForRequest((request) => request.url().includes('/refunds?sale=41'));
    await page.getByLabel('Number of the sale').fill('41');
    await page.getByRole('button', { name: 'Filter' }).click();
    await read;
    expect(opened.faults).to.deep.equal([]);
  });

  it('let an operator cancel an order, but neither refund nor void', async () => {
    api.role = 'operator';
    const page = await openLoaded('data', 'order');
    await page.getByText('a scratch on the left shoe').waitFor();
    for (const name of ['Refund', 'Try again', 'Pay by hand']) {
      expect(await page.getByRole('button', { name, exact: true }).count(), name).to.equal(0);
    }
    await page.route(/\/orders\/\d+$/, async (route) => {
      const order = (await (await route.fetch()).json()) as object;
      return route.fulfill({ json: { ...order, state: 'pending_payment', paidAt: null } });
    });
    await page.reload();
    await page.getByRole('button', { name: 'Cancel the order' }).waitFor();
    await page.route(/v1\/sales\/41$/, async (route) => {
      const sale = (await (await route.fetch()).json()) as object;
      return route.fulfill({ json: { ...sale, state: 'paused' } });
    });
    await page.goto(`${api.url}/console/${SCREENS.sale[0]}?void=all`);
    await page.getByRole('button', { name: 'Resume' }).waitFor();
    expect(await page.getByRole('button', { name: 'Void its orders' }).count()).to.equal(0);
    expect(await page.getByRole('dialog').count()).to.equal(0);
  });

  it('void a sale after a count, and resume with the remaining orders after a fault or reload', async () => {
    const page = await open('data', 'live');
    const asked: Record<string, unknown>[] = [];
    const left = { cancelled: 3, refunding: 2, refundCents: 3998 };
    const nothing = { cancelled: 0, refunding: 0, refundCents: 0 };
    await page.route(/v1\/sales\/41$/, async (route) => {
      const sale = (await (await route.fetch()).json()) as object;
      return route.fulfill({ json: { ...sale, state: 'paused' } });
    });
    await page.route(/\/sales\/41\/void$/, (route) => {
      const body = route.request().postDataJSON() as { dryRun?: boolean; refundAll: boolean; after?: string };
      const answer = (step: typeof left, next: string | null) =>
        route.fulfill({ json: { outcome: 'done', ...step, next } });
      if (body.dryRun === true) return answer(body.refundAll ? left : { ...nothing, cancelled: left.cancelled }, null);
      asked.push(body);
      if (body.after === undefined) {
        const { cancelled } = left;
        left.cancelled = 0;
        return answer({ ...nothing, cancelled }, 'paid.0-0');
      }
      if (asked.filter(({ after }) => after !== undefined).length < 3) return route.abort();
      const step = { ...left };
      Object.assign(left, nothing);
      return answer(step, null);
    });
    await goTo(page, 'sale');
    await page.getByRole('button', { name: 'Void its orders' }).click();
    const question = page.getByRole('dialog');
    await question.getByText('Unpaid, to cancel').waitFor();
    expect(await question.getByText('Paid, to refund').count()).to.equal(0);
    await question.getByRole('button', { name: 'Unpaid and paid' }).click();
    await question.getByText('€39.98').waitFor();
    const act = question.getByRole('button', { name: 'Void', exact: true });
    await question.getByLabel('Reason').fill('wrong price');
    await question.getByLabel('Type 41 to confirm').fill('14');
    expect(await act.isDisabled()).to.equal(true);
    await question.getByLabel('Type 41 to confirm').fill('41');
    expect(await accessibilityFaults(page)).to.deep.equal([]);
    expect(asked, 'only counted so far').to.deep.equal([]);
    await act.evaluate((button: { click(): void }) => (button.click(), button.click()));
    await question.getByText('No answer came').waitFor();
    await question.getByText('3 of 5 orders').waitFor();

    await page.reload(); // the next count finds the remaining orders
    await question.getByText('€39.98').waitFor();
    await question.getByLabel('Reason').fill('wrong price');
    await question.getByLabel('Type 41 to confirm').fill('41');
    await act.click();
    await question.getByText('0 of 2 orders').waitFor();
    await question.getByRole('button', { name: 'Continue' }).click();
    await question.getByText('Every order was handled.').waitFor();
    expect(await question.getByText('arrived. Count again').count()).to.equal(0);
    const wish = { unpaid: true, refundAll: true, reason: 'wrong price' };
    const paid = { ...wish, after: 'paid.0-0' };
    expect(asked).to.deep.equal([wish, paid, wish, paid, paid]);
    expect(opened.faults).to.deep.equal([]);
  });

  it('name changed rules with the words of the form', async () => {
    const page = await openLoaded('data', 'rules');
    const name = 'Cancelled orders per buyer and sale';
    await page.route('**/rules/check', (route) => {
      const errors = [{ field: 'orders.cancelsMax', message: 'orders.cancelsMax must be at most 1000.' }];
      return route.fulfill({ json: { valid: false, errors } });
    });
    const layer = page.locator('.layer').filter({ hasText: 'Unpaid orders' });
    if (!(await layer.getByLabel(name).isVisible())) await layer.locator('summary').click();
    await layer.getByLabel(name).fill('7');
    await page.locator('.diff').getByText(`Unpaid orders › ${name}`).waitFor();
    await page.locator('.note.bad').getByText('must be at most 1000.').waitFor();
    expect(await page.getByText('orders.cancelsMax').count()).to.equal(0);
  });

  it('export the orders of a sale that were paid within a time span', async () => {
    const page = await openLoaded('data', 'sale');
    const asked: URLSearchParams[] = [];
    await page.route('**/orders/export?*', (route) => {
      asked.push(new URL(route.request().url()).searchParams);
      return route.fulfill({ body: 'orderId\n' });
    });
    await page.getByRole('button', { name: 'Orders as CSV' }).click();
    const question = page.getByRole('dialog');
    const save = question.getByRole('button', { name: 'Orders as CSV' });
    await save.click();
    await question.getByLabel('Paid before').fill('yesterday');
    await question.getByText('This is not a time.').waitFor();
    expect(await save.count()).to.equal(0);
    await question.getByLabel('Paid before').fill('2030-01-02T00:00Z');
    await save.click();
    await question.getByLabel('Paid from').fill('2030-01-01T00:00Z');
    await save.click();
    await until('three exports were asked for', () => asked.length === 3);
    const { opensAt } =
      (await page.evaluate(`fetch('/admin/v1/sales/41', { headers: { authorization: 'Bearer ${TOKEN}' } })
      .then((answer) => answer.json())`)) as { opensAt: string };
    const [all, before, between] = asked.map((query) => [query.get('paidFrom'), query.get('paidTo')]);
    expect(all).to.deep.equal([null, null]);
    expect(before).to.deep.equal([opensAt, '2030-01-02T00:00:00.000Z']);
    expect(between).to.deep.equal(['2030-01-01T00:00:00.000Z', '2030-01-02T00:00:00.000Z']);
    expect(asked.every((query) => query.get('sale') === '41')).to.equal(true);
    expect(await accessibilityFaults(page)).to.deep.equal([]);
  });

  it('ask for a new token in a dialog over the screen when a token is refused', async () => {
    const page = await openLoaded('data', 'rules-json');
    const draft = page.getByLabel('As JSON').last();
    const text = (await draft.inputValue()).replace('"processes": 0', '"processes": 3');
    await draft.fill(text);
    api.refused.add(TOKEN);
    const question = page.getByRole('dialog', { name: 'Your token is no longer accepted' });
    await question.waitFor({ timeout: 20_000 });
    expect(await page.evaluate('sessionStorage.length')).to.equal(0);
    for (let press = 0; press < 3; press++) await page.keyboard.press('Escape');
    await page.waitForTimeout(100);
    expect(await question.isVisible(), 'it cannot be left').to.equal(true);
    await page.getByLabel('Token', { exact: true }).fill('another.good.token');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.locator('dialog').waitFor({ state: 'detached' });
    expect(await draft.inputValue()).to.equal(text);
    await page.getByText('These rules can be published.').waitFor();
  });

  it('keep a draft of rules while other screens are shown, unless its JSON is invalid', async () => {
    const page = await openLoaded('data', 'rules-json');
    const draft = page.getByLabel('As JSON').last();
    const text = (await draft.inputValue()).replace('"processes": 0', '"processes": 3');
    await draft.fill(text);
    await draft.fill(`${text}!`);
    await page.getByText('This is not JSON').waitFor();
    const publish = page.getByRole('button', { name: 'Publish' });
    expect(await publish.isDisabled()).to.equal(true);
    await page.getByRole('link', { name: 'Rules', exact: true }).click();
    await page.getByText('1 change', { exact: true }).first().waitFor();
    await page.getByText('These rules can be published.').waitFor();
    expect(await publish.isDisabled()).to.equal(false);
    await page.getByRole('link', { name: 'Live', exact: true }).click();
    await isShown(page, 'live');
    await goTo(page, 'rules-json');
    await page.getByText('1 change', { exact: true }).first().waitFor();
    expect(await draft.inputValue()).to.equal(text);
    await page.locator('.account-button').click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Token', { exact: true }).fill(TOKEN);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('As in force').waitFor();
  });

  it('search once, refresh the found purchases by key, and never repeat an empty search', async () => {
    const page = await open('data', 'live');
    const asked: string[] = [];
    const path = '/admin/v1/requests/';
    page.on('request', (request) => {
      const { pathname, search } = new URL(request.url());
      if (pathname.startsWith(path)) asked.push(pathname.slice(path.length) + search);
    });
    const body = JSON.stringify({
      status: 404,
      code: 'purchase_not_found',
      detail: 'Nobody knows it.',
      retryable: false,
    });
    await page.route(`**${path}nothing`, (route) =>
      route.fulfill({ status: 404, contentType: 'application/problem+json', body }),
    );
    await goTo(page, 'several-purchases');
    await page.locator('tbody tr').first().click();
    await until('the shown dead letter is read again', () => asked.length >= 4);
    const [search, ...byKey] = asked;
    expect(search).to.equal('any');
    expect(new Set(byKey).size).to.equal(1);
    expect(byKey[0]).to.match(/^[\w-]+\?saleId=\d+&userId=\S+$/);
    asked.length = 0;
    await page.goto(`${api.url}/console/purchases/nothing`);
    await page.getByText('Nobody knows it.').waitFor();
    await page.waitForTimeout(4_000); // longer than the pause between two reads
    expect(asked).to.deep.equal(['nothing']);
  });

  it('work by keyboard alone', async () => {
    const page = await openLoaded('data', 'live');
    const focused = (what: string): Promise<unknown> => page.evaluate(`document.activeElement.${what}`);
    await page.keyboard.press('Tab');
    expect(await focused('textContent')).to.equal('Skip to content');
    await page.keyboard.press('Enter');
    expect(await focused('id')).to.equal('content');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    for (let press = 0; press < 6; press++) {
      await page.keyboard.press('Tab');
      const where = await page.evaluate(
        "document.activeElement === document.body || document.activeElement.closest('dialog') !== null",
      );
      expect(where, 'the focus stays in the dialog').to.equal(true);
    }
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('g');
    await page.keyboard.press('d');
    await page.locator('h1:focus').getByText('Dead letters').waitFor();
    await page.locator('tbody tr').first().focus();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Dead letter 18' }).waitFor();
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    await page.locator('tr[data-row="1"]:focus').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('41');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/console/sales/41');
    await page.locator('h1:focus').waitFor();
  });

  it('use Chinese for Chinese browsers, and change the language on request', async () => {
    opened = await openConsole(started.browser, { origin: api.url, token: TOKEN, locale: 'zh-CN' });
    const { page } = opened;
    await page.goto(`${api.url}/console/${SCREENS.health[0]}`);
    await page.getByRole('heading', { name: '健康' }).waitFor();
    await hasLoaded(page);
    expect(await page.locator('html').getAttribute('lang')).to.equal('zh-CN');
    expect(await accessibilityFaults(page, OF_LANGUAGE)).to.deep.equal([]);
    await page.locator('.account-button').click();
    await page.getByRole('button', { name: 'English' }).click();
    await isShown(page, 'health');
    await page.reload();
    await isShown(page, 'health');
  });

  it('work even if the browser forbids storage', async () => {
    opened = await openConsole(started.browser, { origin: api.url });
    const { page } = opened;
    await page.addInitScript(
      "for (const name of ['localStorage', 'sessionStorage']) Object.defineProperty(window, name, { get() { throw new DOMException('no', 'SecurityError'); } });",
    );
    await page.goto(`${api.url}/console`);
    await page.getByLabel('Token', { exact: true }).fill(TOKEN);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await isShown(page, 'live');
    await page.keyboard.press('t');
    await page.locator('html[data-theme="light"]').waitFor();
    expect(opened.faults).to.deep.equal([]);
  });
});

/** Narrower columns show nothing, px. */
const COLUMN_MIN_PX = 24;

/** Returns the parts that do not fit into the window: the page itself, or squeezed columns. */
async function tooWide(page: Page): Promise<string[]> {
  const isWider = await page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth');
  const squeezed = (await page.evaluate(
    `[...document.querySelectorAll('tbody td')]
      .filter((cell) => cell.checkVisibility() && cell.clientWidth < ${COLUMN_MIN_PX})
      .map((cell) => cell.closest('table').rows[0].cells[cell.cellIndex].textContent)`,
  )) as string[];
  const cut = (await page.evaluate(`[...document.querySelectorAll('.badge')].filter((badge) => {
    if (!badge.checkVisibility()) return false;
    const text = document.createRange();
    text.selectNodeContents(badge);
    const { left, right } = text.getBoundingClientRect();
    const boxes = [badge, badge.closest('td')].filter((box) => box !== null).map((box) => box.getBoundingClientRect());
    return boxes.some((box) => left < box.left || right > box.right);
  }).map((badge) => badge.textContent)`)) as string[];
  const ids = (await page.evaluate(`[...document.querySelectorAll('tbody td code')].filter((code) => {
    if (!code.checkVisibility() || code.closest('.id') !== null || !/^[\\w:.-]*\\d{4}[\\w:.-]*$/.test(code.textContent)) return false;
    const text = document.createRange();
    text.selectNodeContents(code);
    const { right } = text.getBoundingClientRect();
    return [code, code.closest('td')].some((box) => right > box.getBoundingClientRect().right + 1);
  }).map((code) => code.textContent)`)) as string[];
  const heads = (await page.evaluate(`[...document.querySelectorAll('thead th, thead .sort')]
    .filter((head) => head.checkVisibility() && head.scrollWidth > head.clientWidth + 1)
    .map((head) => head.textContent)`)) as string[];
  return [
    ...[...new Set(cut)].map((text) => `badge ${text} is cut`),
    ...ids.map((id) => `id ${id} is cut and has no button to copy it`),
    ...[...new Set(heads)].map((text) => `heading ${text} is cut`),
    ...(isWider ? ['wider than its window'] : []),
    ...[...new Set(squeezed)].map((column) => `column ${column} is squeezed`),
  ];
}
