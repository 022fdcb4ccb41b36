import type { IncomingMessage, ServerResponse } from 'node:http';
import { includesRole } from '../core/roles.js';
import { NOSNIFF } from './problem.js';
import type { Call, RouteServices } from './route.js';

export interface StreamTimes {
  /** Sends a comment after this time without an event, in ms, so that no proxy closes the stream as idle. */
  readonly heartbeatMs: number;
  /** Ends a stream after this time, in ms. The client then reconnects. */
  readonly streamMaxMs: number;
  /** How long a client should wait before it reconnects, in ms. */
  readonly retryMs: number;
}

export interface StreamEvent {
  /** A single line. The client sends it as `Last-Event-ID` when it reconnects. */
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

/** Answers HEAD with the headers of GET. */
export function answerStreamHead(res: ServerResponse): void {
  res.writeHead(200, HEADERS).end();
}

/** A comment: a line that begins with a colon. */
const HEARTBEAT = ':\n\n';

/** Returns whether the caller may still receive the stream: a token may expire or be revoked. Never rejects. */
export const isStillAllowed =
  ({ req, route, userId }: Call, { auth }: RouteServices) =>
  async (): Promise<boolean> => {
    const who = await auth.authenticate(req.headers.authorization, req);
    if (typeof who === 'string') return who === 'keys_unavailable' || who === 'app_failed'; // cannot check
    const { role } = route.asks;
    return who.userId === userId && (role === null || includesRole(who.roles, role));
  };

/**
 * An answer of type `text/event-stream`. Buffers nothing for a slow reader: it disconnects a client that has not read
 * everything by the next heartbeat, or whose socket is full. The client can reconnect and continue after its last
 * event.
 */
export class EventStream {
  readonly #res: ServerResponse & { flush?(): void };
  readonly #isAllowed: () => Promise<boolean>;
  readonly #onEnd: () => void;
  readonly #heartbeat: NodeJS.Timeout;
  readonly #timeUp: NodeJS.Timeout;

  /**
   * @param isAllowed called at each heartbeat; if it returns false, the stream ends
   * @param onEnd called when `isAllowed` returns false, and after `streamMaxMs`; it must call `end`
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
    res.shouldKeepAlive = false; // the connection ends with the stream, so a shutdown does not wait for it
    res.writeHead(200, HEADERS);
    req.socket.setNoDelay(true);
    this.#heartbeat = setInterval(() => void this.#beat(), times.heartbeatMs);
    this.#timeUp = setTimeout(onEnd, times.streamMaxMs);
    this.#write(`retry: ${times.retryMs}\n\n`);
  }

  send({ id, event, data }: StreamEvent): void {
    this.#write(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  /** Sends an event that was encoded once for many streams. */
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
      this.#res.flush?.(); // middleware may compress the answer in spite of the headers
    }
  }
}
