import { connect, type Socket } from 'node:net';

export interface RequestSenderOptions {
  readonly port: number;
  readonly connections: number;
  /** Requests per second. */
  readonly rate: number;
  /** Maximum number of requests. */
  readonly total: number;
  /** No request is sent later than this, in ms since the start. Default: no limit. */
  readonly endsAfterMs?: number;
  /** Returns the bytes of the n-th request, from 0. */
  readonly request: (place: number) => Buffer;
  readonly onAnswer?: (place: number, status: number) => void;
}

interface Connection {
  readonly socket: Socket;
  readonly answers: AnswerReader;
  /** Number of the request that waits for its answer, or -1. */
  place: number;
}

const CONNECT_TIMEOUT_MS = 10_000;
const TICK_MS = 1;
/** Wait for answers after the last request was due. */
const TAIL_MS = 30_000;

/**
 * Returns when the n-th request of an open-loop load is due, in ms after its start. The schedule does not depend on
 * answers, so a slow server cannot slow down its own measurement (coordinated omission).
 */
export const dueAtMs = (place: number, rate: number): number => (place * 1000) / rate;

/** Returns how many requests are due `elapsedMs` after the start. The first is due at once. */
export const dueCount = (elapsedMs: number, rate: number): number => Math.floor((elapsedMs * rate) / 1000) + 1;

/**
 * Sends requests at a fixed rate on keep-alive connections, and reopens connections that the server closes. Uses raw
 * sockets, because an agent of node:http costs more CPU than the server spends on a refusal.
 */
export class RequestSender {
  readonly #options: RequestSenderOptions;
  readonly #idle: Connection[] = [];
  readonly #sockets = new Set<Socket>();
  #sent = 0;
  #answered = 0;
  #open = 0;
  #ended = false;

  constructor(options: RequestSenderOptions) {
    this.#options = options;
  }

  /** Opens the connections. @throws if the server does not accept a connection */
  async start(): Promise<void> {
    await Promise.all(Array.from({ length: this.#options.connections }, () => this.#connect()));
  }

  /** Sends the requests that are due as long as connections are free. The rest waits for the next call. */
  sendDue(elapsedMs: number): void {
    const { rate, total, request, endsAfterMs = Infinity } = this.#options;
    if (elapsedMs > endsAfterMs) return;
    const due = Math.min(total, dueCount(elapsedMs, rate));
    while (this.#sent < due) {
      const connection = this.#idle.pop(); // the connection used last costs least
      if (connection === undefined) return;
      connection.place = this.#sent++;
      this.#open++;
      connection.socket.write(request(connection.place));
    }
  }

  /** Sends all requests. Resolves when each has an answer or is out of time. @param elapsedMs since the start */
  sendAll(elapsedMs: () => number): Promise<void> {
    const { total, rate, endsAfterMs = Infinity } = this.#options;
    return new Promise((resolve) => {
      const timer = setInterval(() => {
        this.sendDue(elapsedMs());
        const endMs = endsAfterMs === Infinity ? dueAtMs(total, rate) : endsAfterMs;
        const isOver = this.#sent === total || elapsedMs() > endsAfterMs;
        if (!(isOver && this.isAnswered) && elapsedMs() < endMs + TAIL_MS) return;
        clearInterval(timer);
        resolve();
      }, TICK_MS);
    });
  }

  get sent(): number {
    return this.#sent;
  }

  get answered(): number {
    return this.#answered;
  }

  /** True if every request that was sent has its answer or has lost its connection. */
  get isAnswered(): boolean {
    return this.#open === 0;
  }

  end(): void {
    this.#ended = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  #connect(): Promise<void> {
    const { port } = this.#options;
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true });
      const connection: Connection = { socket, answers: new AnswerReader(), place: -1 };
      this.#sockets.add(socket);
      socket.setTimeout(CONNECT_TIMEOUT_MS, () => reject(new Error('a connection was not opened in time')));
      socket.once('connect', () => {
        socket.setTimeout(0);
        this.#idle.push(connection);
        resolve();
      });
      socket.on('data', (chunk: Buffer) => this.#read(connection, chunk));
      socket.on('error', reject); // an error after the connect is followed by `close`
      socket.once('close', () => {
        this.#sockets.delete(socket);
        this.#removeIdle(connection);
        if (connection.place !== -1) this.#open--;
        if (this.#ended || this.#sent >= this.#options.total) return;
        this.#connect().catch(() => undefined); // the other connections continue
      });
    });
  }

  #read(connection: Connection, chunk: Buffer): void {
    for (const { status, closes } of connection.answers.read(chunk)) {
      const { place } = connection;
      if (place === -1) {
        // A 408 to a connection that was idle for too long is not the answer to a request.
        this.#removeIdle(connection);
        connection.socket.destroy();
        return;
      }
      this.#answered++;
      this.#open--;
      connection.place = -1;
      if (closes) connection.socket.destroy();
      else this.#idle.push(connection);
      this.#options.onAnswer?.(place, status);
    }
  }

  #removeIdle(connection: Connection): void {
    const idle = this.#idle.indexOf(connection);
    if (idle !== -1) this.#idle.splice(idle, 1);
  }
}

/** A complete answer. */
export interface ParsedAnswer {
  readonly status: number;
  /** True if the server closes the connection after this answer. */
  readonly closes: boolean;
  readonly body: Buffer;
}

const HEADERS_END = Buffer.from('\r\n\r\n');

/**
 * Reads answers from the bytes of one connection. Understands only what our servers send: a status line, and
 * Content-Length if there is a body.
 */
export class AnswerReader {
  #pending: Buffer | null = null;

  /** @returns the answers that are now complete, in order. @throws Error for an answer without Content-Length */
  read(chunk: Buffer): ParsedAnswer[] {
    let bytes = this.#pending === null ? chunk : Buffer.concat([this.#pending, chunk]);
    const answers: ParsedAnswer[] = [];
    for (;;) {
      const headersEnd = bytes.indexOf(HEADERS_END);
      if (headersEnd === -1) break;
      const headers = bytes.toString('latin1', 0, headersEnd);
      const end = headersEnd + HEADERS_END.length + contentLength(headers);
      if (bytes.length < end) break;
      answers.push({
        status: Number(headers.slice(9, 12)),
        closes: /\r\nconnection: close/i.test(headers),
        body: bytes.subarray(headersEnd + HEADERS_END.length, end),
      });
      bytes = bytes.subarray(end);
    }
    this.#pending = bytes.length === 0 ? null : bytes;
    return answers;
  }
}

function contentLength(headers: string): number {
  if (/^HTTP\/1\.1 (?:204|304) /.test(headers)) return 0;
  const length = /\r\ncontent-length: (\d+)/i.exec(headers)?.[1];
  if (length === undefined) throw new Error(`an answer without Content-Length: ${headers.slice(0, 200)}`);
  return Number(length);
}
