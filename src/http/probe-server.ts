import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PROBLEMS } from '../contract/problem.js';
import { noteExchange } from './client-error.js';
import { METRICS_TYPE, type MetricsPage } from './metrics-page.js';
import { createHostCheck } from './own-host.js';
import { NOSNIFF } from './problem.js';
import type { ReadyReport } from './services.js';

export interface ProbeServices {
  readonly ready: () => Promise<ReadyReport>;
  readonly metricsPage: MetricsPage;
}

export interface ProbeAddress {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
}

export interface ProbeServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Monitoring needs only a few connections, and sends small requests without delay. */
const CONNECTIONS_MAX = 100;
const REQUEST_TIMEOUT_MS = 5000;

/** Serves `/healthz`, `/readyz` and `/metrics` for programs that have no API. */
export async function startProbeServer(services: ProbeServices, { host, port }: ProbeAddress): Promise<ProbeServer> {
  const times = { headersTimeout: REQUEST_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS };
  const isOurs = createHostCheck(host);
  const server = createServer(times, (request, response) => {
    if (!noteExchange(request, response)) return;
    const answered = isOurs(request.headers.host)
      ? answer(request.url ?? '/', request.headers.authorization, services)
      : Promise.resolve(MISDIRECTED);
    void answered.then(({ status, type, body }) => {
      const headers = ['Content-Type', type, ...NOSNIFF, 'Content-Length', String(Buffer.byteLength(body))];
      response.writeHead(status, status === 401 ? [...headers, 'WWW-Authenticate', 'Bearer'] : headers);
      response.end(body);
    });
  });
  server.maxConnections = CONNECTIONS_MAX;
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

const json = (status: number, value: unknown): ProbeAnswer => ({
  status,
  type: 'application/json',
  body: JSON.stringify(value),
});
const MISDIRECTED = json(PROBLEMS.misdirected.status, { detail: PROBLEMS.misdirected.detail });

async function answer(
  url: string,
  authorization: string | undefined,
  { ready, metricsPage }: ProbeServices,
): Promise<ProbeAnswer> {
  const path = url.split('?')[0] ?? '';
  try {
    switch (path) {
      case '/healthz':
        return json(200, { status: 'alive' });
      case '/readyz': {
        const report = await ready();
        return json(report.ready ? 200 : 503, report);
      }
      case '/metrics':
        if (!metricsPage.isFor(authorization)) return json(401, { detail: 'Send METRICS_TOKEN as the bearer token.' });
        return { status: 200, type: METRICS_TYPE, body: await metricsPage.read() };
      default:
        return json(404, { detail: 'This port serves only /healthz, /readyz and /metrics.' });
    }
  } catch {
    return json(500, { detail: 'The probe failed.' });
  }
}
