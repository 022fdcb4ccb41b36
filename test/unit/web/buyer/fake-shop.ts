import type { SinonFakeTimers } from 'sinon';
import type { SaleView } from '../../../../src/sales/get-sale.js';
import { pollAfterMs } from '../../../../src/sales/poll-after.js';
import type { Answer, Success } from '../../../../web/shared/ask.js';
import { readToken, type SignIn } from '../../../../web/shared/sign-in.js';
import { Page, type Browser } from '../../../../web/buyer/page.js';

export const OPENS_MS = Date.UTC(2030, 0, 1, 20);

export const success = (body: Success['body'], status = 200): Success => ({
  ok: true,
  status,
  body,
  sentMs: 0,
  receivedMs: 0,
  keptMs: 0,
});
export const failure = (code: string, retryAfterMs: number | null = null): Answer => ({
  ok: false,
  code,
  retryAfterMs,
});

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
export const signInOf = (userId: string, endsAtMs = OPENS_MS + 3_600_000): SignIn =>
  readToken(`x.${part({ sub: userId, exp: endsAtMs / 1000 })}.y`) as SignIn;

/** Returns the body of a sale as it is read at a moment on the server's clock. */
export function saleBody(serverMs: number, parts: Record<string, unknown> = {}): Record<string, unknown> {
  const body = {
    saleId: '7',
    sku: 'cup',
    title: 'A cup',
    priceCents: 1999,
    currency: 'EUR',
    limitPerBuyer: 2,
    paymentWindow: null,
    state: 'open',
    stock: 'plenty',
    asksFor: [],
    opensAt: new Date(OPENS_MS).toISOString(),
    closesAt: new Date(OPENS_MS + 3_600_000).toISOString(),
    serverTime: new Date(serverMs).toISOString(),
    ...parts,
  };
  const { state, stock } = body;
  const view = { state, stock, opensAtMs: OPENS_MS, nowMs: serverMs } as SaleView;
  return { pollAfterMs: pollAfterMs(view), ...body };
}

export interface Asked {
  /** Method, and path below the sale, such as `POST /purchases`. */
  readonly what: string;
  /** True if no cache may answer. */
  readonly isFresh: boolean;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
  /** On the clock of the server. */
  readonly atMs: number;
}

type Reply = Response | 'hangs' | 'fails';

/** A server in memory on the fake time of the test, and a browser whose wall clock may be wrong. */
export class FakeShop {
  readonly asked: Asked[] = [];
  readonly stored = new Map<string, string>();
  /** The current sale. */
  sale: Record<string, unknown> = {};
  /** Travel time in each direction, ms. */
  tripMs = 20;
  /** How far the browser's wall clock is ahead of the server, ms. */
  wallAheadMs = 0;
  online = true;
  random = 0.5;
  readonly #clock: SinonFakeTimers;
  readonly #replies = new Map<string, ((asked: Asked) => Reply)[]>();
  #keys = 0;

  /** @param clock shows the server's time */
  constructor(clock: SinonFakeTimers) {
    this.#clock = clock;
  }

  get nowMs(): number {
    return this.#clock.now;
  }

  /** Answers the next requests of this kind with `replies`. The last reply answers all further requests. */
  on(what: string, ...replies: ((asked: Asked) => Reply)[]): this {
    this.#replies.set(what, replies);
    return this;
  }

  count(what: string): number {
    return this.asked.filter((one) => one.what === what).length;
  }

  open(signIn: SignIn | null = signInOf('ann'), saleId = '7'): Page {
    const page = new Page(saleId, this.browser());
    page.start(signIn);
    return page;
  }

  browser(): Browser {
    return {
      fetch: ((path: string, init: RequestInit) => this.#fetch(path, init)) as typeof fetch,
      monotonicMs: () => this.#clock.now - OPENS_MS + 5_000_000,
      wallMs: () => this.#clock.now + this.wallAheadMs,
      sleep: (ms, signal) =>
        new Promise((resolve) => {
          const wake = (): void => {
            clearTimeout(timer);
            signal.removeEventListener('abort', wake);
            resolve();
          };
          const timer = setTimeout(wake, ms);
          signal.addEventListener('abort', wake);
          if (signal.aborted) wake();
        }),
      random: () => this.random,
      newKey: () => `key-${++this.#keys}`,
      storage: {
        read: (name) => this.stored.get(name) ?? null,
        write: (name, value) => void this.stored.set(name, value),
        remove: (name) => void this.stored.delete(name),
      },
    };
  }

  async #fetch(path: string, { method = 'GET', headers, body, signal }: RequestInit): Promise<Response> {
    const aborted = new Promise<never>((_, reject) => {
      signal?.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')));
    });
    const wait = (ms: number): Promise<void> =>
      Promise.race([new Promise<void>((resolve) => setTimeout(resolve, ms)), aborted]);
    await wait(this.tripMs);
    if (!this.online) throw new TypeError('Failed to fetch');
    const what = `${method} ${path.replace('/v1/sales/7', '').replace('?fresh=1', '')}`;
    const asked: Asked = {
      what,
      isFresh: path.endsWith('?fresh=1'),
      headers: headers as Record<string, string>,
      body: typeof body === 'string' ? JSON.parse(body) : undefined,
      atMs: this.#clock.now,
    };
    this.asked.push(asked);
    const reply = this.#replyTo(asked);
    if (reply === 'hangs') return aborted;
    await wait(this.tripMs);
    if (reply === 'fails') throw new TypeError('Failed to fetch');
    signal?.addEventListener('abort', () => streams.get(reply)?.cut());
    return reply;
  }

  #replyTo(asked: Asked): Reply {
    const replies = this.#replies.get(asked.what);
    if (replies === undefined) {
      if (asked.what === 'GET ') return json(saleBody(this.#clock.now, this.sale));
      return problem(404, 'route_not_found');
    }
    const reply = replies.length > 1 ? replies.shift() : replies[0];
    return (reply as (asked: Asked) => Reply)(asked);
  }
}

export const json = (body: unknown, status = 200, headers = {}): Response =>
  new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json', ...headers } });
export const problem = (status: number, code: string, retryAfterMs?: number): Response =>
  new Response(JSON.stringify({ code, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }), {
    status,
    headers: { 'content-type': 'application/problem+json' },
  });

const streams = new WeakMap<Response, FakeStream>();

/** A stream of events that a test writes. */
export class FakeStream {
  readonly response: Response;
  #controller!: ReadableStreamDefaultController<Uint8Array>;

  constructor() {
    const body = new ReadableStream<Uint8Array>({ start: (controller) => void (this.#controller = controller) });
    this.response = new Response(body, { status: 200, headers: { 'content-type': 'text/event-stream' } });
    streams.set(this.response, this);
  }

  say(event: string, data: object): this {
    return this.write(`id: ${event}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  write(text: string): this {
    this.#controller.enqueue(new TextEncoder().encode(text));
    return this;
  }

  end(): void {
    this.#controller.close();
  }

  /** Fails the stream, as an aborted fetch does. */
  cut(): void {
    try {
      this.#controller.error(new DOMException('aborted', 'AbortError'));
    } catch {
      // the stream has already ended
    }
  }
}
