import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { isSaleId } from '../core/ids.js';
import { PACKAGE_ROOT } from '../core/package-root.js';
import { NOSNIFF } from './problem.js';
import type { Listener } from './route.js';

const compress = promisify(gzip);

/** The output folder of the build. */
const FOLDER = fileURLToPath(new URL('dist/web/', PACKAGE_ROOT));

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.woff2': 'font/woff2',
  '.png': 'image/png',
};

/** Such a file gets a new name whenever its content changes. */
const IMMUTABLE = 'public, max-age=31536000, immutable';
/**
 * Browsers and shared caches may keep a page, and show it while they fetch a newer version. They keep it only for
 * minutes, because it names files of its own release, which the apis of the next release do not have.
 */
const SHELL = 'public, max-age=60, stale-while-revalidate=300';

/** The shop data that the buyer page shows. */
export interface Shop {
  /** If empty, the page shows its host. */
  readonly name: string;
  /** A picture of the product. If empty, the page shows none. */
  readonly pictureUrl: string;
  /** Where buyers sign in. Empty if unknown. */
  readonly signInUrl: string;
  /** The origins that may show our pages in a frame. */
  readonly origins: readonly string[];
}
const NO_SHOP: Shop = { name: '', pictureUrl: '', signInUrl: '', origins: [] };

/**
 * Names and values in turn, as `writeHead` takes them. The policy allows no code or request from other origins. The
 * only exception is the picture of the shop.
 */
// oxfmt-ignore
const securityOf = ({ origins, pictureUrl }: Shop): string[] => [
  ...NOSNIFF,
  'Referrer-Policy', 'no-referrer',
  'Cross-Origin-Opener-Policy', 'same-origin',
  'Content-Security-Policy',
  "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src 'self'; " +
    `img-src 'self' data:${pictureUrl === '' ? '' : ` ${new URL(pictureUrl).origin}`}; ` +
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; " +
    `frame-ancestors ${origins.length > 0 ? origins.join(' ') : "'none'"}`,
];

/** Fills the empty element that the shell has for each value. The script of the page reads them. */
function withShop(html: string, { name, pictureUrl, signInUrl }: Shop): string {
  const filled = Object.entries({ shop: name, picture: pictureUrl, 'sign-in': signInUrl });
  return filled.reduce((page, [meta, value]) => {
    const escaped = value.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
    return page.replace(`<meta name="${meta}" content=""`, () => `<meta name="${meta}" content="${escaped}"`);
  }, html);
}

interface PageFile {
  /** A hash of the content, so that all apis of a release send the same tag. */
  readonly etag: string;
  readonly headers: readonly string[];
  readonly plain: Buffer;
  /** Null if compression gains nothing. */
  readonly gzipped: Buffer | null;
}

/** The files that a listener serves: the buyer page, or the operators' console. */
export class Pages {
  readonly #files: ReadonlyMap<string, PageFile>;
  readonly #fileOf: (path: string) => string | null;

  constructor(files: ReadonlyMap<string, PageFile>, fileOf: (path: string) => string | null) {
    this.#files = files;
    this.#fileOf = fileOf;
  }

  /** Reads the files into memory, about 200 kB. If nothing was built, there are no files to serve. */
  static async load(listener: Listener, shop = NO_SHOP, folder = FOLDER): Promise<Pages> {
    if (listener === 'buyers') return new Pages(await readFiles(join(folder, 'buyer'), shop), buyerFile);
    return new Pages(await readFiles(join(folder, 'console'), NO_SHOP), consoleFile);
  }

  /** Serves no pages. */
  static none(): Pages {
    return new Pages(new Map(), () => null);
  }

  /** Whether the build has created pages. */
  get areBuilt(): boolean {
    return this.#files.size > 0;
  }

  /** Returns the requested file. Undefined if there is no such file. */
  find({ method, url = '' }: IncomingMessage): PageFile | undefined {
    if (method !== 'GET' && method !== 'HEAD') return undefined;
    const end = url.indexOf('?');
    const name = this.#fileOf(end < 0 ? url : url.slice(0, end));
    return name === null ? undefined : this.#files.get(name);
  }

  /** @returns the status of the answer */
  send(file: PageFile, req: IncomingMessage, res: ServerResponse): number {
    if (String(req.headers['if-none-match']).includes(file.etag)) {
      res.writeHead(304, file.headers as string[]).end();
      return 304;
    }
    const zips = file.gzipped !== null && /\bgzip\b/.test(req.headers['accept-encoding']?.toString() ?? '');
    const body = zips ? (file.gzipped as Buffer) : file.plain;
    const length = ['Content-Length', String(body.length)];
    res.writeHead(200, [...file.headers, ...length, ...(zips ? ['Content-Encoding', 'gzip'] : [])]);
    res.end(req.method === 'HEAD' ? undefined : body);
    return 200;
  }
}

/** `/s/{saleId}` is the same page for every sale. */
function buyerFile(path: string): string | null {
  if (!path.startsWith('/s/')) return null;
  const rest = path.slice('/s/'.length);
  if (rest.startsWith('assets/')) return rest;
  return isSaleId(rest) ? 'index.html' : null;
}

/** Every address of a screen of the console returns the same page. */
function consoleFile(path: string): string | null {
  if (path !== '/console' && !path.startsWith('/console/')) return null;
  const rest = path.slice('/console/'.length);
  return rest.startsWith('assets/') ? rest : 'index.html';
}

async function readFiles(folder: string, shop: Shop): Promise<Map<string, PageFile>> {
  const names = await readdir(folder, { recursive: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const files = names.filter((name) => extname(name) in TYPES);
  return new Map(await Promise.all(files.map(async (name) => [name, await readPage(folder, name, shop)] as const)));
}

async function readPage(folder: string, name: string, shop: Shop): Promise<PageFile> {
  const read = await readFile(join(folder, name));
  const plain = extname(name) === '.html' ? Buffer.from(withShop(read.toString(), shop)) : read;
  const zipped = await compress(plain, { level: 9 });
  const etag = `W/"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
  return {
    etag,
    // oxfmt-ignore
    headers: [
      'Content-Type', TYPES[extname(name)] as string,
      'ETag', etag,
      'Cache-Control', name.startsWith('assets/') ? IMMUTABLE : SHELL,
      'Vary', 'Accept-Encoding',
      ...securityOf(shop),
    ],
    plain,
    gzipped: zipped.length < plain.length ? zipped : null,
  };
}
