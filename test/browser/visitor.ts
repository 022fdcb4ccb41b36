import { expect } from 'chai';
import type { BrowserContextOptions, Page, Request, Route } from 'playwright-core';
import { createTokenSigner } from '../../src/http/token.js';
import { until } from '../chaos/harness/wait.js';
import { accessibilityFaults } from '../helpers/accessibility.js';
import type { StartedBrowser } from '../helpers/chromium.js';

/** What Chromium itself writes about an answer of 4xx or 5xx, or none: the page speaks of it in its own way. */
const OF_THE_NETWORK = /^Failed to load resource: /;
const WAIT_MS = 20_000;
const TOKEN_LIFE_MS = 43_200_000;

export interface VisitorParts {
  /** Where the page is served. */
  readonly url: string;
  readonly saleId: string;
  /** Null: nobody is signed in. */
  readonly userId?: string | null;
  readonly context?: BrowserContextOptions;
  /** Runs in the page before its script. */
  readonly before?: string;
  /** Stands between the page and the server. */
  readonly route?: (page: Page) => Promise<unknown>;
  /** The page reads this one, so that its picture is always the same; left out: that of the sale. */
  readonly sku?: string;
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
    const { url, saleId, userId = 'ann', context = {}, before, route, sku } = parts;
    const opened = await browser.newContext({ locale: 'en-GB', timezoneId: 'Europe/Berlin', ...context });
    const page = await opened.newPage();
    if (before !== undefined) await page.addInitScript(before);
    if (sku !== undefined) await page.route(/\/v1\/sales\/\d+$/, (asked) => withSku(asked, sku));
    await route?.(page);
    const token = userId === null ? null : createTokenSigner(secret)({ userId, roles: [], ttlMs: TOKEN_LIFE_MS });
    const visitor = new Visitor(page, url, token);
    await page.goto(`${url}/s/${saleId}${token === null ? '' : `#token=${token}`}`);
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
    const shown = (): Promise<string | null> => this.page.locator('.page').getAttribute('data-screen');
    let last: string | null = null;
    await until(`the page shows ${screen}`, async () => (last = await shown()) === screen, timeoutMs).catch((error) => {
      throw new Error(`${String(error)}: it shows ${last}`);
    });
    return this;
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

  /** Nobody who uses a screen reader, a keyboard, or more contrast is kept out as the page stands. */
  async isAccessible(): Promise<this> {
    expect(await accessibilityFaults(this.page), await this.page.title()).to.deep.equal([]);
    return this;
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
