/** A request to the API of the page's own origin. */
export interface Request {
  readonly method?: 'GET' | 'POST';
  readonly path: string;
  /** Sent in the header `Authorization`, and nowhere else. */
  readonly token?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: object;
}

/** The functions used to send a request. */
export interface Line {
  readonly fetch: typeof globalThis.fetch;
  readonly monotonicMs: () => number;
}

/** Moments on the monotonic clock, ms. */
interface Times {
  readonly sentMs: number;
  readonly receivedMs: number;
}

export interface Success extends Times {
  readonly ok: true;
  readonly status: number;
  /** Parsed JSON body. Null for 204. */
  readonly body: Readonly<Record<string, unknown>> | null;
  /**
   * Maximum age of the answer when it came, ms: an api gives the same answer for a second, and caches keep it. 0 if
   * nothing may keep it.
   */
  readonly keptMs: number;
}

export interface Failure {
  readonly ok: false;
  /** Code of the problem. `no_answer` if no answer came: no connection, too slow, cut off, or not from our server. */
  readonly code: string;
  /** Delay that the server asks for. Null if the server asks for none. */
  readonly retryAfterMs: number | null;
}

export type Answer = Success | Failure;

const NO_ANSWER: Failure = { ok: false, code: 'no_answer', retryAfterMs: null };

/**
 * Sends a request. Never rejects.
 * @param timeoutMs from the start of the request to the end of the answer
 */
export async function ask(request: Request, timeoutMs: number, signal: AbortSignal, line: Line): Promise<Answer> {
  const stop = new AbortController();
  const abort = (): void => stop.abort();
  const timer = setTimeout(abort, timeoutMs);
  signal.addEventListener('abort', abort);
  try {
    const sentMs = line.monotonicMs();
    const response = await send(request, line.fetch, stop.signal);
    const receivedMs = line.monotonicMs(); // the time in the body was read before the headers were sent
    const body = await bodyOf(response);
    // Only 204 may have no body. Any other success without JSON comes from something on the way, such as the sign-in
    // page of a network.
    if (!response.ok || (body === null && response.status !== 204)) return failureOf(response, body);
    return { ok: true, status: response.status, body, sentMs, receivedMs, keptMs: keptIn(response) };
  } catch {
    return NO_ANSWER;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

/** Sends the request, for callers that may read the answer piece by piece. @throws what `fetch` throws */
export function send(
  { method = 'GET', path, token, headers = {}, body }: Request,
  fetch: typeof globalThis.fetch,
  signal: AbortSignal,
): Promise<Response> {
  const init = {
    method,
    headers: {
      ...(token ? { Authorization: `Bearer ${token}` } : {}),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    cache: 'no-store' as const,
    redirect: 'error' as const,
    signal,
  };
  return fetch(path, init);
}

/** Reads the failure from an unsuccessful response. */
export async function failureIn(response: Response): Promise<Failure> {
  return failureOf(response, await bodyOf(response));
}

function failureOf(response: Response, body: Success['body']): Failure {
  const { code, retryAfterMs } = body ?? {};
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  const headerMs = Number.isFinite(seconds) ? seconds * 1000 : null;
  if (typeof code !== 'string') return { ...NO_ANSWER, retryAfterMs: headerMs }; // a proxy on the way has answered
  return { ok: false, code, retryAfterMs: typeof retryAfterMs === 'number' ? retryAfterMs : headerMs };
}

async function bodyOf(response: Response): Promise<Success['body']> {
  if (!/json/.test(response.headers.get('content-type') ?? '')) return null;
  const body: unknown = await response.json();
  return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : null;
}

/** Seconds for which a cache may keep the answer of a sale. nginx sends no `Age`, even to a CDN in front of it. */
const KEPT_MAX = 2;

/**
 * Returns the maximum age of the answer, ms. An api sends an answer that is up to a second old, and `Age` rounds down.
 */
function keptIn({ headers }: Response): number {
  const age = headers.get('age');
  const caching = headers.get('cache-control');
  if ((age ?? caching) === null || /no-store/.test(caching ?? '')) return 0;
  return (2 + KEPT_MAX + (/^\d+$/.test(age ?? '') ? Number(age) : 0)) * 1000;
}
