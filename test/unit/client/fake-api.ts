import { PROBLEMS, type ProblemCode } from '../../../src/contract/problem.js';
import { problemOf } from '../../../src/http/problem.js';

export interface Asked {
  /** `POST /v1/sales/7/purchases` */
  readonly what: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
  /** Time on the monotonic clock, ms. */
  readonly atMs: number;
  readonly signal: AbortSignal;
}
type Reply = Response | 'fails' | 'hangs';

export const json = (status: number, body: object): Response =>
  new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json' } });

export const refusal = (code: ProblemCode, retryAfterMs?: number): Response =>
  new Response(JSON.stringify(problemOf(code, retryAfterMs === undefined ? {} : { retryAfterMs })), {
    status: PROBLEMS[code].status,
    headers: { 'Content-Type': 'application/problem+json' },
  });

export const page = (status: number, headers: Record<string, string> = {}): Response =>
  new Response('<html>', { status, headers: { 'Content-Type': 'text/html', ...headers } });

export const event = (step: string, purchase: object): string =>
  `id: ${step}\nevent: ${step}\ndata: ${JSON.stringify(purchase)}\n\n`;

/** Streams these texts, with this delay (ms) before each text after the first, then ends or stays open. */
export function stream(texts: readonly string[], everyMs = 10, then: 'ends' | 'stays' = 'ends'): Response {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const say = (at: number): void => {
        const text = texts[at];
        if (text !== undefined) {
          controller.enqueue(new TextEncoder().encode(text));
          setTimeout(() => say(at + 1), everyMs);
        } else if (then === 'ends') controller.close();
      };
      say(0);
    },
  });
  return new Response(body, { headers: { 'Content-Type': 'text/event-stream' } });
}

/** Answers requests in order or by their content. */
export class FakeApi {
  readonly asked: Asked[] = [];
  readonly #replies: ((asked: Asked) => Reply | null)[] = [];

  /** Sets the response to the next request. */
  next(...replies: Reply[]): this {
    for (const reply of replies) {
      let isUsed = false;
      this.#replies.push(() => (isUsed ? null : ((isUsed = true), reply)));
    }
    return this;
  }

  /** Answers requests with this prefix when no queued response is left. */
  on(what: string, reply: () => Reply): this {
    this.#replies.push((asked) => (asked.what.startsWith(what) ? reply() : null));
    return this;
  }

  readonly fetch: typeof globalThis.fetch = (input, init) => {
    const { pathname, search } = new URL(String(input), 'http://api.example');
    const signal = init?.signal as AbortSignal;
    const asked = {
      what: `${init?.method ?? 'GET'} ${pathname}${search}`,
      headers: Object.fromEntries(init?.headers as [string, string][]),
      body: init?.body === undefined ? undefined : JSON.parse(String(init.body)),
      atMs: performance.now(),
      signal,
    };
    this.asked.push(asked);
    const aborted = new Promise<never>((_, reject) => {
      const abort = (): void => reject(signal.reason as Error);
      if (signal.aborted) abort();
      signal.addEventListener('abort', abort);
    });
    aborted.catch(() => undefined);
    for (const replyTo of this.#replies) {
      const reply = replyTo(asked);
      if (reply === null) continue;
      if (reply === 'fails') return Promise.reject(new TypeError('fetch failed'));
      return reply === 'hangs' ? aborted : Promise.race([abortable(reply, signal), aborted]);
    }
    return Promise.reject(new Error(`this test does not expect ${asked.what}`));
  };

  get whats(): string[] {
    return this.asked.map(({ what }) => what);
  }
}

/** The body fails when the signal aborts, as in a real response. */
function abortable(response: Response, signal: AbortSignal): Promise<Response> {
  if (response.body === null) return Promise.resolve(response);
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  response.body.pipeTo(writable, { signal }).catch(() => undefined);
  const { status, headers } = response;
  return Promise.resolve(new Response(readable, { status, headers }));
}
