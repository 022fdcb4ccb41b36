import type { IncomingMessage, ServerResponse } from 'node:http';
import { problem, type Answer } from './answer.js';
import { NOSNIFF } from './problem.js';
import { API_PREFIX } from './route.js';

/** Request headers that need permission, without signature headers, because a page cannot keep a key secret. */
const REQUEST_HEADERS = [
  'Authorization',
  'Content-Type',
  'Idempotency-Key',
  'Last-Event-ID',
  'Seckill-Cell',
  'Seckill-Lane',
  'Seckill-Purchase-Token',
  'Seckill-Queue-Pass',
  'traceparent',
];
/** Answer headers that a page may read in addition to the default headers. */
const ANSWER_HEADERS = 'Age, Location, Retry-After, Trace-Id';
/** How long a browser may keep a preflight answer, in seconds. Chromium never keeps one for longer. */
const KEPT_SECONDS = '7200';
/** Caches must not give the answer for one origin to another origin. */
const VARY = ['Vary', 'Origin'] as const;

/**
 * Lets pages of other origins call the API of buyers (CORS). Tokens travel in `Authorization`, and the API never reads
 * a cookie, so it never sends `Access-Control-Allow-Credentials`. CORS restricts only browsers.
 */
export class Cors {
  readonly #preflights: ReadonlyMap<string, Answer<204>>;

  /** @param origins in the form in which browsers send them */
  constructor(origins: readonly string[]) {
    this.#preflights = new Map(origins.map((origin) => [origin, preflightOf(origin)]));
  }

  /**
   * Answers a preflight, which asks whether a page may send a request that needs permission. Answers from memory,
   * without looking at what the request is about.
   * @returns null if the request is not a preflight
   */
  preflight({ method, url, headers }: IncomingMessage): Answer | null {
    if (method !== 'OPTIONS' || !isOfApi(url)) return null;
    if (headers.origin === undefined || headers['access-control-request-method'] === undefined) return null;
    return this.#preflights.get(headers.origin) ?? DENIED;
  }

  /**
   * Adds the headers that allow a browser to pass the answer to its page. A request without an origin gets no header,
   * except that a cacheable answer gets `Vary`.
   */
  mark({ method, url, headers: { origin } }: IncomingMessage, res: ServerResponse): void {
    if (origin === undefined && method === 'POST') return;
    if (!isOfApi(url)) return;
    res.setHeader(...VARY);
    if (origin === undefined || !this.#preflights.has(origin)) return;
    res.setHeader('Access-Control-Allow-Origin', origin);
    res.setHeader('Access-Control-Expose-Headers', ANSWER_HEADERS);
  }
}

const isOfApi = (url: string | undefined): boolean => url?.startsWith(API_PREFIX) === true;

const DENIED = problem('denied', { detail: 'Pages of this origin may not call this API.' }, VARY);

const preflightOf = (origin: string): Answer<204> => ({
  status: 204,
  word: 'allowed',
  // oxfmt-ignore
  headers: [
    'Access-Control-Allow-Origin', origin,
    'Access-Control-Allow-Methods', 'GET, POST',
    'Access-Control-Allow-Headers', REQUEST_HEADERS.join(', '),
    'Access-Control-Max-Age', KEPT_SECONDS,
    ...VARY,
    ...NOSNIFF,
  ],
  body: '',
  encoding: 'latin1',
});
