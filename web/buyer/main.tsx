import { render } from 'preact';
import { readFragment, readToken, type SignIn } from '../shared/sign-in.js';
import { openTabStorage } from '../shared/tab-storage.js';
import { exactSleep } from './exact-sleep.js';
import { formatOf, type Format } from './format.js';
import { joinFrame } from './frame.js';
import { Page } from './page.js';
import { sentenceFor, shownOf, type Shown } from './says.js';
import { screenOf, untilNextSecondMs, type Screen } from './screen.js';
import './style.css';
import { View, type Choices } from './view.js';
import { languageOf } from './words/languages.js';
import type { Words } from './words/words.js';

/** Screens between the end of the countdown and the answer to the click. */
const KEEPS_CLOCK: readonly Screen['name'][] = ['opening', 'ready', 'asking'];
const SLOW_MS = 10_000;
const CLOCK_WATCH_MS = 5000;
/** Shortest interval between reloads of the page when the words cannot be loaded. */
const LOAD_AGAIN_MS = 2000;
const LANGUAGE = 'seckill:lang';

const meta = (name: string): string => document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? '';
const saleId = location.pathname.split('/').at(-1) ?? '';
const storage = openTabStorage(() => sessionStorage);
const handedOver = takeFragment();
if (handedOver.lang !== null) storage.write(LANGUAGE, handedOver.lang);

const page = new Page(saleId, {
  fetch: (...request) => fetch(...request),
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  sleep: exactSleep(),
  random: Math.random,
  newKey: () =>
    Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join(''),
  storage,
});
const root = document.querySelector('#page') as Element;
const said = document.querySelector('#said') as Element;

let words = await firstWords();
let choices: Choices = { isCancelling: false };
let shown: Shown | null = null;
let heldSinceMs = 0;
let hasCountedDown = false;
let isPictureLost = false;
let timer: ReturnType<typeof setTimeout> | undefined;

/**
 * Takes the sign-in from the shop's link, which carries the token where no server sees it. Removes the token from the
 * address and the history.
 */
function takeFragment(): { readonly signIn: SignIn | null; readonly lang: string | null } {
  const { token, lang } = readFragment(location.hash);
  if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search);
  return { signIn: token === null ? null : readToken(token), lang };
}

/** Loads the words. Once a load has failed, the browser requests the file again only after a reload of the page. */
async function firstWords(): Promise<Words> {
  try {
    return await languageOf(storage.read(LANGUAGE) ?? navigator.language).load();
  } catch (error) {
    setTimeout(() => location.reload(), LOAD_AGAIN_MS * (1 + 2 * Math.random()));
    throw error;
  }
}

/** Fills the sale into an address template of the shop. Null if the shop has set no template. */
function filledIn(template: string): string | null {
  if (template === '') return null;
  const sku = encodeURIComponent(page.state.sale?.sku ?? '');
  return template.replaceAll('{saleId}', saleId).replaceAll('{sku}', sku);
}

async function setLanguage(lang: string): Promise<void> {
  const other = await languageOf(lang)
    .load()
    .catch(() => null);
  if (other === null) return; // the page keeps its current language
  words = other;
  storage.write(LANGUAGE, lang);
  draw();
}

function choose(chosen: Partial<Choices>): void {
  choices = { ...choices, ...chosen };
  draw();
  document.querySelector<HTMLElement>(choices.isCancelling ? '#cancel-no' : '#cancel')?.focus();
  document.querySelector('.sure')?.scrollIntoView({ block: 'nearest' });
}

function draw(): void {
  const { state } = page;
  const nowMs = page.nowMs();
  const before = shown;
  const screen = screenOf(state, nowMs);
  const isNew = before?.screen.name !== screen.name;
  if (state.move !== null || isNew) choices = { isCancelling: false };
  if (isNew) {
    if (screen.name === 'held') heldSinceMs = performance.now();
    if (screen.name === 'countdown') hasCountedDown = true;
    else if (!KEEPS_CLOCK.includes(screen.name)) hasCountedDown = false;
  }
  const { language } = navigator; // the browser's language also says how the country writes times
  const isOurs = language.slice(0, 2) === words.lang.slice(0, 2);
  const format = formatFor(isOurs ? language : words.lang, state.order?.currency ?? state.sale?.currency ?? 'EUR');
  const isSlow = screen.name === 'held' && performance.now() - heldSinceMs > SLOW_MS;
  shown = shownOf(screen, state, isSlow, words, format);
  document.documentElement.lang = words.lang;
  document.title = state.sale === null ? words.screens.loading.title : state.sale.title;
  const focused = document.activeElement;
  render(
    <View
      {...{ page, state, shown, nowMs, words, format, choices, choose, hasCountedDown }}
      setLanguage={(lang) => void setLanguage(lang)}
      shop={meta('shop') || location.host}
      pictureUrl={isPictureLost ? null : filledIn(meta('picture'))}
      signInUrl={filledIn(meta('sign-in'))}
    />,
    root,
  );
  // The focused element is gone. Moves the focus to its successor, so that the successor is read out and keyboard users
  // continue there.
  if (focused !== null && focused !== document.body && !focused.isConnected) {
    const answered = focused.id.startsWith('cancel-') ? document.querySelector<HTMLElement>('#cancel') : null;
    (answered ?? document.querySelector<HTMLElement>('#headline'))?.focus();
  }
  const sentence = sentenceFor(before, shown, words, format);
  if (sentence !== null && sentence !== said.textContent) said.textContent = sentence;
  frame.tell(state);
  clearTimeout(timer);
  timer = setTimeout(
    () => {
      page.tick();
      draw();
    },
    'leftMs' in screen ? untilNextSecondMs(screen.leftMs) : 1000,
  );
}

const formats = new Map<string, Format>();
function formatFor(lang: string, currency: string): Format {
  const key = `${lang} ${currency}`;
  const made = formats.get(key) ?? formatOf(lang, currency);
  formats.set(key, made);
  return made;
}

const takeToken = (token: string): void => {
  const signIn = readToken(token);
  if (signIn !== null) page.signIn(signIn);
};
const frame = joinFrame(window, takeToken, { monotonicMs: () => performance.now(), random: Math.random });
page.onChange(draw);
page.start(handedOver.signIn);
if (document.visibilityState === 'hidden') page.setVisible(false);
draw();

const pictureLost = ({ target }: Event): void => {
  if (!(target instanceof HTMLImageElement)) return;
  isPictureLost = true;
  draw();
};
addEventListener('error', pictureLost, true); // error events of elements do not bubble
addEventListener('online', () => page.setOnline(true));
addEventListener('offline', () => page.setOnline(false));
if (!navigator.onLine) page.setOnline(false);
document.addEventListener('visibilitychange', () => {
  page.setVisible(document.visibilityState === 'visible');
  draw();
});
addEventListener('hashchange', () => {
  const { signIn, lang } = takeFragment();
  if (signIn !== null) page.handOver(signIn);
  if (lang !== null) void setLanguage(lang);
});
setInterval(() => page.watchClocks(), CLOCK_WATCH_MS);
