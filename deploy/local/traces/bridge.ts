import { createServer, type IncomingMessage, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { spansIn } from './otlp.js';
import { zipkinSpanOf } from './zipkin.js';

/** A program sends some hundred spans at once. */
const BODY_BYTES_MAX = 8 * 1024 ** 2;
const ZIPKIN_TIMEOUT_MS = 5_000;

export interface Bridge {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Receives spans as OTLP over HTTP in JSON on the loopback address, and forwards them to Zipkin, which does not
 * support OTLP.
 * @param port 0 picks a free port
 * @param zipkinUrl such as `http://127.0.0.1:9411`
 */
export async function startBridge(port: number, zipkinUrl: string): Promise<Bridge> {
  const traceUrl = (traceId: string): string => `${zipkinUrl}/zipkin/traces/${traceId}`;
  const server: Server = createServer((req, res) => {
    const answer = (status: number, body: object): void => {
      res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
    };
    if (req.method !== 'POST' || req.url !== '/v1/traces') return answer(404, { message: 'only POST /v1/traces' });
    if (!req.headers['content-type']?.startsWith('application/json')) return answer(415, { message: 'only JSON' });
    readBody(req)
      .then((body) => send(zipkinUrl, JSON.stringify(spansIn(body).map((span) => zipkinSpanOf(span, traceUrl)))))
      .then(
        () => answer(200, {}),
        (error: unknown) => answer(error instanceof SyntaxError ? 400 : 503, { message: String(error) }),
      );
  });
  server.listen({ port, host: '127.0.0.1' });
  await once(server, 'listening'); // rejects with the error of the socket
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function readBody(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw new SyntaxError(`more than ${BODY_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

async function send(zipkinUrl: string, body: string): Promise<void> {
  const response = await fetch(`${zipkinUrl}/api/v2/spans`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body,
    signal: AbortSignal.timeout(ZIPKIN_TIMEOUT_MS),
  });
  if (!response.ok) throw new Error(`Zipkin answered ${response.status}: ${(await response.text()).slice(0, 200)}`);
}
