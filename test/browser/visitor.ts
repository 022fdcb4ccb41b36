import { expect } from 'chai';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BrowserContextOptions, Page, Request, Route } from 'playwright-core';
import { createTokenSigner } from '../../src/http/token.js';
import { ask } from '../chaos/harness/http.js';
import { until } from '../chaos/harness/wait.js';
import type { StartedBrowser } from '../helpers/chromium.js';

/** What Chromium itself writes about an answer of 4xx or 5xx, or none: the page speaks of it in its own way. */
const OF_THE_NETWORK = /^Failed to load resource: /;
const WAIT_MS = 20_000;
/** An answer, and some more. */
const LOOK_MS = 400;
const TOKEN_LIFE_MS = 43_200_000;

export interface VisitorParts {
  /** Where the page is served. */
  readonly url: string;
  readonly saleId: string;
  /** Null: nobody is signed in. */
  readonly userId?: string | null;
  /** The link names this language. */
  readonly lang?: string;
  readonly context?: BrowserContextOptions;
  /** Runs in the page before its script. */
  readonly before?: string;
  /** Stands between the page and the server. */
  readonly route?: (page: Page) => Promise<unknown>;
  /** The page reads this one, so that its picture is always the same; left out: that of the sale. */
  readonly sku?: string;
}

/** Publishes rules of admission. @returns their version */
export async function publishRules(secret: string, operatorsUrl: string, rules: object): Promise<unknown> {
  const token = createTokenSigner(secret)({ userId: 'root', roles: ['admin'], ttlMs: 600_000 });
  const url = `${operatorsUrl}/admin/v1/rules`;
  const { version } = (await ask(url, { token })).json;
  const { status, text, json } = await ask(url, { method: 'PUT', token, body: { version, rules } });
  expect(status, text).to.equal(200);
  return json.version;
}

export async function untilInForce(operatorsUrl: string, version: unknown): Promise<void> {
  const inForce = async (): Promise<number> =>
    Number(/^seckill_admission_rules_version\S* (\d+)$/m.exec((await ask(`${operatorsUrl}/metrics`)).text)?.[1]);
  await until('the rules are in force', async () => (await inForce()) === version);
}

async function withSku(asked: Route, sku: string): Promise<void> {
  const response = await asked.fetch().catch(() => null);
  if (response === null) return asked.abort().catch(() => undefined); // offline, or the visitor has left
  const body = (await response.text()).replace(/"sku":"[^"]*"/, `"sku":"${sku}"`);
  await asked.fulfill({ response, body }).catch(() => undefined);
}

/** Somebody at the page of a sale, with an eye on all that their browser sends and complains about. */
export class Visitor {
  readonly page: Page;
  readonly requests: Request[] = [];
  readonly #faults: string[] = [];
  readonly #origin: string;
  readonly #token: string | null;

  private constructor(page: Page, url: string, token: string | null) {
    this.page = page;
    this.#origin = new URL(url).origin;
    this.#token = token;
    page.on('console', (message) => {
      if (message.type() === 'error' && !OF_THE_NETWORK.test(message.text())) this.#faults.push(message.text());
    });
    page.on('pageerror', (error) => void this.#faults.push(String(error.stack)));
    page.on('request', (request) => void this.requests.push(request));
  }

  /** Opens the page as the link of a shop does. */
  static async open({ browser }: StartedBrowser, secret: string, parts: VisitorParts): Promise<Visitor> {
    const { url, saleId, userId = 'ann', lang, context = {}, before, route, sku } = parts;
    const opened = await browser.newContext({ locale: 'en-GB', timezoneId: 'Europe/Berlin', ...context });
    const page = await opened.newPage();
    if (before !== undefined) await page.addInitScript(before);
    if (sku !== undefined) await page.route(/\/v1\/sales\/\d+$/, (asked) => withSku(asked, sku));
    await route?.(page);
    const token = userId === null ? null : createTokenSigner(secret)({ userId, roles: [], ttlMs: TOKEN_LIFE_MS });
    const visitor = new Visitor(page, url, token);
    const link = new URLSearchParams({ ...(token === null ? {} : { token }), ...(lang === undefined ? {} : { lang }) });
    await page.goto(`${url}/s/${saleId}${link.size === 0 ? '' : `#${link}`}`);
    return visitor;
  }

  get token(): string {
    return this.#token ?? '';
  }

  /** The button: it is the same element from the countdown to the order. */
  get button(): ReturnType<Page['locator']> {
    return this.page.locator('#go');
  }

  /** Waits until the page shows this. */
  async sees(screen: string, timeoutMs = WAIT_MS): Promise<this> {
    const shown = this.page.locator('.page');
    await this.page
      .locator(`.page[data-screen="${screen}"]`)
      .waitFor({ timeout: timeoutMs })
      .catch(async (error: unknown) => {
        const last = await shown.getAttribute('data-screen', { timeout: 1000 }).catch(() => 'nothing');
        throw new Error(`The page shows ${last}, not ${screen}.`, { cause: error });
      });
    return this;
  }

  /** The same, where something has changed that the page would read in some seconds: it reads the sale now, as when its tab is seen again. */
  async seesSoon(screen: string): Promise<this> {
    const wanted = this.page.locator(`.page[data-screen="${screen}"]`);
    await until(`the page shows ${screen}`, async () => {
      await this.lookAgain();
      return wanted.waitFor({ timeout: LOOK_MS }).then(
        () => true,
        () => false,
      );
    });
    return this;
  }

  /** The page reads the sale now. */
  async lookAgain(): Promise<void> {
    await this.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
  }

  /** Clicks as a mouse does that is pressed again and again in one place: each click counts those before it. */
  async hammers(clicks: number, everyMs: number, from = 1): Promise<void> {
    for (let nth = from; nth < from + clicks; nth++) {
      await this.page.mouse.down({ clickCount: nth });
      await this.page.mouse.up({ clickCount: nth });
      await sleep(everyMs);
    }
  }

  /** Whether the button can be pressed. */
  async canBuy(): Promise<boolean> {
    return (await this.button.getAttribute('aria-disabled')) === 'false';
  }

  /** Presses the button, on or off: a click of the driver waits until it is on. */
  async press(): Promise<void> {
    await this.button.evaluate((button) => (button as never as { click(): void }).click());
  }

  /** Requests by method and the end of their path. */
  sent(method: string, path: RegExp): Request[] {
    return this.requests.filter((request) => request.method() === method && path.test(new URL(request.url()).pathname));
  }

  /** The keys of the purchases that were sent, tries with the same key counted once. */
  async keys(): Promise<string[]> {
    const sent = await Promise.all(this.sent('POST', /\/purchases$/).map((request) => request.allHeaders()));
    return [...new Set(sent.map((headers) => headers['idempotency-key'] ?? ''))];
  }

  /** What must be true of every visit: no error, no request to elsewhere, the token in headers and in the storage of the tab only. */
  async leave(): Promise<void> {
    const token = this.#token;
    expect(this.#faults, 'errors in the console').to.deep.equal([]);
    const elsewhere = this.requests
      .map((request) => request.url())
      .filter((url) => new URL(url).origin !== this.#origin);
    expect(elsewhere, 'requests to elsewhere').to.deep.equal([]);
    if (token !== null) {
      const address = this.page.url();
      expect(address, 'the address').not.to.contain('#');
      for (const request of this.requests) {
        const withoutFragment = request.url().split('#')[0] ?? '';
        expect(withoutFragment).not.to.contain(token);
        expect(request.postData() ?? '').not.to.contain(token);
      }
      const kept = await this.page.evaluate('JSON.stringify([{ ...localStorage }, document.cookie, history.length])');
      expect(kept, 'what outlives the tab').to.match(/^\[\{\},"",\d+\]$/);
    }
    await this.page.context().close();
  }
}
