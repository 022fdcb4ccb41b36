/** One request to the API of the page's own origin. */
export interface Request {
  readonly method?: 'GET' | 'POST';
  readonly path: string;
  /** Goes into the header `Authorization`, and nowhere else. */
  readonly token?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: object;
}

/** What a request is sent with. */
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
  /** Of its JSON; null: 204. */
  readonly body: Readonly<Record<string, unknown>> | null;
  /** How long caches may have kept it, ms, by its header `Age`; 0: it has none, and comes from the server itself. */
  readonly keptMs: number;
}

export interface Failure {
  readonly ok: false;
  /** Of the problem; `no_answer` when none came: no connection, too slow, cut, or not from our server. */
  readonly code: string;
  /** As the server asks; null: it says nothing. */
  readonly retryAfterMs: number | null;
}

export type Answer = Success | Failure;

const NO_ANSWER: Failure = { ok: false, code: 'no_answer', retryAfterMs: null };

/**
 * Never rejects.
 * @param timeoutMs from the beginning to the end of the answer
 */
export async function ask(request: Request, timeoutMs: number, signal: AbortSignal, line: Line): Promise<Answer> {
  const stop = new AbortController();
  const abort = (): void => stop.abort();
  const timer = setTimeout(abort, timeoutMs);
  signal.addEventListener('abort', abort);
  try {
    const sentMs = line.monotonicMs();
    const response = await send(request, line.fetch, stop.signal);
    const receivedMs = line.monotonicMs(); // its time was read before its head was sent
    const body = await bodyOf(response);
    // 204 alone may say nothing: any other success without JSON comes from something on the way, as a page to sign in to a network.
    if (!response.ok || (body === null && response.status !== 204)) return failureOf(response, body);
    return { ok: true, status: response.status, body, sentMs, receivedMs, keptMs: keptIn(response) };
  } catch {
    return NO_ANSWER;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

/** The request as it goes out: also for who reads the answer piece by piece. @throws what `fetch` throws */
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

/** What an answer says that is no success. */
export async function failureIn(response: Response): Promise<Failure> {
  return failureOf(response, await bodyOf(response));
}

function failureOf(response: Response, body: Success['body']): Failure {
  const { code, retryAfterMs } = body ?? {};
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  const headerMs = Number.isFinite(seconds) ? seconds * 1000 : null;
  if (typeof code !== 'string') return { ...NO_ANSWER, retryAfterMs: headerMs }; // a proxy on the way has spoken
  return { ok: false, code, retryAfterMs: typeof retryAfterMs === 'number' ? retryAfterMs : headerMs };
}

async function bodyOf(response: Response): Promise<Success['body']> {
  if (!/json/.test(response.headers.get('content-type') ?? '')) return null;
  const body: unknown = await response.json();
  return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : null;
}

/** `Age` counts whole seconds. */
function keptIn({ headers }: Response): number {
  const age = headers.get('age');
  return age === null || !/^\d+$/.test(age) ? 0 : (Number(age) + 1) * 1000;
}
