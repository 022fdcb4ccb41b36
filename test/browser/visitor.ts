import { expect } from 'chai';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BrowserContextOptions, Page, Request, Route } from 'playwright-core';
import { createTokenSigner } from '../../src/http/token.js';
import { ask } from '../chaos/harness/http.js';
import { until } from '../chaos/harness/wait.js';
import type { StartedBrowser } from '../helpers/chromium.js';

/** Chromium's own message about a 4xx, a 5xx or a missing answer. The page reports these in its own way. */
const OF_THE_NETWORK = /^Failed to load resource: /;
const WAIT_MS = 20_000;
/** Time for an answer. */
const LOOK_MS = 400;
const TOKEN_LIFE_MS = 43_200_000;

export interface VisitorParts {
  /** Address of the page. */
  readonly url: string;
  readonly saleId: string;
  /** Null if no user is signed in. */
  readonly userId?: string | null;
  /** Language that the link names. */
  readonly lang?: string;
  readonly context?: BrowserContextOptions;
  /** Script that runs in the page before its own script. */
  readonly before?: string;
  /** Intercepts requests between the page and the server. */
  readonly route?: (page: Page) => Promise<unknown>;
  /** SKU that the page reads, so that its picture is always the same. Defaults to the SKU of the sale. */
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

/** Drives a visitor on a sale page, and records all requests and complaints of the browser. */
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

  /** Returns the button, which is the same element from the countdown to the order. */
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

  /**
   * Waits like `sees`, but makes the page read the sale now instead of some seconds later, as if its tab were shown
   * again.
   */
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

  /** Makes the page read the sale now. */
  async lookAgain(): Promise<void> {
    await this.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
  }

  /** Clicks like a mouse pressed repeatedly in one place: each click counts the clicks before it. */
  async hammers(clicks: number, everyMs: number, from = 1): Promise<void> {
    for (let nth = from; nth < from + clicks; nth++) {
      await this.page.mouse.down({ clickCount: nth });
      await this.page.mouse.up({ clickCount: nth });
      await sleep(everyMs);
    }
  }

  async canBuy(): Promise<boolean> {
    return (await this.button.getAttribute('aria-disabled')) === 'false';
  }

  /** Presses the button even if it is off. A click by the driver would wait until it is on. */
  async press(): Promise<void> {
    await this.button.evaluate((button) => (button as never as { click(): void }).click());
  }

  /** Returns requests by method and the end of their path. */
  sent(method: string, path: RegExp): Request[] {
    return this.requests.filter((request) => request.method() === method && path.test(new URL(request.url()).pathname));
  }

  /** Returns the keys of the sent purchases. Retries with the same key count once. */
  async keys(): Promise<string[]> {
    const sent = await Promise.all(this.sent('POST', /\/purchases$/).map((request) => request.allHeaders()));
    return [...new Set(sent.map((headers) => headers['idempotency-key'] ?? ''))];
  }

  /**
   * Checks what must hold for every visit: no errors, no requests to other servers, and the token only in headers and
   * in the tab's storage.
   */
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
