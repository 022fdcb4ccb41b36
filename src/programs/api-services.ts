import type { Registry } from 'prom-client';
import type { Config, PROGRAM_SECTIONS } from '../core/config/schema.js';
import type { SignedMessages } from '../core/message-signatures.js';
import { recent } from '../core/recent.js';
import { AccessLog, openLineSink } from '../http/access-log.js';
import type { Cors } from '../http/cors.js';
import { createHttpMetrics, type HttpMetrics } from '../http/metrics.js';
import { MetricsPage } from '../http/metrics-page.js';
import type { Pages } from '../http/pages.js';
import { rememberAnswers, SaleAnswers } from '../http/sale-answers.js';
import { PAYMENT_SIGNATURE, readPaymentEvent } from '../http/routes/payment-webhook.js';
import { apiOf, type Api } from '../http/route.js';
import { newOperatorPlaces, type HttpServices } from '../http/services.js';
import { createWebhookVerifier } from '../http/webhook-signature.js';
import { createDeadLetterParking } from '../mysql/dead-letters.js';
import { createAuditLog } from '../mysql/audit-log.js';
import { createStoredNotifications } from '../mysql/notifications.js';
import { createOrderRepository } from '../mysql/order-repository.js';
import { createOrderSearch } from '../mysql/order-search.js';
import { createOrderTransitions } from '../mysql/order-transitions.js';
import { createPaymentAttempts } from '../mysql/payment-attempts.js';
import { createPaymentCases } from '../mysql/payment-cases.js';
import { createOrderRefunds } from '../mysql/order-refunds.js';
import { createRefundRepository } from '../mysql/refund-repository.js';
import { createSaleRepository } from '../mysql/sale-repository.js';
import { createWitnessStore } from '../mysql/witness-store.js';
import { cancelOrder, getOrder, payOrder } from '../orders/buyer-orders.js';
import { createChargeMetrics } from '../orders/metrics.js';
import { resolveOrder } from '../orders/resolve-payments.js';
import type { Log } from '../core/ports/log.js';
import type { Payments, PaymentWebhook } from '../core/ports/payment-provider.js';
import type { OwnReport } from '../core/ports/program-reports.js';
import { ClosedRows } from '../purchase/closed-rows.js';
import { PurchaseGate } from '../purchase/gate.js';
import { FollowPurchase } from '../purchase/follow-purchase.js';
import { GetPurchase } from '../purchase/get-purchase.js';
import { createStatusMetrics } from '../purchase/metrics.js';
import { createAnswerHistory } from '../redis/answer-history.js';
import { createProgramReports } from '../redis/program-reports.js';
import { openPurchaseNotifications } from '../redis/purchase-notifications.js';
import { brokerAccessOf } from '../rocketmq/credentials.js';
import { createSaleSnapshotCache, createSaleStore } from '../redis/sale-store.js';
import { GetSale } from '../sales/get-sale.js';
import { SaleAdmin } from '../sales/sale-admin.js';
import { openAdmission } from './admission.js';
import { allOrNothing, type Opened } from '../process/all-or-nothing.js';
import type { Identity, IdentityParts } from './identity.js';
import { openCoupons } from '../operate/coupons/index.js';
import { priceFaultOf } from '../payment/price-fault.js';
import { openBroker } from '../operate/broker/index.js';
import { openDeadLetters } from '../operate/dead-letters/index.js';
import { openLive } from '../operate/live/index.js';
import { openSaleServices, priceTermsOf } from '../operate/sales/index.js';
import { openReconcile, openResolve } from '../operate/reconcile/index.js';
import { openTrace } from '../operate/trace/index.js';
import { openOrders } from '../operate/orders/index.js';
import { openRefunds } from '../operate/refunds/index.js';
import { openRules } from '../operate/rules/index.js';
import { openWebhooks } from '../operate/webhooks/index.js';
import { Connections } from '../process/connections.js';
import { ROUTES } from './routes.js';
import { Profiler } from './profiler.js';
import { openPurchasePath } from './purchase-path.js';
import { reportProgram } from './report-program.js';
import { createReadiness, openStores, serversOf } from '../process/servers.js';
import { systemClock as clock } from '../process/system-clock.js';
import { createRegistry } from '../process/telemetry.js';

/** The caller supplies authentication and pages. */
type ServicesConfig = Config<Exclude<(typeof PROGRAM_SECTIONS)['api'][number], 'auth' | 'shop' | 'log'>>;

interface ServicesParts {
  readonly log: Log;
  /** Receives an error that is a bug. */
  readonly fail: (error: unknown) => void;
  readonly openIdentity: (parts: IdentityParts) => Promise<Identity>;
  /** Called before anything is opened. Returns null if orders cannot be paid here. */
  readonly openPayments: () => Promise<Payments | null>;
  readonly cors: Cors | null;
  readonly pages: Readonly<Record<'buyers' | 'operators', Pages>>;
}

export interface OpenServices extends Api {
  /** The registry and the message signatures, for other programs in this process. */
  readonly registry: Registry;
  readonly messages: SignedMessages;
  /** Call it after the listeners have drained. Never rejects. */
  close(): Promise<void>;
}

const SALES_IN_MEMORY = 1000;
const SALE_VIEW_MS = 1000;
/** Maximum number of event streams of one buyer at one api. Enough for several tabs on several devices. */
const STREAMS_PER_BUYER_MAX = 10;
/** A household or an office may share an address. HTTP_UNLIMITED_NETWORKS are exempt. */
const STREAMS_PER_ADDRESS_MAX = 200;
/** How old the short answer of /readyz may be. Load balancers ask once a second or less. */
const READY_KEPT_MS = 1000;

/** @throws OperationalError if a dependency does not answer at the start, and what `openPayments` throws */
export const openServices = (config: ServicesConfig, parts: ServicesParts): Promise<OpenServices> =>
  allOrNothing((opened) => open(config, parts, opened));

async function open(config: ServicesConfig, parts: ServicesParts, opened: Opened): Promise<OpenServices> {
  const { log, fail, cors, pages } = parts;
  log.info({ servers: serversOf(config) }, 'starting with these servers');
  const payments = await parts.openPayments();
  const registry = createRegistry('api');
  const stores = await openStores(config, 'api', { registry, log, opened });
  const { tracing, redis, mysql } = stores;

  const common = { redis, registry, log, fail };
  const isSoldOut = (saleId: string): boolean => path.isSoldOut(saleId);
  const admission = await openAdmission(config, { ...common, mysql, isSoldOut });
  opened(() => admission.close());
  const { withBreakers } = admission;
  const identity = await parts.openIdentity({ mysql, registry, log, fail });
  opened(() => identity.close());
  const sales = withBreakers.sales(createSaleRepository(mysql));
  const orders = withBreakers.orders(createOrderRepository(mysql));
  const transitions = withBreakers.transitions(createOrderTransitions(mysql, { clock, log }));
  const cache = createSaleSnapshotCache(redis);
  // Buyers who wait by long poll or stream, and the sold-out flags, share a subscription.
  const notifications = openPurchaseNotifications(config.redis, log);
  opened(() => notifications.close());
  const deadLetters = createDeadLetterParking(mysql);
  const path = await openPurchasePath(config, {
    ...common,
    sales,
    deadLetters,
    cache,
    withBreakers,
    notifications,
    tracing,
  });
  opened(() => path.close());
  const { store, snapshots, units } = path;
  const provider = payments?.provider ?? null;

  const { pollMaxMs, streamsMax, ...streamTimes } = config.notifications;
  const waiting = {
    snapshots,
    store,
    repository: orders,
    closedRows: new ClosedRows(orders, clock),
    notifications,
    clock,
    random: Math.random,
    metrics: createStatusMetrics(registry, () => followPurchase.following),
  };
  const followPurchase: FollowPurchase = new FollowPurchase(waiting, {
    pollMaxMs,
    followersMax: streamsMax,
    followersPerBuyerMax: STREAMS_PER_BUYER_MAX,
    followersPerAddressMax: STREAMS_PER_ADDRESS_MAX,
  });

  const connections = new Connections(config, log, { redis, mysql });
  opened(() => connections.close());
  const refunds = createRefundRepository(mysql);
  const attempts = createPaymentAttempts(mysql, { clock });
  const couponServices = openCoupons(connections);
  const prices = priceTermsOf(config);
  const { coupons } = couponServices;
  const charging = {
    faultOf: priceFaultOf(config.payment, provider),
    declineBound: admission.declineBound,
    charged: createChargeMetrics(registry),
  };
  const paying = { repository: orders, transitions, attempts, refunds, provider, clock, log, coupons, ...charging };
  const httpMetrics = createHttpMetrics(registry);
  const accessLog = await openAccessLog(config.accessLog, httpMetrics);
  const needed = {
    redis,
    endpoint: config.rocketmq.endpoint,
    tls: brokerAccessOf(config.brokerAccess).tls,
    health: path.health,
    rules: admission.rulesReadiness,
    issuers: identity.issuers,
  };
  const ready = createReadiness({ ...needed, mysql });
  // MySQL is left out: orders wait in the broker, and all apis would stop at the same time (decision 35).
  const sells = createReadiness(needed);
  const saleAnswers = new SaleAnswers(registry, (saleId) => snapshots.peek(saleId) !== undefined, clock.monotonicMs);
  const stop = new AbortController();
  const reports = createProgramReports(redis, clock);
  const history = createAnswerHistory(redis, config.operators.consoleHistoryMs);
  let ownReport: OwnReport | null = null;
  const onReport = (own: OwnReport): void => void (ownReport = own);
  const waitingBuyers = () => admission.services.rooms.waitingBySale;
  const loops = [
    reportProgram({ kind: 'api', reports, registry, ready, waiting: waitingBuyers, onReport, clock, log }, stop.signal),
    rememberAnswers(saleAnswers, { history, clock, log }, stop.signal),
  ];
  const { brokerViews, traceBroker } = openBroker(config);

  const api = apiOf(ROUTES, {
    cell: config.mysql.cell,
    auth: identity.auth,
    revocations: identity.revocations,
    ...admission.services,
    unpaidPause: admission.unpaidPause(orders),
    snapshots,
    gate: new PurchaseGate({ ...path, clock, closedRows: waiting.closedRows, smooth: admission.smooth }),
    getPurchase: new GetPurchase(waiting, pollMaxMs),
    followPurchase,
    streamTimes,
    getSale: new GetSale({ snapshots, store, units, clock }, { ttlMs: SALE_VIEW_MS, max: SALES_IN_MEMORY }),
    findOrder: (orderId) => orders.findOrder(orderId),
    getOrder: (orderId, userId) => getOrder(orderId, userId, orders),
    payOrder: (request) => payOrder(request, paying),
    cancelOrder: (orderId, userId) =>
      cancelOrder(orderId, userId, { repository: orders, transitions, limit: admission.cancelLimit }),
    orderSearch: createOrderSearch(mysql),
    notifications: createStoredNotifications(mysql),
    refundsOf: (orderId) => refunds.refundsOf(orderId),
    webhook: webhookOf(config.payment, payments?.webhook ?? null, {
      pay: (orderId, payment) => transitions.pay(orderId, payment),
      resolve: async (orderId) => (provider === null ? undefined : resolveOrder(orderId, { ...paying, provider })),
      isRefund: (paymentId) => refunds.has(paymentId),
      cases: createPaymentCases(mysql),
      money: createOrderRefunds(mysql, { clock }),
    }),
    sales: new SaleAdmin({ repository: sales, store: createSaleStore(redis), cache }),
    prices,
    ...(await openSaleServices(connections)),
    ...(await openLive(connections, () => ownReport)),
    breakers: admission.breakers,
    operatorPlaces: newOperatorPlaces(),
    mq: brokerViews,
    ...(await openDeadLetters(connections)),
    ...(await openReconcile(connections)),
    ...(await openResolve(connections)),
    ...openOrders(connections),
    ...openRefunds(connections),
    witness: createWitnessStore(mysql),
    ...couponServices,
    ...openWebhooks(connections),
    ...(await openRules(connections, admission.unfit)),
    audit: createAuditLog(mysql),
    profiler: new Profiler(),
    ...(await openTrace(connections, traceBroker)),
    ready,
    isReady: recent(async () => (await sells()).ready, READY_KEPT_MS, clock),
    cors,
    pages,
    metricsPage: new MetricsPage(() => registry.metrics(), config.metrics, clock),
    metrics: httpMetrics,
    saleAnswers,
    tracing,
    traceIdsStored: config.traceIds.stored,
    accessLog,
    log,
    onBug: fail,
  });
  return {
    ...api,
    registry,
    messages: path.messages,
    async close(): Promise<void> {
      stop.abort();
      await Promise.all(loops);
      await accessLog?.close();
      await Promise.all([connections, notifications, path, admission, identity].map((part) => part.close()));
      await stores.close();
    },
  };
}

/** @throws Error if the file of the log cannot be opened */
async function openAccessLog(
  { file, ...options }: ServicesConfig['accessLog'],
  metrics: HttpMetrics,
): Promise<AccessLog | null> {
  if (options.kind === 'off') return null;
  return new AccessLog(options, await openLineSink(file), clock, (lines) => metrics.notLogged(lines));
}

/** Returns the webhook of the payment provider. Null if there is no secret for its signatures. */
function webhookOf(
  { webhookSecret, webhookSecretBefore, webhookMode }: ServicesConfig['payment'],
  format: PaymentWebhook | null,
  moves: Pick<NonNullable<HttpServices['webhook']>, 'pay' | 'resolve' | 'isRefund' | 'cases' | 'money'>,
): HttpServices['webhook'] {
  if (webhookSecret === '') return null;
  const secrets = [webhookSecret, webhookSecretBefore].filter((secret) => secret !== '');
  const verifier = createWebhookVerifier(secrets, () => clock.nowMs());
  return {
    verifier,
    mode: webhookMode,
    ...(format ?? { header: PAYMENT_SIGNATURE, read: readPaymentEvent }),
    ...moves,
  };
}
