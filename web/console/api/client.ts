import { EventStreamReader, type StreamedEvent } from '../../client/event-stream.js';
import { queryOf } from '../logic/query.js';
import { ApiError } from './api-error.js';
import type { Session } from './session.js';
import type { FieldError, Me } from './types.js';

/** Time-outs of an answer. Requests that change something may take long. */
const ANSWER_MAX_MS = 30_000;
const ACTION_MAX_MS = 120_000;

export type Query = Parameters<typeof queryOf>[0];

export interface Call {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly query?: Query;
  readonly body?: unknown;
  /** A repeated call with this key has no further effect. */
  readonly key?: string;
  readonly signal?: AbortSignal;
  /** Statuses that this call treats as an answer, not as a failure. */
  readonly takes?: readonly number[];
}

/** Calls the API that served this page, as the signed-in user. */
export class Api {
  readonly session: Session;

  constructor(session: Session) {
    this.session = session;
  }

  /** @throws ApiError; DOMException AbortError when the signal ends the call */
  async ask<T>(path: string, call: Call = {}): Promise<T> {
    const isRead = (call.method ?? 'GET') === 'GET';
    const response = await this.#send(path, call, isRead ? ANSWER_MAX_MS : ACTION_MAX_MS);
    return (await bodyOf(response)) as T;
  }

  /** Fetches a text that is saved as a file. @throws ApiError */
  async file(path: string, call: Call = {}): Promise<Blob> {
    return (await this.#send(path, call, ACTION_MAX_MS)).blob();
  }

  /**
   * Yields the events of a `text/event-stream` until it ends.
   * @param parser afterwards holds how long the API asks to wait before the next connection
   * @throws ApiError if the stream cannot begin
   */
  async *events(path: string, call: Call = {}, parser = new EventStreamReader()): AsyncGenerator<StreamedEvent> {
    const { body } = await this.#send(path, call, null);
    if (body === null) return;
    const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        yield* parser.push(value);
      }
    } finally {
      await reader.cancel().catch(() => undefined); // a caller that stops listening ends the request
    }
  }

  async #send(
    path: string,
    { method, query = {}, body, key, signal, takes }: Call,
    maxMs: number | null,
  ): Promise<Response> {
    const { session } = this;
    const { token } = session;
    // the screen waits for the next token
    if (token === null) throw new ApiError(401, 'unauthorized', 'Nobody is signed in.');
    try {
      return await send(token, path + queryOf(query), { method, body, key, takes, signal: limited(signal, maxMs) });
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) session.refused(token);
      throw error;
    }
  }
}

/** Returns the user of a token without signing in. @throws ApiError */
export async function askMe(token: string): Promise<Me> {
  return (await bodyOf(await send(token, '/admin/v1/me', { signal: limited(undefined, ANSWER_MAX_MS) }))) as Me;
}

interface Sent {
  readonly method?: string | undefined;
  readonly body?: unknown;
  readonly key?: string | undefined;
  readonly signal: AbortSignal | null;
  readonly takes?: readonly number[] | undefined;
}

async function send(
  token: string,
  path: string,
  { method = 'GET', body, key, signal, takes = [] }: Sent,
): Promise<Response> {
  const headers: Record<string, string> = { Authorization: `Bearer ${token}` };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (key !== undefined) headers['Idempotency-Key'] = key;
  const response = await fetch(path, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
    signal,
    cache: 'no-store',
    credentials: 'omit',
  }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError(0, 'unreachable', error instanceof Error ? error.message : String(error));
  });
  const isProblem = response.headers.get('content-type')?.includes('problem') === true;
  if (!response.ok && (isProblem || !takes.includes(response.status))) throw await problemOf(response);
  return response;
}

async function problemOf(response: Response): Promise<ApiError> {
  const answer: unknown = await response.json().catch(() => null);
  const { code, detail, errors } = (answer ?? {}) as { code?: string; detail?: string; errors?: FieldError[] };
  if (code === undefined)
    return new ApiError(response.status, 'no_problem', `${response.status} ${response.statusText}`);
  return new ApiError(response.status, code, detail ?? code, errors);
}

async function bodyOf(response: Response): Promise<unknown> {
  const text = await response.text().catch((error: unknown) => {
    throw new ApiError(0, 'unreachable', String(error));
  });
  if (text === '') return null;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new ApiError(response.status, 'no_problem', 'The answer is not JSON.');
  }
}

function limited(signal: AbortSignal | undefined, maxMs: number | null): AbortSignal | null {
  const signals = [...(signal ? [signal] : []), ...(maxMs === null ? [] : [AbortSignal.timeout(maxMs)])];
  return signals.length === 0 ? null : AbortSignal.any(signals);
}
