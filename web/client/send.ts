import { after, pause } from '../../src/core/after.js';
import { backOffMs } from './back-off.js';
import { laneIn } from './lane.js';
import type { Answer, ClientOptions, Code, Problem, Refusal } from './types.js';

export interface Request {
  readonly method?: 'GET' | 'POST';
  /** Path below the base url. */
  readonly path: string;
  /** Headers without a value are left out. */
  readonly headers?: Readonly<Record<string, string | null | undefined>>;
  /** Sent as JSON. */
  readonly body?: object;
  /** Sent without the token, since caches do not answer requests with a token. */
  readonly isPublic?: boolean;
  /** Time limit from the start of an attempt to the end of its answer, ms. */
  readonly timeoutMs?: number;
}

export interface Patience {
  readonly signal?: AbortSignal | undefined;
  /** On the monotonic clock, ms. No attempt begins later. */
  readonly endMs: number;
  /** Called after an attempt that may have been carried out although no answer confirms it. */
  readonly onUnsure?: () => void;
}

const TIMEOUT_MS = 15_000;

/**
 * Sends a request until it gets a usable answer. Rejects only when the signal aborts.
 * @param says whether a success contains the requested data: an answer of a degraded API, or of something else in its
 * place, may lack it
 */
export async function untilAnswered<T>(
  request: Request,
  patience: Patience,
  options: ClientOptions,
  says: (body: T) => boolean = () => true,
): Promise<Answer<T>> {
  const { signal, endMs, onUnsure } = patience;
  for (let tries = 1; ; tries++) {
    const tried = await tryOnce<T>(request, signal, options);
    const answer = tried.ok && !says(tried.body) ? nothingSaid() : tried;
    if (answer.ok || !mayDoBetter(answer)) return answer;
    if (isUnsure(answer)) onUnsure?.();
    const waitMs = backOffMs(tries, answer.retryAfterMs, Math.random());
    if (performance.now() + waitMs > endMs) return answer;
    await sleep(waitMs, signal);
  }
}

/**
 * True if an attempt may have been carried out despite its failure. `internal` does not say what was done before the
 * error.
 */
export const isUnsure = ({ code }: Refusal): boolean =>
  code === 'no_answer' || code === 'outcome_unknown' || code === 'internal';

const mayDoBetter = (refusal: Refusal): boolean => refusal.retryAfterMs !== null || isUnsure(refusal);

/** Makes a single attempt. Rejects only when the signal aborts. */
async function tryOnce<T>(
  request: Request,
  signal: AbortSignal | undefined,
  options: ClientOptions,
): Promise<Answer<T>> {
  const timer = abortAfter(request.timeoutMs ?? TIMEOUT_MS, signal);
  try {
    const response = await open(request, timer.signal, options);
    return await read<T>(response);
  } catch (error) {
    signal?.throwIfAborted();
    return error instanceof NotSent ? without('not_sent', error.message) : noAnswer(error);
  } finally {
    timer.end();
  }
}

/** Nothing was sent: there is no token, or a header is invalid. */
class NotSent extends Error {}

/**
 * Returns the response as soon as it begins, for callers that read it piece by piece.
 * @throws NotSent; what `fetch` throws
 */
export async function open(request: Request, signal: AbortSignal, options: ClientOptions): Promise<Response> {
  const token = request.isPublic ? null : await tokenOf(options);
  const response = await send(request, token, signal, options);
  if (request.isPublic || response.status !== 401 || typeof options.token !== 'function') return response;
  const newer = await tokenOf(options);
  return newer === token ? response : send(request, newer, signal, options);
}

async function tokenOf({ token }: ClientOptions): Promise<string | null> {
  try {
    return typeof token === 'function' ? await token() : (token ?? null);
  } catch (error) {
    throw new NotSent(`There is no token: ${sentenceOf(error)}`);
  }
}

/** @throws NotSent for a header name or value that HTTP does not allow */
function headersOf(values: Readonly<Record<string, string | null | undefined>>): [string, string][] {
  const given = Object.entries(values).filter((header): header is [string, string] => typeof header[1] === 'string');
  try {
    new Headers(given); // checks the headers, because the error of `fetch` would look like a missing network
    return given;
  } catch (error) {
    throw new NotSent(`A header cannot be written: ${sentenceOf(error)}`);
  }
}

function send(
  { method = 'GET', path, headers = {}, body }: Request,
  token: string | null,
  signal: AbortSignal,
  { baseUrl, cell, fetch = globalThis.fetch, credentials }: ClientOptions,
): Promise<Response> {
  const sent = headersOf({
    ...headers,
    Authorization: token === null ? null : `Bearer ${token}`,
    'Seckill-Lane': token === null ? null : laneIn(token),
    'Seckill-Cell': cell?.toString(),
    'Content-Type': body === undefined ? null : 'application/json',
  });
  const init = {
    method,
    headers: sent,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(credentials === undefined ? {} : { credentials }),
    cache: 'no-store' as const,
    redirect: 'error' as const,
    signal,
  };
  return fetch(baseUrl.replace(/\/+$/, '') + path, init);
}

async function read<T>(response: Response): Promise<Answer<T>> {
  const isJson = /json/.test(response.headers.get('content-type') ?? '');
  if (response.ok) {
    if (response.status !== 204 && !isJson) return foreign(response);
    return { ok: true, status: response.status, body: (response.status === 204 ? null : await response.json()) as T };
  }
  const body: unknown = isJson ? await response.json() : null;
  return isProblem(body) ? refusalOf(body) : foreign(response);
}

/** Reads the refusal from an unsuccessful response. */
export async function refusalIn(response: Response): Promise<Refusal> {
  const answer = await read(response);
  return answer.ok ? foreign(response) : answer;
}

const isProblem = (body: unknown): body is Problem =>
  typeof body === 'object' && body !== null && typeof (body as Partial<Problem>).code === 'string';

const refusalOf = (problem: Problem): Refusal => ({
  ok: false,
  code: problem.code,
  detail: problem.detail,
  retryAfterMs: problem.retryAfterMs ?? null,
  problem,
});

const noAnswer = (error: unknown): Refusal => without('no_answer', `No answer came: ${sentenceOf(error)}`);

const nothingSaid = (): Refusal => without('no_answer', 'The answer is not complete.');

/** Creates a refusal of the client itself, without a problem of the API. */
export const without = (code: Code, detail: string): Refusal => ({
  ok: false,
  code,
  detail,
  retryAfterMs: null,
  problem: null,
});

const sentenceOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/**
 * Handles an answer that is not from the API. A proxy that is busy or has lost the API may recover, but a proxy that
 * refuses, or a wrong address, will not.
 */
function foreign({ status, headers }: Response): Refusal {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1000 : null;
  const detail = `A server that is not Seckill answered ${status}.`;
  const mayPass = status >= 500 || status === 408 || status === 429;
  const code = mayPass ? 'no_answer' : 'not_seckill';
  return { ok: false, code, detail, retryAfterMs: mayPass ? retryAfterMs : null, problem: null };
}

/** @throws the reason of the signal */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  await pause(ms, signal);
  signal?.throwIfAborted();
}

interface Timer {
  readonly signal: AbortSignal;
  abort(): void;
  /** Restarts the timer. */
  more(ms: number): void;
  end(): void;
}

/** Returns a signal that aborts with the outer signal, or if neither `more` nor `end` is called for this time. */
export function abortAfter(ms: number, outer?: AbortSignal): Timer {
  const own = new AbortController();
  const abort = (): void => own.abort(outer?.aborted ? outer.reason : new Error(`nothing came within ${ms} ms`));
  let stop = after(ms, abort);
  if (outer?.aborted) abort();
  outer?.addEventListener('abort', abort);
  return {
    signal: own.signal,
    abort: (): void => own.abort(),
    more(anotherMs: number): void {
      stop();
      stop = after(anotherMs, abort);
    },
    end(): void {
      stop();
      outer?.removeEventListener('abort', abort);
    },
  };
}
