import type { Browser, BrowserContext, Page } from 'playwright-core';

/** Every screen of the console and each of its parts: the path after `/console/`, and its heading. */
export const SCREENS = {
  live: ['live', 'Live'],
  'sales-plan': ['sales/week', 'Sales plan'],
  'all-sales': ['sales/all', 'Sales plan'],
  sale: ['sales/41', /^(Trail shoe|Sale 41)/],
  purchase: ['purchases/order-18', 'Purchase'],
  order: ['purchases/order-7', 'Purchase'],
  'several-purchases': ['purchases/any', 'Purchase'],
  'orders-of-user': ['purchases?user=buyer-1000', 'Purchase'],
  messages: ['messages/lag', 'Messages'],
  'half-messages': ['messages/halves', 'Messages'],
  'given-up': ['messages/discarded', 'Messages'],
  topics: ['messages/topics', 'Messages'],
  browse: ['messages/browse?way=newest', 'Messages'],
  clients: ['messages/clients', 'Messages'],
  webhooks: ['messages/webhooks', 'Messages'],
  'dead-letters': ['dead-letters', 'Dead letters'],
  'dead-letter': ['dead-letters/17', 'Dead letters'],
  refunds: ['refunds', 'Refunds'],
  reconcile: ['reconcile/runs', 'Reconcile'],
  'reconcile-run': ['reconcile/runs/811', 'Reconcile'],
  repairs: ['reconcile/jobs', 'Reconcile'],
  rules: ['rules/form', 'Rules and switches'],
  'rules-json': ['rules/json', 'Rules and switches'],
  switches: ['rules/switches', 'Rules and switches'],
  versions: ['rules/versions', 'Rules and switches'],
  'in-force': ['rules/in-force', 'Rules and switches'],
  audit: ['audit', 'Audit'],
  health: ['health', 'Health'],
} as const satisfies Record<string, readonly [string, string | RegExp]>;
export type ScreenName = keyof typeof SCREENS;
export const SCREEN_NAMES = Object.keys(SCREENS) as ScreenName[];

const DESKTOP = { width: 1280, height: 800 };
/** The ways to look at the screens. */
export const LOOKS = {
  light: { colorScheme: 'light', viewport: DESKTOP },
  dark: { colorScheme: 'dark', viewport: DESKTOP },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 844 } },
} as const;
export type Look = keyof typeof LOOKS;

const TOKEN_KEY = 'seckill.console.token';
/** Many pages are opened one after another while the machine does other work. */
const WAIT_MAX_MS = 60_000;

/** A page of the console in its own tab, and the faults found in it. */
export interface Opened {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors that the page threw, and requests to other servers. */
  readonly faults: string[];
}

/** @param token if omitted, no user is signed in */
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

/** Switches the page to another look. */
export async function lookAs(page: Page, look: Look): Promise<void> {
  const { colorScheme, viewport } = LOOKS[look];
  await page.emulateMedia({ colorScheme });
  await page.setViewportSize(viewport);
  // Waits for the colour transition, however short.
  await page.evaluate(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
    .then(() => Promise.allSettled(document.getAnimations().map(({ finished }) => finished))).then(() => null)`);
}

/** Goes to a screen as the console itself does, without reloading. */
export async function goTo(page: Page, name: ScreenName): Promise<void> {
  const [path] = SCREENS[name];
  await page.evaluate(
    `history.pushState(null, '', '/console/${path}'); dispatchEvent(new Event('popstate')); scrollTo(0, 0)`,
  );
  await isShown(page, name);
}

export async function isShown(page: Page, name: ScreenName): Promise<void> {
  const [, hasText] = SCREENS[name];
  await page.locator('main h1').filter({ hasText }).waitFor();
}

/** Waits until no part of the screen waits for its first answer. */
export async function hasLoaded(page: Page): Promise<void> {
  await page.locator('.loading').first().waitFor({ state: 'detached' });
}
