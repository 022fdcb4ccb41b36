import type { IncomingMessage, ServerResponse } from 'node:http';
import { problem, type Answer } from './answer.js';
import { NOSNIFF } from './problem.js';
import { API_PREFIX } from './route.js';

/** What pages may send beside what every page may: no header of a signature, since a page cannot keep its key. */
const REQUEST_HEADERS = [
  'Authorization',
  'Content-Type',
  'Idempotency-Key',
  'Last-Event-ID',
  'Seckill-Purchase-Token',
  'Seckill-Queue-Pass',
  'traceparent',
];
/** What pages may read beside what every page may. */
const ANSWER_HEADERS = 'Age, Location, Retry-After, Trace-Id';
/** How long a browser need not ask again, in seconds; Chromium keeps no answer for longer. */
const KEPT_SECONDS = '7200';
/** Caches must not give one origin what was answered to another one. */
const VARY = ['Vary', 'Origin'] as const;

/**
 * Lets pages of other origins call the API of buyers (CORS). Tokens travel in `Authorization`, and no cookie is ever read,
 * so `Access-Control-Allow-Credentials` is never sent. Who is no browser is not kept from anything: that is not what CORS is for.
 */
export class Cors {
  readonly #preflights: ReadonlyMap<string, Answer<204>>;

  /** @param origins as browsers write them */
  constructor(origins: readonly string[]) {
    this.#preflights = new Map(origins.map((origin) => [origin, preflightOf(origin)]));
  }

  /**
   * The question whether a page may send a request that not every page may. It is answered from memory, whatever the request
   * would be about.
   * @returns null: this is no such question
   */
  preflight({ method, url, headers }: IncomingMessage): Answer | null {
    if (method !== 'OPTIONS' || !isOfApi(url)) return null;
    if (headers.origin === undefined || headers['access-control-request-method'] === undefined) return null;
    return this.#preflights.get(headers.origin) ?? DENIED;
  }

  /** Adds what a browser needs to hand the answer to its page. A request that comes from no page costs nothing, unless caches may keep its answer. */
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
