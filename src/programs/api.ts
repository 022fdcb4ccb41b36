import type { Registry } from 'prom-client';
import type { Config, PROGRAM_SECTIONS } from '../core/config/schema.js';
import { createAuthenticator, type Authenticator } from '../http/auth.js';
import { createHttpMetrics } from '../http/metrics.js';
import { createHttpServer } from '../http/server.js';
import type { HttpServices } from '../http/services.js';
import { createWebhookVerifier } from '../http/webhook-signature.js';
import { createAuditLog } from '../mysql/audit-log.js';
import { createOrderRepository } from '../mysql/order-repository.js';
import { createOrderTransitions } from '../mysql/order-transitions.js';
import { openMysqlPool, type MysqlPool } from '../mysql/pool.js';
import { createRefundRepository } from '../mysql/refund-repository.js';
import { createSaleRepository } from '../mysql/sale-repository.js';
import { createNotificationsMetrics, createRegistry } from './metrics.js';
import { cancelOrder } from '../orders/cancel.js';
import { getOrder } from '../orders/get-order.js';
import { payOrder } from '../orders/pay.js';
import type { Log } from '../core/ports/log.js';
import type { OrderRepository } from '../core/ports/order-repository.js';
import { PurchaseGate } from '../purchase/gate.js';
import { FollowPurchase } from '../purchase/follow-purchase.js';
import { GetPurchase } from '../purchase/get-purchase.js';
import type { WatchPorts } from '../purchase/purchase-watch.js';
import type { ReadPurchasePorts } from '../purchase/read-purchase.js';
import { openPurchaseNotifications } from '../redis/purchase-notifications.js';
import { createSaleSnapshotCache } from '../redis/sale-snapshot-cache.js';
import { createSaleStore } from '../redis/sale-store.js';
import { GetSale } from '../sales/get-sale.js';
import { SaleAdmin } from '../sales/sale-admin.js';
import { openAdmission } from './admission.js';
import { openGuard } from './admission-breakers.js';
import { openAdmissionRules } from './admission-rules.js';
import { apiFailPoints } from './fail-points.js';
import { openRedis } from './open-redis.js';
import { openOperatorServices } from './operator-services.js';
import { createReshard } from './repair.js';
import { paymentProviderOf } from './payment-provider.js';
import { openPurchasePath } from './purchase-path.js';
import { createReadiness } from './readiness.js';
import type { Running } from './run-program.js';
import { createTrace, type TraceParts } from './trace-session.js';
import { systemClock as clock } from './system-clock.js';
import type { WatchedPorts } from './watched-ports.js';

export type ApiConfig = Config<(typeof PROGRAM_SECTIONS)['api'][number]>;

/** Sale pages kept in memory. */
const SALES_IN_MEMORY = 1000;
const SALE_VIEW_MS = 1000;

/**
 * The api: HTTP, gate, batcher, and the producer that the broker asks about open half messages.
 * @throws OperationalError when a dependency does not answer at the start
 */
export async function startApi(config: ApiConfig, log: Log, fail: (error: unknown) => void): Promise<Running> {
  const registry = createRegistry('api');
  const points = apiFailPoints(config.failPoint, log);
  const redis = await openRedis(config.redis, log);
  const mysql = openMysqlPool(config.mysql);
  await mysql.probe();

  const common = { redis, registry, log, fail };
  const rules = await openAdmissionRules(config.entry, { ...common, mysql });
  const guard = await openGuard({ ...common, rules: () => rules.repository.rules });
  const { watched } = guard;
  const [sales, orders] = [watched.sales(createSaleRepository(mysql)), watched.orders(createOrderRepository(mysql))];
  const cache = createSaleSnapshotCache(redis, { ttlMs: config.gate.snapshotCacheMs });
  const path = await openPurchasePath(config, { ...common, sales, cache, watched, points });
  const { store, snapshots, units } = path;
  const entry = openAdmission(config.http, { ...common, rules, guard, isSoldOut: path.isSoldOut });
  const news = openPurchaseNotifications(config.redis, log);
  const admins = openOperatorServices({ redis, mysql, config, log });
  const server = createHttpServer(
    {
      ...{ auth: authenticatorOf(config.auth), ...entry.services, snapshots },
      gate: points.gate(new PurchaseGate({ ...path, smooth: entry.smooth })),
      ...waitingOf(config.news, { snapshots, store, repository: orders, news, clock, random: Math.random }, registry),
      getSale: new GetSale({ snapshots, store, units }, { ttlMs: SALE_VIEW_MS, max: SALES_IN_MEMORY }),
      getOrder: (orderId, userId) => getOrder(orderId, userId, orders),
      ...orderMovesOf(config.payment, { orders, watched, mysql, log }),
      sales: new SaleAdmin({ repository: sales, store: createSaleStore(redis), cache }),
      reshard: createReshard({ redis, mysql, log }, config, points),
      ...{
        deadLetters: admins.deadLetters,
        reconcile: admins.reconcile,
        ...inquiriesOf({ redis, mysql, log }, config.keeper),
      },
      ready: createReadiness({ redis, mysql, endpoint: config.rocketmq.endpoint, health: path.health }),
      ...{ exposition: () => registry.metrics(), metrics: createHttpMetrics(registry), log, onBug: fail },
    },
    config.http,
  );
  const { port } = await server.listen();

  return {
    ready: `api listens on http://${config.http.host}:${port}`,
    facts: { port },
    async stop(): Promise<void> {
      await server.drain(config.http.drainMs);
      await Promise.all([admins, news, path, entry].map((one) => one.close()));
      await redis.close();
      await mysql.close();
    },
  };
}

/** Buyers who wait for their purchase: by long poll or by stream, on the same news. */
function waitingOf(
  { lookMaxMs, streamsMax: followersMax, streamsPerBuyerMax: followersPerBuyerMax, ...streamTimes }: ApiConfig['news'],
  parts: ReadPurchasePorts & WatchPorts,
  registry: Registry,
): Pick<HttpServices, 'getPurchase' | 'followPurchase' | 'streamTimes'> {
  const metrics = createNotificationsMetrics(registry, () => followPurchase.following);
  const followPurchase = new FollowPurchase({ ...parts, metrics }, { lookMaxMs, followersMax, followersPerBuyerMax });
  return { getPurchase: new GetPurchase({ ...parts, metrics }, { lookMaxMs }), followPurchase, streamTimes };
}

interface OrderMovesParts {
  readonly orders: OrderRepository;
  readonly watched: WatchedPorts;
  readonly mysql: MysqlPool;
  readonly log: Log;
}

/** What buyers and the payment provider do with an order, and operators with what is owed back of it. */
function orderMovesOf(
  config: ApiConfig['payment'],
  { orders: repository, watched, mysql, log }: OrderMovesParts,
): Pick<HttpServices, 'payOrder' | 'cancelOrder' | 'refunds' | 'refundsOf' | 'webhook'> {
  const moves = watched.moves(createOrderTransitions(mysql, { clock, log }));
  const provider = paymentProviderOf(config, log);
  const refunds = createRefundRepository(mysql);
  const { webhookSecret } = config;
  return {
    payOrder: (request) => payOrder(request, { repository, moves, provider, log }),
    cancelOrder: (orderId, userId) => cancelOrder(orderId, userId, { repository, moves }),
    refunds,
    refundsOf: (orderId) => refunds.refundsOf(orderId),
    webhook:
      webhookSecret === ''
        ? null
        : {
            verifier: createWebhookVerifier(webhookSecret, { nowMs: () => clock.nowMs() }),
            tell: (orderId, payment) => moves.pay(orderId, payment),
          },
  };
}

/** What admins may look into. The api has no way to the admin port of the broker. */
function inquiriesOf(
  parts: Omit<TraceParts, 'broker'>,
  { redriveAfterMs }: ApiConfig['keeper'],
): Pick<HttpServices, 'audit' | 'trace'> {
  return { audit: createAuditLog(parts.mysql), trace: createTrace({ ...parts, broker: null }, redriveAfterMs) };
}

function authenticatorOf({ algorithm, key, cacheMax }: ApiConfig['auth']): Authenticator {
  const tokenKey = algorithm === 'HS256' ? { algorithm, secret: key } : { algorithm, publicKey: key };
  return createAuthenticator(tokenKey, { cacheMax });
}
