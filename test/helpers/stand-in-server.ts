import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The answer of a stand-in to one request. Null: it never answers and keeps the connection open. */
export type StandInAnswer = {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Record<string, string>;
} | null;

export interface StandInRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

/** A server of a third party, on the loopback address. */
export class StandInServer {
  readonly #server: Server;

  constructor(answer: (request: StandInRequest) => StandInAnswer | 'reset', lateMs: () => number = () => 0) {
    this.#server = createServer((req, res) => {
      let text = '';
      req.on('data', (chunk: Buffer) => (text += chunk));
      req.on('end', () => {
        const { pathname: path, searchParams: query } = new URL(req.url ?? '/', 'http://x');
        const reply = answer({ method: req.method ?? '', path, query, headers: req.headers, text });
        if (reply === null) return;
        setTimeout(() => {
          if (reply === 'reset') return void req.socket.destroy();
          res.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers });
          res.end(JSON.stringify(reply.body));
        }, lateMs());
      });
    });
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
