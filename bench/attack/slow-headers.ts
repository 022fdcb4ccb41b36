import { connect, type Socket } from 'node:net';

/** Connections that never finish their headers. */
export interface SlowTally {
  readonly opened: number;
  /** Connections that the server closed, and how many of them got a 408 first. */
  readonly closed: number;
  readonly answered408: number;
  /** Longest life of a connection in ms. For connections that were open at the end, their age counts. */
  readonly longestMs: number;
}

/** How often each connection sends one more header, to look alive. */
const HEADER_EVERY_MS = 500;

interface SlowSocket {
  readonly socket: Socket;
  /** When its first byte was sent. 0 if nothing was sent yet. */
  startedMs: number;
  answered408: boolean;
}

export interface SlowHeadersOptions {
  readonly port: number;
  readonly path: string;
  readonly sockets: number;
  readonly addressOf: (place: number) => string;
}

/**
 * Keeps a limited number of connections that start a request and never finish its headers. Replaces each connection
 * that the server closes.
 */
export class SlowHeaders {
  readonly #options: SlowHeadersOptions;
  readonly #open = new Set<SlowSocket>();
  readonly #timer: NodeJS.Timeout;
  readonly #tally = { opened: 0, closed: 0, answered408: 0, longestMs: 0 };
  #ended = false;

  constructor(options: SlowHeadersOptions) {
    this.#options = options;
    for (let place = 0; place < options.sockets; place++) this.#connect(place);
    this.#timer = setInterval(() => this.#sendAll(), HEADER_EVERY_MS);
  }

  /** Returns the result so far, without the open connections. */
  get tally(): SlowTally {
    return { ...this.#tally };
  }

  /** Closes all connections and returns the result. */
  end(): SlowTally {
    this.#ended = true;
    clearInterval(this.#timer);
    for (const one of this.#open) {
      this.#noteAge(one);
      one.socket.destroy();
    }
    return this.tally;
  }

  #connect(place: number): void {
    const { port, path, addressOf } = this.#options;
    const socket = connect({ port, host: '127.0.0.1', localAddress: addressOf(place), noDelay: true });
    const slow: SlowSocket = { socket, startedMs: 0, answered408: false };
    socket.once('connect', () => {
      slow.startedMs = performance.now();
      this.#tally.opened++;
      this.#open.add(slow);
      socket.write(`POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n`);
    });
    socket.on('data', (chunk: Buffer) => (slow.answered408 ||= chunk.includes('HTTP/1.1 408')));
    socket.on('error', () => undefined); // `close` follows
    socket.once('close', () => {
      if (this.#ended) return;
      if (slow.startedMs > 0) this.#noteClosed(slow);
      setImmediate(() => (this.#ended ? undefined : this.#connect(place)));
    });
  }

  #sendAll(): void {
    for (const { socket } of this.#open) if (socket.writable) socket.write('X-Patience: a\r\n');
  }

  #noteClosed(slow: SlowSocket): void {
    this.#open.delete(slow);
    this.#noteAge(slow);
    this.#tally.closed++;
    if (slow.answered408) this.#tally.answered408++;
  }

  #noteAge({ startedMs }: SlowSocket): void {
    this.#tally.longestMs = Math.max(this.#tally.longestMs, performance.now() - startedMs);
  }
}
