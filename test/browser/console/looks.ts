import type { Browser, BrowserContext, Page } from 'playwright-core';

/** Every screen of the console and each of its parts, by the path behind `/console/`. */
export const SCREENS = {
  live: 'live',
  'sales-plan': 'sales/week',
  'all-sales': 'sales/all',
  sale: 'sales/41',
  purchase: 'purchases/order-18',
  'several-purchases': 'purchases/any',
  'orders-of-user': 'purchases?user=buyer-1000',
  messages: 'messages/lag',
  'half-messages': 'messages/halves',
  'given-up': 'messages/discarded',
  topics: 'messages/topics',
  browse: 'messages/browse?way=newest',
  clients: 'messages/clients',
  'dead-letters': 'dead-letters',
  'dead-letter': 'dead-letters/17',
  refunds: 'refunds',
  reconcile: 'reconcile/runs',
  'reconcile-run': 'reconcile/runs/811',
  repairs: 'reconcile/jobs',
  rules: 'rules/form',
  'rules-json': 'rules/json',
  switches: 'rules/switches',
  versions: 'rules/versions',
  'in-force': 'rules/in-force',
  audit: 'audit',
  health: 'health',
} as const;
export type ScreenName = keyof typeof SCREENS;
export const SCREEN_NAMES = Object.keys(SCREENS) as ScreenName[];

/** How somebody looks at them. */
export const LOOKS = {
  light: { colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  dark: { colorScheme: 'dark', viewport: { width: 1280, height: 800 } },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 844 } },
} as const;
export type Look = keyof typeof LOOKS;

const TOKEN_KEY = 'seckill.console.token';
/** Many pages are opened one after the other, on a machine that does other things too. */
const WAIT_MAX_MS = 60_000;

/** A page of the console in a tab of its own, and what went wrong in it. */
export interface Opened {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What the page threw, or asked for elsewhere. */
  readonly faults: string[];
}

/** @param token left out: nobody is signed in */
export async function openConsole(
  browser: Browser,
  {
    origin,
    look = 'light',
    token,
    locale = 'en-GB',
  }: { readonly origin: string; readonly look?: Look; readonly token?: string; readonly locale?: string },
): Promise<Opened> {
  const context = await browser.newContext({
    ...LOOKS[look],
    locale,
    timezoneId: 'Europe/Berlin',
    reducedMotion: 'reduce',
  });
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT_MAX_MS);
  const faults: string[] = [];
  page.on('pageerror', (error) => void faults.push(error.message));
  page.on(
    'console',
    (message) => void (/Content Security Policy|Uncaught/.test(message.text()) && faults.push(message.text())),
  );
  page.on('request', (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith('blob:')) faults.push(`asked ${request.url()}`);
  });
  if (token !== undefined) {
    await context.addInitScript(
      `sessionStorage.getItem('${TOKEN_KEY}') ?? sessionStorage.setItem('${TOKEN_KEY}', '${token}')`,
    );
  }
  return { page, context, faults };
}

/** The screen is there: it has its heading, and nothing on it waits for its first answer. */
export async function showScreen(page: Page, origin: string, path: string): Promise<void> {
  await page.goto(`${origin}/console/${path}`);
  await page.locator('main h1').waitFor();
  await page.locator('.loading').first().waitFor({ state: 'detached' });
}
