import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ReadyReport } from './services.js';

export interface ProbeServices {
  readonly ready: () => Promise<ReadyReport>;
  /** Prometheus text format. */
  readonly metrics: () => Promise<string>;
}

export interface ProbeAddress {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
}

export interface ProbeServer {
  readonly port: number;
  close(): Promise<void>;
}

/** `/healthz`, `/readyz` and `/metrics` for programs without an API of their own. */
export async function startProbeServer(services: ProbeServices, { host, port }: ProbeAddress): Promise<ProbeServer> {
  const server = createServer((request, response) => {
    void answer(request.url ?? '/', services).then(({ status, type, body }) => {
      response.writeHead(status, {
        'Content-Type': type,
        'X-Content-Type-Options': 'nosniff',
        'Content-Length': Buffer.byteLength(body),
      });
      response.end(body);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface ProbeAnswer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

async function answer(url: string, services: ProbeServices): Promise<ProbeAnswer> {
  const json = (status: number, value: unknown): ProbeAnswer => ({
    status,
    type: 'application/json',
    body: JSON.stringify(value),
  });
  const path = url.split('?')[0] ?? '';
  try {
    switch (path) {
      case '/healthz':
        return json(200, { status: 'alive' });
      case '/readyz': {
        const report = await services.ready();
        return json(report.ready ? 200 : 503, report);
      }
      case '/metrics':
        return { status: 200, type: 'text/plain; version=0.0.4', body: await services.metrics() };
      default:
        return json(404, { detail: 'Here are /healthz, /readyz and /metrics.' });
    }
  } catch {
    return json(500, { detail: 'The probe failed.' });
  }
}
