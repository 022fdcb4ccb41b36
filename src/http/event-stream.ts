import type { IncomingMessage, ServerResponse } from 'node:http';

export interface StreamTimes {
  /** A stream that says nothing for this long sends a comment, ms, so that nobody on the way takes it for dead. */
  readonly heartbeatMs: number;
  /** After this a stream is ended and the client comes again, ms: no token is believed for ever. */
  readonly streamMaxMs: number;
  /** How long a client is asked to wait before it comes again, ms. */
  readonly retryMs: number;
}

export interface StreamEvent {
  /** One line; what the client sends as `Last-Event-ID` when it comes again. */
  readonly id: string;
  readonly event: string;
  readonly data: object;
}

const HEADERS = [
  ...['Content-Type', 'text/event-stream', 'Cache-Control', 'no-store', 'X-Accel-Buffering', 'no'],
  ...['X-Content-Type-Options', 'nosniff'],
];
/** A comment: a line that begins with a colon. */
const HEARTBEAT = ':\n\n';

/**
 * One answer of type `text/event-stream`. It holds nothing back for a slow reader: whoever has not taken what was sent
 * before, when the next heartbeat is due or the socket is full, is cut off, and comes again where it was.
 */
export class EventStream {
  readonly #res: ServerResponse;
  readonly #beating: NodeJS.Timeout;
  readonly #ending: NodeJS.Timeout;

  /** @param over called when its longest time is over; `end` has to follow */
  constructor(req: IncomingMessage, res: ServerResponse, times: StreamTimes, over: () => void) {
    this.#res = res;
    res.shouldKeepAlive = false; // the end of the stream ends the connection, so a drain waits for none
    res.writeHead(200, HEADERS);
    req.socket.setNoDelay(true);
    this.#beating = setInterval(() => this.#write(HEARTBEAT), times.heartbeatMs);
    this.#ending = setTimeout(over, times.streamMaxMs);
    this.#write(`retry: ${times.retryMs}\n\n`);
  }

  send({ id, event, data }: StreamEvent): void {
    this.#write(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  end(): void {
    clearInterval(this.#beating);
    clearTimeout(this.#ending);
    this.#res.end();
  }

  #write(text: string): void {
    if (this.#res.destroyed) return;
    const slow = text === HEARTBEAT ? this.#res.writableLength > 0 : this.#res.writableNeedDrain;
    if (slow) this.#res.destroy();
    else this.#res.write(text);
  }
}
