import type { Registry } from 'prom-client';
import type { Config, PROGRAM_SECTIONS } from '../config/schema.js';
import { OperationalError } from '../domain/errors.js';
import { createAuthenticator, type Authenticator } from '../http/auth.js';
import { createHttpServer } from '../http/server.js';
import type { HttpServices } from '../http/services.js';
import { createWebhookVerifier } from '../http/webhook-signature.js';
import { createAuditLog } from '../mysql/audit-log.js';
import { createOrderBook } from '../mysql/order-book.js';
import { createOrderMoves } from '../mysql/order-moves.js';
import { openMysqlPool, type MysqlPool } from '../mysql/pool.js';
import { createRefundBook } from '../mysql/refund-book.js';
import { createSaleBook } from '../mysql/sale-book.js';
import {
  createChannelMeters,
  createHttpMeters,
  createNewsMeters,
  createPurchaseMeters,
  createRegistry,
} from '../observability/metrics.js';
import { showHotSales } from '../observability/hot-sales-metrics.js';
import { cancelOrder } from '../order/cancel.js';
import { getOrder } from '../order/get-order.js';
import { payOrder } from '../order/pay.js';
import type { Log } from '../ports/log.js';
import type { OrderBook } from '../ports/order-book.js';
import { Batcher } from '../purchase/batcher.js';
import { createCheckBack } from '../purchase/check-back.js';
import { PurchaseGate } from '../purchase/gate.js';
import { FollowPurchase } from '../purchase/follow-purchase.js';
import { GetPurchase } from '../purchase/get-purchase.js';
import { placeAmongBuckets, type AmongBucketsPorts } from '../purchase/place-among-buckets.js';
import { placeBatch } from '../purchase/place-batch.js';
import type { WatchPorts } from '../purchase/purchase-watch.js';
import type { ReadPurchasePorts } from '../purchase/read-purchase.js';
import { SoldOutFlags } from '../purchase/sold-out-flags.js';
import { behindBarrier, openReplicaBarrier, type ReplicaBarrier } from '../redis/replica-barrier.js';
import { openPurchaseNews } from '../redis/purchase-news.js';
import { createSaleCardCache } from '../redis/sale-card-cache.js';
import { createSaleLedger } from '../redis/sale-ledger.js';
import { createStockLedger } from '../redis/stock-ledger.js';
import { createTransferLedger } from '../redis/transfer-ledger.js';
import { createPurchaseChannel } from '../rocketmq/purchase-channel.js';
import { GetSale } from '../sale/get-sale.js';
import { SaleCards } from '../sale/sale-cards.js';
import { HotSales } from '../sale/hot-sales.js';
import { SaleDesk } from '../sale/sale-desk.js';
import { openEntry } from './entry.js';
import { UnitFetcher } from '../stock/unit-fetcher.js';
import { apiFailPoints } from './fail-points.js';
import { openRedis } from './open-redis.js';
import { openOperatorDesks } from './operator-desks.js';
import { createScatter } from './repair.js';
import { paymentProviderOf } from './payment-provider.js';
import { createReadiness } from './readiness.js';
import type { Running } from './run-program.js';
import { createTrace, type TraceParts } from './trace-session.js';
import { brokerConnection } from './broker-connection.js';
import { steadyClock, systemClock as clock } from './system-clock.js';

export type ApiConfig = Config<(typeof PROGRAM_SECTIONS)['api'][number]>;

/** Sale cards and sale pages kept in memory. */
const SALES_IN_MEMORY = 1000;
const SALE_VIEW_MS = 1000;
/** How long one process may hold the right to load a sale card. */
const CARD_LOCK_MS = 3000;

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

  const ledger = points.ledger(createStockLedger(redis, log));
  const channel = await createPurchaseChannel({
    ...config.rocketmq,
    ...brokerConnection(config.rocketmq, log),
    checkBack: createCheckBack({ ledger: points.checked(ledger), log }),
    meters: createChannelMeters(registry),
  });

  const sales = createSaleBook(mysql);
  const orders = createOrderBook(mysql);
  const cache = createSaleCardCache(redis, { ttlMs: config.gate.cardCacheMs });
  const cards = new SaleCards(
    { book: sales, cache, clock: steadyClock },
    { memoryTtlMs: config.gate.cardMemoryMs, memoryMax: SALES_IN_MEMORY, lockMs: CARD_LOCK_MS },
  );
  const units = new UnitFetcher(points.transfers(createTransferLedger(redis)));
  const flags = new SoldOutFlags(
    { lifeMs: config.gate.soldOutLifeMs, keysMax: config.gate.soldOutKeysMax },
    { ledger, units, clock: steadyClock, log },
  );
  const barrier = await openBarrier(config.redis, log);
  const place = { ledger: behindBarrier(ledger, barrier), channel: points.channel(channel), units, clock };
  const batcher = createBatcher(config.batch, { place, flags, cards, registry, fail });

  const news = openPurchaseNews(config.redis, log);
  const desks = openOperatorDesks({ redis, mysql, config, log });
  const entry = await openEntry(config.http, { redis, mysql, registry, log, fail });
  const hot = hotSales(config.gate, registry);
  const server = createHttpServer(
    {
      ...{ auth: authenticatorOf(config.auth), ...entry.services },
      gate: points.gate(new PurchaseGate({ cards, flags, batcher, hot, smooth: entry.smooth })),
      ...waitingOf(config.news, { cards, ledger, book: orders, news, clock, random: Math.random }, registry),
      getSale: new GetSale({ cards, ledger, units }, { ttlMs: SALE_VIEW_MS, max: SALES_IN_MEMORY }),
      getOrder: (orderId, userId) => getOrder(orderId, userId, orders),
      ...orderMovesOf(config.payment, { orders, mysql, log }),
      desk: new SaleDesk({ book: sales, ledger: createSaleLedger(redis), cache }),
      scatter: createScatter({ redis, mysql, log }, config, points),
      ...{ letters: desks.letters, reconcile: desks.reconcile, ...inquiriesOf({ redis, mysql, log }, config.keeper) },
      ready: createReadiness({ redis, mysql, endpoint: config.rocketmq.endpoint, health: channel.health }),
      ...{ metrics: () => registry.metrics(), meters: createHttpMeters(registry), log, onBug: fail },
    },
    config.http,
  );
  const { port } = await server.listen();

  return {
    ready: `api listens on http://${config.http.host}:${port}`,
    facts: { port },
    async stop(): Promise<void> {
      await server.drain(config.http.drainMs);
      await Promise.all([desks, news, channel, barrier, entry].map((one) => one?.close()));
      await redis.close();
      await mysql.close();
    },
  };
}

/** Counts which sales are hot, and shows them. */
function hotSales({ hotSalePerSecond: perSecond }: ApiConfig['gate'], registry: Registry): HotSales {
  const hot = new HotSales({ perSecond }, steadyClock);
  showHotSales(registry, () => hot.hottest());
  return hot;
}

/** Null where no buyer waits for replicas. */
async function openBarrier(redis: ApiConfig['redis'], log: Log): Promise<ReplicaBarrier | null> {
  const { waitReplicas: replicas, waitReplicasMs: timeoutMs } = redis;
  return replicas === 0 ? null : openReplicaBarrier(redis, { replicas, timeoutMs }, log);
}

interface BatcherParts {
  readonly place: AmongBucketsPorts;
  readonly flags: SoldOutFlags;
  readonly cards: SaleCards;
  readonly registry: Registry;
  readonly fail: (error: unknown) => void;
}

/** The batcher, which shows every batch to the sold-out flags, and forgets a card that a batch has found to be old. */
function createBatcher(options: ApiConfig['batch'], { place, flags, cards, registry, fail }: BatcherParts): Batcher {
  const batcher: Batcher = new Batcher(options, {
    place: async (ref, purchases, trace, reply) => {
      const askedMs = steadyClock.nowMs();
      const placeIn = ref.buckets > 1 ? placeAmongBuckets : placeBatch;
      const placed = await placeIn(ref, purchases, trace, reply, place);
      flags.observe(ref, placed.unitsLeft, askedMs);
      if (placed.isScattered) await cards.forget(ref.saleId);
      return placed;
    },
    clock: steadyClock,
    meters: createPurchaseMeters(registry, () => batcher),
    onError: (error) => {
      if (error instanceof OperationalError) return 'unavailable';
      fail(error);
      return 'outcome_unknown';
    },
  });
  return batcher;
}

/** Buyers who wait for their purchase: by long poll or by stream, on the same news. */
function waitingOf(
  { lookMaxMs, streamsMax: followersMax, streamsPerBuyerMax: followersPerBuyerMax, ...streamTimes }: ApiConfig['news'],
  parts: ReadPurchasePorts & WatchPorts,
  registry: Registry,
): Pick<HttpServices, 'getPurchase' | 'followPurchase' | 'streamTimes'> {
  const meters = createNewsMeters(registry, () => followPurchase.following);
  const followPurchase = new FollowPurchase({ ...parts, meters }, { lookMaxMs, followersMax, followersPerBuyerMax });
  return { getPurchase: new GetPurchase({ ...parts, meters }, { lookMaxMs }), followPurchase, streamTimes };
}

interface OrderMovesParts {
  readonly orders: OrderBook;
  readonly mysql: MysqlPool;
  readonly log: Log;
}

/** What buyers and the payment provider do with an order, and operators with what is owed back of it. */
function orderMovesOf(
  config: ApiConfig['payment'],
  { orders: book, mysql, log }: OrderMovesParts,
): Pick<HttpServices, 'payOrder' | 'cancelOrder' | 'refunds' | 'refundsOf' | 'webhook'> {
  const moves = createOrderMoves(mysql, { clock, log });
  const provider = paymentProviderOf(config, log);
  const refunds = createRefundBook(mysql);
  const { webhookSecret } = config;
  return {
    payOrder: (request) => payOrder(request, { book, moves, provider, log }),
    cancelOrder: (orderId, userId) => cancelOrder(orderId, userId, { book, moves }),
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
