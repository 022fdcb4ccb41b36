import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { spansIn, textsOf, type OtlpSpan } from '../../deploy/local/traces/otlp.js';

/** A span that a program has sent. */
export interface CollectedSpan extends OtlpSpan {
  readonly fields: Readonly<Record<string, string>>;
}

/** A stand-in for an OTLP collector. Receives spans over HTTP in JSON and keeps them. */
export class OtlpCollector {
  readonly spans: CollectedSpan[] = [];
  /** Headers of every request. */
  readonly headers: Readonly<Record<string, unknown>>[] = [];
  /** If set, answers requests with this status and keeps nothing; 0 does not answer. */
  refuses: number | null = null;
  readonly url: string;
  readonly #server;

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(): Promise<OtlpCollector> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const collector = new OtlpCollector(server);
    server.on('request', (req, res) => {
      collector.headers.push(req.headers);
      let body = '';
      req.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
      req.once('end', () => {
        if (collector.refuses === 0) return;
        if (collector.refuses !== null) return void res.writeHead(collector.refuses).end();
        if (req.url !== '/v1/traces') return void res.writeHead(404).end();
        collector.spans.push(...spansIn(body).map((span) => ({ ...span, fields: textsOf(span.attributes) })));
        res.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
      });
    });
    return collector;
  }

  ofTrace(traceId: string): CollectedSpan[] {
    return this.spans.filter((span) => span.traceId === traceId);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
