import { OPENAPI } from '../openapi/document.js';
import type { Lifecycle } from '../respond.js';
import type { HttpServices, ReadyReport } from '../services.js';
import type { Router } from './router.js';

/** What machines ask: is it alive, may it get traffic, how is it doing, what does it serve. */
export function mountProbes(router: Router, services: HttpServices, lifecycle: Lifecycle): void {
  router.mount('probe', '/healthz', {
    get: ({ req, res, replies }) => replies.json(req, res, 200, 'alive', { status: 'alive' }),
  });

  router.mount('probe', '/readyz', {
    get: async ({ req, res, replies }) => {
      const report = lifecycle.draining ? DRAINING : await services.ready();
      replies.json(req, res, report.ready ? 200 : 503, report.ready ? 'ready' : 'not_ready', report);
    },
  });

  router.mount('probe', '/metrics', {
    get: async ({ req, res, replies }) => {
      const type = 'text/plain; version=0.0.4; charset=utf-8'; // the Prometheus text format
      replies.text(req, res, 200, 'served', await services.exposition(), type);
    },
  });

  const document = JSON.stringify(OPENAPI);
  router.mount('probe', '/openapi.json', {
    get: ({ req, res, replies }) => replies.text(req, res, 200, 'served', document, 'application/json'),
  });
}

const DRAINING: ReadyReport = {
  ready: false,
  dependencies: [{ name: 'api', ok: false, detail: 'this process is shutting down' }],
};
