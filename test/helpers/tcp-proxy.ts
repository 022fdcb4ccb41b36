import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** A port that leads to a server, and can stop doing so the way networks do. */
export class TcpProxy {
  /** `host:port` to connect to. */
  readonly address: string;
  /** Bytes passed in both directions, so that a test can prove that its traffic came this way. */
  bytes = 0;
  /** Connections accepted so far. */
  connections = 0;
  /** While true, requests arrive at the server and its replies do not come back. */
  dropReplies = false;
  /** Bytes of replies that were dropped. */
  droppedBytes = 0;
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();

  private constructor(server: Server, target: { host: string; port: number }) {
    this.#server = server;
    this.address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('connection', (near) => this.#join(near, connect(target)));
  }

  /** @param target `host:port` of the real server */
  static async open(target: string): Promise<TcpProxy> {
    const [host = '', port] = target.split(':');
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new TcpProxy(server, { host, port: Number(port) });
  }

  /** Half-open: the connections that exist stay open and nothing passes any more. New ones are served. */
  freeze(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.removeAllListeners('data').pause();
  }

  /** Resets every connection that exists. */
  reset(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.resetAndDestroy();
  }

  async close(): Promise<void> {
    // No reset here: of a socket that is shutting down already, Node would never free the handle.
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(near: Socket, far: Socket): void {
    const pair = [near, far] as const;
    this.connections += 1;
    this.#pairs.add(pair);
    for (const [from, to] of [pair, [far, near] as const]) {
      from.on('data', (chunk) => {
        if (from === far && this.dropReplies) {
          this.droppedBytes += chunk.length;
          return;
        }
        this.bytes += chunk.length;
        to.write(chunk);
      });
      from.on('error', () => undefined); // the other side hears of it by the close
      from.on('close', () => {
        to.destroy();
        this.#pairs.delete(pair);
      });
    }
  }
}
