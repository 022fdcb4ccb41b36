import { expect } from 'chai';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { accessibilityFaults } from '../helpers/accessibility.js';
import { until } from '../chaos/harness/wait.js';
import { startChromium, type StartedBrowser } from '../helpers/chromium.js';
import { FakeApi, type FakeMode } from './console/fake-api.js';
import { LOOKS, openConsole, SCREEN_NAMES, SCREENS, showScreen, type Look, type Opened } from './console/looks.js';

const BUILT = join(REPO_DIR, 'dist/web/console');
const PICTURES = join(REPO_DIR, 'docs/console');
/** `UPDATE_PICTURES=1` makes the pictures of docs/console anew. */
const MAKES_PICTURES = process.env.UPDATE_PICTURES === '1';
/** One for each screen; others show the same tables. */
const PICTURED = [
  'live',
  'sales-plan',
  'sale',
  'purchase',
  'messages',
  'half-messages',
  'dead-letters',
  'dead-letter',
  'refunds',
  'reconcile',
  'rules',
  'audit',
  'health',
];
/** Their states are made of the same parts as those of all others. */
const CHECKED_IN_STATES = ['live', 'sale', 'several-purchases', 'dead-letters', 'dead-letter', 'rules', 'health'];
const SIZE_MAX = 120 * 1024;
const TOKEN = 'head.body.signature';
/** Each of the longer ones goes through all screens, on a machine that does other things too. */
const TEST_MAX_MS = 300_000;

describe('the screens of the console in each of their states, on canned answers', function () {
  this.timeout(TEST_MAX_MS);
  let api: FakeApi;
  let started: StartedBrowser;
  let opened: Opened;
  before(async () => {
    [api, started] = await Promise.all([FakeApi.start(), startChromium()]);
  });
  after(() => Promise.all([started?.close(), api?.close()]));
  afterEach(async () => {
    await opened?.context.close();
    Object.assign(api, { mode: 'data', role: 'admin' });
    api.refused.clear();
  });

  const open = async (mode: FakeMode, look: Look = 'light', locale?: string): Promise<Page> => {
    api.mode = mode;
    opened = await openConsole(started.browser, { origin: api.url, look, token: TOKEN, ...(locale && { locale }) });
    return opened.page;
  };
  const fits = (page: Page): Promise<boolean> =>
    page.evaluate('document.documentElement.scrollWidth <= document.documentElement.clientWidth');

  it(`are at most ${SIZE_MAX / 1024} kB in all, zipped`, () => {
    const sizes = readdirSync(BUILT, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.\w+$/.test(name))
      .map((name) => gzipSync(readFileSync(join(BUILT, name)), { level: 9 }).length);
    const all = sizes.reduce((sum, size) => sum + size, 0);
    console.log(`      ${(all / 1024).toFixed(1)} kB`);
    expect(all).to.be.at.most(SIZE_MAX);
  });

  for (const look of Object.keys(LOOKS) as Look[]) {
    it(`with data (${look}): nothing serious for axe, within the width, nothing from elsewhere`, async () => {
      const page = await open('data', look);
      if (MAKES_PICTURES) mkdirSync(PICTURES, { recursive: true });
      const found: string[] = [];
      for (const name of SCREEN_NAMES) {
        await showScreen(page, api.url, SCREENS[name]);
        for (const fault of await accessibilityFaults(page)) found.push(`${name}: ${fault}`);
        if (!(await fits(page))) found.push(`${name}: wider than its window`);
        if (MAKES_PICTURES && PICTURED.includes(name))
          await page.screenshot({ path: join(PICTURES, `${name}-${look}.png`) });
      }
      expect(found).to.deep.equal([]);
      expect(opened.faults).to.deep.equal([]);
    });
  }

  for (const mode of ['empty', 'failing', 'long'] as const) {
    it(`${mode}: each screen says so, and is as good to use`, async () => {
      const page = await open(mode, mode === 'long' ? 'phone' : 'light');
      const found: string[] = [];
      for (const name of SCREEN_NAMES) {
        await page.goto(`${api.url}/console/${SCREENS[name]}`);
        await page.locator('main h1').waitFor();
        await page.locator('main .loading, dialog .loading').first().waitFor({ state: 'detached' });
        if (mode === 'failing') await page.getByText('mysql does not answer').first().waitFor();
        const faults = CHECKED_IN_STATES.includes(name) ? await accessibilityFaults(page) : [];
        for (const fault of faults) found.push(`${name}: ${fault}`);
        if (!(await fits(page))) found.push(`${name}: wider than its window`);
        const rows = await page.locator('tr').count();
        if (rows > 400) found.push(`${name}: draws ${rows} rows`);
      }
      expect(found).to.deep.equal([]);
      expect(opened.faults).to.deep.equal([]);
    });
  }

  it('without an answer, grey bars stand in for what comes', async () => {
    const page = await open('silent');
    for (const name of SCREEN_NAMES) {
      if (name === 'browse') continue; // asks nothing before somebody does
      await page.goto(`${api.url}/console/${SCREENS[name]}`);
      await page.locator('main h1').waitFor();
      await page.locator('.loading').first().waitFor();
    }
    expect(opened.faults).to.deep.equal([]);
  });

  it('ten thousand rows scroll to the last one without all being drawn', async () => {
    const page = await open('long');
    await showScreen(page, api.url, SCREENS['dead-letters']);
    const box = page.locator('.table-box.long');
    await box.evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await page.getByRole('cell', { name: '10016', exact: true }).waitFor();
    expect(await page.locator('tbody tr').count()).to.be.below(100);
    expect(await page.locator('table').first().getAttribute('aria-rowcount')).to.equal('10001');
  });

  it('figures that stop to arrive are marked as stale, with their age, and go on by themselves', async () => {
    const page = await open('data');
    await showScreen(page, api.url, SCREENS.live);
    await page.locator('.sign.ok').waitFor();
    api.mode = 'failing';
    api.dropStreams();
    await page
      .locator('.is-stale .under')
      .getByText(/Stale: \d/)
      .waitFor({ timeout: 20_000 });
    await page
      .locator('.sign.bad')
      .getByText(/No data for \d/)
      .waitFor();
    expect(await page.locator('.figure').count(), 'what was last known stays').to.be.greaterThan(3);
    api.mode = 'data';
    await page.locator('.sign.ok').waitFor({ timeout: 40_000 });
  });

  it('a token that is refused asks for another one over the screen, which stays as it was', async () => {
    const page = await open('data');
    await showScreen(page, api.url, SCREENS['rules-json']);
    const draft = page.getByLabel('As JSON').last();
    const text = (await draft.inputValue()).replace('"processes": 0', '"processes": 3');
    await draft.fill(text);
    api.refused.add(TOKEN);
    await page.getByRole('heading', { name: 'Your token is no longer accepted' }).waitFor({ timeout: 20_000 });
    expect(await page.evaluate('sessionStorage.length')).to.equal(0);
    await page.getByLabel('Token', { exact: true }).fill('another.good.token');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.locator('dialog').waitFor({ state: 'detached' });
    expect(await draft.inputValue()).to.equal(text);
    await page.getByText('These rules can be published.').waitFor();
  });

  it('a search for purchases is made once: what it found is read again by its own key, what it did not find is not', async () => {
    const page = await open('data');
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
    await showScreen(page, api.url, SCREENS['several-purchases']);
    await page.locator('tbody tr').first().click();
    await until('the one that is looked at is read again', () => asked.length >= 4);
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

  it('are reached and used by keyboard alone', async () => {
    const page = await open('data');
    await showScreen(page, api.url, SCREENS.live);
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).to.equal('Skip to content');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.id')).to.equal('content');
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
    await page.getByRole('heading', { name: 'Dead letters', level: 1 }).waitFor();
    await page.locator('tbody tr').first().focus();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Dead letter 18' }).waitFor();
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('/');
    await page.keyboard.type('41');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/console/sales/41');
  });

  it('speak Chinese to who reads it, and change the language on request', async () => {
    const page = await open('data', 'light', 'zh-CN');
    await showScreen(page, api.url, SCREENS.health);
    expect(await page.locator('html').getAttribute('lang')).to.equal('zh-CN');
    await page.getByRole('heading', { name: '健康' }).waitFor();
    expect(await accessibilityFaults(page)).to.deep.equal([]);
    await page.locator('.account-button').click();
    await page.getByRole('button', { name: 'English' }).click();
    await page.getByRole('heading', { name: 'Health', level: 1 }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Health', level: 1 }).waitFor();
  });

  it('the docs have a picture of each', () => {
    const missing = PICTURED.flatMap((name) => Object.keys(LOOKS).map((look) => `${name}-${look}.png`)).filter(
      (file) => !existsSync(join(PICTURES, file)),
    );
    expect(missing, 'made with UPDATE_PICTURES=1').to.deep.equal([]);
  });
});
