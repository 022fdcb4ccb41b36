import express, { type Express } from 'express';
import { createFastLane } from './fast-lane.js';
import { type Lifecycle, Replies } from './respond.js';
import { mountAdminSales } from './routes/admin-sales.js';
import { mountReshard } from './routes/reshard.js';
import { mountAudit } from './routes/audit.js';
import { mountDeadLetters } from './routes/dead-letters.js';
import { createErrorHandler } from './routes/errors.js';
import { mountOrderMoves } from './routes/order-moves.js';
import { mountOrders } from './routes/orders.js';
import { mountPaymentWebhook } from './routes/payment-webhook.js';
import { mountProbes } from './routes/probes.js';
import { mountPurchaseEvents } from './routes/purchase-events.js';
import { mountPurchaseToken } from './routes/purchase-token.js';
import { mountPurchases } from './routes/purchases.js';
import { mountQueue } from './routes/queue.js';
import { mountReconcile } from './routes/reconcile.js';
import { mountRefunds } from './routes/refunds.js';
import { Router } from './routes/router.js';
import { mountRules } from './routes/rules.js';
import { mountSales } from './routes/sales.js';
import { mountSwitches } from './routes/switches.js';
import { mountTraces } from './routes/traces.js';
import type { HttpServices } from './services.js';

/** Everything on Express, the purchase endpoint included: the same handler that the server calls before Express. */
export function createApp(services: HttpServices, lifecycle: Lifecycle): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag');
  app.enable('strict routing').enable('case sensitive routing');
  app.set('query parser', 'simple');

  const serveFast = createFastLane(services, lifecycle);
  app.use((req, res, next) => {
    if (!serveFast(req, res)) next();
  });

  const router = new Router(app, services, lifecycle);
  mountPurchases(router, services, lifecycle);
  mountPurchaseEvents(router, services, lifecycle);
  mountPurchaseToken(router, services);
  mountQueue(router, services);
  mountSales(router, services);
  mountOrders(router, services);
  mountOrderMoves(router, services);
  mountPaymentWebhook(router, services);
  mountAdminSales(router, services);
  mountReshard(router, services);
  mountDeadLetters(router, services);
  mountReconcile(router, services);
  mountRefunds(router, services);
  mountRules(router, services);
  mountSwitches(router, services);
  mountAudit(router, services);
  mountTraces(router, services);
  mountProbes(router, services, lifecycle);

  const other = new Replies('other', { metrics: services.metrics, lifecycle });
  app.use((req, res) => other.problem(req, res, 'route_not_found'));
  app.use(createErrorHandler(services, other));
  return app;
}
