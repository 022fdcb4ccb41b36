import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { StackEnv } from '../../../deploy/local/stack/settings.js';

/** The two sockets of one connection. */
interface Pair {
  readonly client: Socket;
  readonly server: Socket;
}

/** Sees a chunk before it passes. @returns false: it is lost */
export type Intercept = (what: 'requests' | 'replies', chunk: Buffer) => boolean;

/** A port that leads to a server, and can fail in the ways networks do. */
export class TcpProxy {
  /** `host:port` to connect to. */
  readonly address: string;
  /** Bytes passed in both directions, so that a test can prove that its traffic came this way. */
  bytes = 0;
  /** Connections accepted so far. */
  connections = 0;
  /** While true, requests reach the server but its replies do not come back. */
  dropReplies = false;
  /** Bytes of dropped replies. */
  droppedBytes = 0;
  /** How long requests, and replies, are delayed, in ms. Their order is kept. */
  requestDelayMs = 0;
  replyDelayMs = 0;
  /** Bytes that arrived late because of a delay. */
  delayedBytes = 0;
  /** Sees each chunk of a request first. The connection waits for the returned promise. */
  onRequest: ((chunk: Buffer) => void | Promise<void>) | null = null;
  /** Sees, and may lose, each chunk of either direction. Null: all chunks pass. */
  intercept: Intercept | null = null;
  /** Where new connections lead. */
  target: { readonly host: string; readonly port: number };
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #stalled = false;

  private constructor(server: Server, target: { host: string; port: number }) {
    this.#server = server;
    this.target = target;
    this.address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('connection', (client: Socket) => this.#join(client, connect(this.target)));
  }

  /** @param target `host:port` of the real server */
  static async open(target: string): Promise<TcpProxy> {
    const [host = '', port] = target.split(':');
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new TcpProxy(server, { host, port: Number(port) });
  }

  /** Connections that are open now. */
  get open(): number {
    return this.#pairs.size;
  }

  /** Half-open: existing connections stay open but nothing passes any more. New connections are served. */
  freeze(): void {
    for (const { client, server } of this.#pairs)
      for (const socket of [client, server]) socket.removeAllListeners('data').pause();
  }

  /** Half-open for all: connections are accepted and stay open, but nothing passes until `resume`. */
  stall(): void {
    this.#stalled = true;
    for (const { client, server } of this.#pairs) for (const socket of [client, server]) socket.pause();
  }

  /** Ends `stall`: delivers everything that was held back. */
  resume(): void {
    this.#stalled = false;
    for (const { client, server } of this.#pairs) for (const socket of [client, server]) socket.resume();
  }

  /** Resets every existing connection. */
  reset(): void {
    for (const { client, server } of this.#pairs) for (const socket of [client, server]) socket.resetAndDestroy();
  }

  async close(): Promise<void> {
    // No reset here: if a socket is already shutting down, Node would never free its handle.
    for (const { client, server } of this.#pairs) for (const socket of [client, server]) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(client: Socket, server: Socket): void {
    const pair = { client, server };
    this.connections += 1;
    this.#pairs.add(pair);
    this.#carry(client, server, 'requests');
    this.#carry(server, client, 'replies');
    for (const socket of [client, server]) {
      if (this.#stalled) socket.pause();
      socket.on('error', () => undefined); // `close` follows
      socket.on('close', () => {
        client.destroy();
        server.destroy();
        this.#pairs.delete(pair);
      });
    }
  }

  #carry(from: Socket, to: Socket, what: 'requests' | 'replies'): void {
    let dueMs = 0; // the chunk before, which no chunk overtakes
    const late: Buffer[] = []; // each timer passes the oldest chunk, because two timers may fire in any order
    let turn: Promise<void> | null = null; // set from the first hook on, so that no request overtakes a waiting request
    from.on('data', (chunk) => {
      if (this.intercept?.(what, chunk) === false) {
        if (what === 'replies') this.droppedBytes += chunk.length;
        return;
      }
      if (what === 'requests' && (this.onRequest !== null || turn !== null)) {
        turn = (turn ?? Promise.resolve()).then(() => this.onRequest?.(chunk)).then(() => this.#pass(to, chunk));
        turn.catch(() => from.destroy()); // a hook that throws breaks the connection
        return;
      }
      if (what === 'replies' && this.dropReplies) {
        this.droppedBytes += chunk.length;
        return;
      }
      const nowMs = performance.now();
      dueMs = Math.max(dueMs, nowMs + (what === 'replies' ? this.replyDelayMs : this.requestDelayMs));
      if (dueMs <= nowMs && late.length === 0) return this.#pass(to, chunk);
      this.delayedBytes += chunk.length;
      late.push(chunk);
      setTimeout(() => this.#pass(to, late.shift() as Buffer), dueMs - nowMs);
    });
  }

  #pass(to: Socket, chunk: Buffer): void {
    this.bytes += chunk.length;
    to.write(chunk);
  }
}

export type ProxiedName = 'redis' | 'mysql' | 'broker';

/** A server behind a proxy, and the environment that leads a program through it. */
export class ProxiedServer {
  readonly name: ProxiedName;
  readonly proxy: TcpProxy;
  readonly env: Readonly<Record<string, string>>;

  private constructor(name: ProxiedName, proxy: TcpProxy, stack: StackEnv) {
    this.name = name;
    this.proxy = proxy;
    this.env = envThrough(name, proxy.address, stack);
  }

  static async open(name: ProxiedName, stack: StackEnv): Promise<ProxiedServer> {
    return new ProxiedServer(name, await TcpProxy.open(targetOf(name, stack)), stack);
  }
}

function targetOf(name: ProxiedName, { REDIS_URL, MYSQL_URL, ROCKETMQ_ENDPOINT }: StackEnv): string {
  switch (name) {
    case 'redis':
      return new URL(REDIS_URL).host;
    case 'mysql':
      return new URL(MYSQL_URL).host;
    case 'broker':
      return ROCKETMQ_ENDPOINT;
  }
}

function envThrough(name: ProxiedName, address: string, stack: StackEnv): Record<string, string> {
  switch (name) {
    case 'redis':
      return { REDIS_URL: withHost(stack.REDIS_URL, address) };
    case 'mysql':
      return { MYSQL_URL: withHost(stack.MYSQL_URL, address) };
    case 'broker': // it returns its own address, which bypasses the proxy
      return { ROCKETMQ_ENDPOINT: address, ROCKETMQ_ROUTE: 'endpoint' };
  }
}

export function withHost(url: string, host: string): string {
  const parsed = new URL(url);
  parsed.host = host;
  return parsed.toString().replace(/\/$/, '');
}
