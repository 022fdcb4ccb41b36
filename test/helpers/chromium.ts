import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Browser } from 'playwright-core';
import { inPath, unpackDebian } from './debian-packages.js';

/** The browser, and a font with Chinese characters for the screenshots. */
const PACKAGES = ['chromium-headless-shell', 'fonts-wqy-microhei'];
/** The first font of the pages, so that screenshots look alike on every machine. */
const FONT = { name: 'fonts', packages: ['fonts-inter-variable'], withDependencies: false };
const START_MAX_MS = 30_000;
/** Flags that keep Chromium from contacting its maker. */
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export interface StartedBrowser {
  readonly browser: Browser;
  /** Closes the pages that a suite has left open. */
  close(): Promise<void>;
}

/** Shared by all suites of a process, each with its own contexts. */
let shared: Promise<Browser> | undefined;
// mocha is absent while the test command fetches the browser
if ('after' in globalThis) after(async () => (await shared?.catch(() => undefined))?.close());

/**
 * Starts a real headless Chromium: an installed version (`chromium-headless-shell`, `chromium`), or Debian's, unpacked
 * next to the other servers. It ends with the last suite.
 * @throws Error with the reason if there is no Chromium
 */
export async function startChromium(): Promise<StartedBrowser> {
  shared ??= launch();
  const browser = await shared;
  return {
    browser,
    close: async () => void (await Promise.all(browser.contexts().map((context) => context.close()))),
  };
}

async function launch(): Promise<Browser> {
  const work = mkdtempSync(join(tmpdir(), 'chromium-'));
  const remove = (): void => rmSync(work, { recursive: true, force: true });
  try {
    const { path, folders } = await fetchChromium();
    const env = envFor(folders, work);
    const browser = await chromium.launch({ executablePath: path, args: ARGS, env, timeout: START_MAX_MS });
    browser.once('disconnected', () => {
      shared = undefined; // so that the next suite starts a new browser after a crash
      remove();
    });
    return browser;
  } catch (error) {
    remove();
    throw error;
  }
}

interface FetchedChromium {
  readonly path: string;
  /** Folders of libraries and fonts, unless an installed browser is used. */
  readonly folders: readonly string[];
}

/**
 * Fetches the browser and its fonts once, unless a browser is installed. Must be called before tests that need a
 * browser.
 *
 * @throws Error with a sentence for people if there is no browser
 */
export async function fetchChromium(): Promise<FetchedChromium> {
  const installed = inPath('chromium-headless-shell') ?? inPath('chromium');
  const found = await unpackDebian({ name: 'chromium', packages: PACKAGES, withDependencies: true });
  if ('missing' in found) {
    if (installed !== undefined) return { path: installed, folders: [] };
    throw new Error(`There is no Chromium on this machine. ${found.missing}`);
  }
  const font = await unpackDebian(FONT);
  return {
    path: installed ?? join(found.folder, 'usr/lib/chromium/chromium-headless-shell'),
    folders: [found.folder, ...('folder' in font ? [font.folder] : [])],
  };
}

/** @returns the environment in which the browser finds its libraries and fonts */
function envFor([packages, ...more]: readonly string[], work: string): NodeJS.ProcessEnv {
  if (packages === undefined) return process.env;
  const dirs = [packages, ...more].map((folder) => `<dir>${folder}/usr/share/fonts</dir>`).join('');
  const fonts = join(work, 'fonts.conf');
  writeFileSync(fonts, `<fontconfig><include ignore_missing="yes">/etc/fonts/fonts.conf</include>${dirs}</fontconfig>`);
  const libraries = ['x86_64-linux-gnu', 'aarch64-linux-gnu']
    .map((machine) => join(packages, 'usr/lib', machine))
    .flatMap((folder) => [folder, join(folder, 'pulseaudio')]);
  return { ...process.env, LD_LIBRARY_PATH: libraries.join(':'), FONTCONFIG_FILE: fonts };
}
