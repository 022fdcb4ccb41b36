import type { IncomingMessage, ServerResponse } from 'node:http';
import { includesRole } from '../core/roles.js';
import { NOSNIFF } from './problem.js';
import type { Call, RouteServices } from './route.js';

export interface StreamTimes {
  /** After this long without an event a comment is sent, ms, so that no proxy closes the stream as idle. */
  readonly heartbeatMs: number;
  /** After this a stream is ended and the client connects again, ms. */
  readonly streamMaxMs: number;
  /** How long a client is asked to wait before it connects again, ms. */
  readonly retryMs: number;
}

export interface StreamEvent {
  /** One line; what the client sends as `Last-Event-ID` when it connects again. */
  readonly id: string;
  readonly event: string;
  readonly data: object;
}

/** Names and values in turn, as `writeHead` takes them. */
// oxfmt-ignore
const HEADERS = [
  'Content-Type', 'text/event-stream',
  'Cache-Control', 'no-store, no-transform',
  'X-Accel-Buffering', 'no',
  ...NOSNIFF,
];

/** The answer to HEAD: what GET would begin with. */
export function answerStreamHead(res: ServerResponse): void {
  res.writeHead(200, HEADERS).end();
}

/** A comment: a line that begins with a colon. */
const HEARTBEAT = ':\n\n';

/** Whether the caller would still get this stream: a token may end, or be revoked, while a stream is open. Never rejects. */
export const isStillAllowed =
  ({ req, route, userId }: Pick<Call, 'req' | 'route' | 'userId'>, { auth }: Pick<RouteServices, 'auth'>) =>
  async (): Promise<boolean> => {
    const who = await auth.authenticate(req.headers.authorization, req);
    if (typeof who === 'string') return who === 'keys_unavailable' || who === 'app_failed'; // nobody can say
    const { role } = route.asks;
    return who.userId === userId && (role === null || includesRole(who.roles, role));
  };

/**
 * One answer of type `text/event-stream`. Nothing is buffered for a slow reader: a client that has not read everything
 * by the next heartbeat, or whose socket is full, is disconnected. It can connect again and go on at its last event.
 */
export class EventStream {
  readonly #res: ServerResponse & { flush?(): void };
  readonly #isAllowed: () => Promise<boolean>;
  readonly #onEnd: () => void;
  readonly #heartbeat: NodeJS.Timeout;
  readonly #timeUp: NodeJS.Timeout;

  /**
   * @param isAllowed asked at each heartbeat; false ends the stream
   * @param onEnd called then, and after `streamMaxMs`; it has to call `end`
   */
  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    times: StreamTimes,
    isAllowed: () => Promise<boolean>,
    onEnd: () => void,
  ) {
    this.#res = res;
    this.#isAllowed = isAllowed;
    this.#onEnd = onEnd;
    res.shouldKeepAlive = false; // the end of the stream ends the connection, so a shutdown does not wait for it
    res.writeHead(200, HEADERS);
    req.socket.setNoDelay(true);
    this.#heartbeat = setInterval(() => void this.#beat(), times.heartbeatMs);
    this.#timeUp = setTimeout(onEnd, times.streamMaxMs);
    this.#write(`retry: ${times.retryMs}\n\n`);
  }

  send({ id, event, data }: StreamEvent): void {
    this.#write(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  /** The same for an event that was encoded once for many streams. */
  sendEncoded(event: Buffer): void {
    this.#write(event);
  }

  end(): void {
    clearInterval(this.#heartbeat);
    clearTimeout(this.#timeUp);
    this.#res.end();
  }

  async #beat(): Promise<void> {
    if (await this.#isAllowed()) this.#write(HEARTBEAT);
    else this.#onEnd();
  }

  #write(text: string | Buffer): void {
    if (this.#res.destroyed || this.#res.writableEnded) return;
    const slow = text === HEARTBEAT ? this.#res.writableLength > 0 : this.#res.writableNeedDrain;
    if (slow) this.#res.destroy();
    else {
      this.#res.write(text);
      this.#res.flush?.(); // of a middleware that compresses all the same
    }
  }
}
