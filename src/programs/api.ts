import type { Config, PROGRAM_SECTIONS } from '../core/config/schema.js';
import { newLifecycle } from '../http/answer.js';
import { Cors } from '../http/cors.js';
import { Pages, type Shop } from '../http/pages.js';
import { createBuyersServer, createOperatorsServer } from '../http/server.js';
import type { HttpServices } from '../http/services.js';
import type { Log } from '../core/ports/log.js';
import { openPayments } from '../payment/open-payments.js';
import { openServices } from './api-services.js';
import { openIdentity } from './identity.js';
import type { Running } from './run-program.js';
import { systemClock as clock } from '../process/system-clock.js';

export type ApiConfig = Config<(typeof PROGRAM_SECTIONS)['api'][number]>;

/** A browser with the console opens up to six connections. Each of up to 100 consoles also holds a stream. */
const OPERATORS_CONNECTIONS_MAX = 400;
/** How long the requests of operators may take to finish after the buyers have been answered. */
const OPERATORS_DRAIN_MS = 1000;

/** @throws OperationalError if a dependency does not answer; ConfigError if the payment provider refuses our key */
export async function startApi(config: ApiConfig, log: Log, fail: (error: unknown) => void): Promise<Running> {
  const shop = { ...config.shop, origins: config.shop.origins.split(',').filter((origin) => origin !== '') };
  const api = await openServices(config, {
    log,
    fail,
    openIdentity: (parts) => openIdentity(config, parts),
    openPayments: () => openPayments(config.payment, { clock, log }),
    cors: shop.origins.length > 0 ? new Cors(shop.origins) : null,
    pages: await loadPages(shop, log),
  });
  const lifecycle = newLifecycle();
  const operators = createOperatorsServer(api, lifecycle, {
    ...config.http,
    ...config.operators,
    maxConnections: OPERATORS_CONNECTIONS_MAX,
  });
  const buyers = createBuyersServer(api, lifecycle, config.http);
  const { port: operatorsPort } = await operators.listen(); // first, so that no buyer is connected if it fails
  const { port } = await buyers.listen();

  return {
    ready: `api listens on http://${config.http.host}:${port}, for operators on http://${config.operators.host}:${operatorsPort}`,
    facts: { port, operatorsPort },
    async stop(): Promise<void> {
      await buyers.drain(config.http.drainMs);
      await operators.drain(Math.min(OPERATORS_DRAIN_MS, config.http.drainMs));
      await api.close();
    },
  };
}

async function loadPages(shop: Shop, log: Log): Promise<HttpServices['pages']> {
  const [buyers, operators] = await Promise.all([Pages.load('buyers', shop), Pages.load('operators')]);
  if (!buyers.areBuilt || !operators.areBuilt)
    log.warn({}, 'the pages are not built, so this api serves none; run npm run build:web');
  return { buyers, operators };
}
