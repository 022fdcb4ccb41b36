import { randomUUID } from 'node:crypto';
import type { Config } from '../core/config/schema.js';
import { dueJobs, type Job, loopsOf, type PlannedJob } from '../core/job.js';
import type { Log } from '../core/ports/log.js';
import { PROVIDER_CALL_MAX_MS, type PaymentProvider } from '../core/ports/payment-provider.js';
import type { OutboxMark } from '../core/ports/outbox-mark.js';
import type { OutboxKind } from '../core/ports/outbox.js';
import type { Tracing } from '../core/ports/tracing.js';
import { OVERDUE_MS } from '../core/waiting-states.js';
import { GROUP_TOPICS, GROUPS, type Group } from '../core/topics.js';
import { createCouponRepository } from '../mysql/coupon-repository.js';
import { createDeadLetterParking } from '../mysql/dead-letters.js';
import { createDueWork } from '../mysql/due-work.js';
import { createJobLeases } from '../mysql/job-leases.js';
import { createStoredNotifications } from '../mysql/notifications.js';
import { createOrderArchive } from '../mysql/order-archive.js';
import { createOrderRepository, createOrderStates } from '../mysql/order-repository.js';
import { createOrderTransitions } from '../mysql/order-transitions.js';
import { markingLeases } from '../mysql/lost-tail.js';
import { createOutbox } from '../mysql/outbox.js';
import { createOverdueRepository } from '../mysql/overdue-repository.js';
import { createPaymentAttempts } from '../mysql/payment-attempts.js';
import type { MysqlPool } from '../mysql/pool.js';
import { createRepairRepository } from '../mysql/repair-repository.js';
import { createReconcileRepository } from '../mysql/reconcile-repository.js';
import { createPaymentCases } from '../mysql/payment-cases.js';
import { createOrderRefunds } from '../mysql/order-refunds.js';
import { createRefundRepository } from '../mysql/refund-repository.js';
import { createRetirementRepository } from '../mysql/retirement-repository.js';
import { createSaleEdits } from '../mysql/sale-edits.js';
import { createSaleSchedule } from '../mysql/sale-schedule.js';
import { type ClockWatch, whileClocksAgree } from '../orders/clock-watch.js';
import { consumeMessages } from '../orders/consume-messages.js';
import { expireByMessage, expireBySweep } from '../orders/expire-orders.js';
import { issueCoupons } from '../orders/issue-coupons.js';
import type { OrderJobMetrics } from '../orders/metrics.js';
import { notifyBuyers, tidyNotifications } from '../orders/notify-buyers.js';
import { groupMoved, groupRecorded, publishMoved, publishRecorded, releaseUnits } from '../orders/outbox-handlers.js';
import { payOrderRefunds, payRefunds } from '../orders/pay-refunds.js';
import { relayOutbox, tidyOutbox, watchOutbox } from '../orders/relay-outbox.js';
import { resolvePayments } from '../orders/resolve-payments.js';
import { takesWrites } from '../orders/takes-writes.js';
import { archiveOrders } from '../recovery/archive-orders.js';
import { markRecorded } from '../recovery/mark-recorded.js';
import type { RecoveryMetrics } from '../recovery/metrics.js';
import { sharePending, watchPending } from '../recovery/pending-buckets.js';
import { redrive } from '../recovery/redrive.js';
import { forgetRetiredSales, retireSales } from '../recovery/retire-sales.js';
import { alignSaleStates } from '../recovery/repair/align-sale-states.js';
import { repairClosedSales, repairSales, watchSalesInRepair } from '../recovery/repair/repair-jobs.js';
import { reshardHotSales } from '../recovery/repair/reshard-hot-sales.js';
import { reshardSale, type ReshardOrder } from '../recovery/repair/reshard-sale.js';
import { watchOverdue } from '../recovery/watch-overdue.js';
import { watchRedisMemory } from '../recovery/watch-redis-memory.js';
import { createBatchStore } from '../redis/batch-store.js';
import { pingAnyServer, type RedisConnection } from '../redis/connection.js';
import { createHotSaleStore } from '../redis/hot-sale-store.js';
import { readRedisMemory } from '../redis/memory.js';
import { createPurchaseNotificationsSender } from '../redis/purchase-notifications.js';
import { createReconcileStore } from '../redis/reconcile-store.js';
import { createSaleSnapshotCache, createSaleStore, SNAPSHOT_CACHE_MS } from '../redis/sale-store.js';
import { createStockStore } from '../redis/stock-store.js';
import { createTransferStore } from '../redis/transfer-store.js';
import { finishEdits } from '../sales/edit-sale.js';
import type { SaleMetrics } from '../sales/metrics.js';
import { compareEnded } from '../sales/schedule/compare-ended.js';
import { shareLists } from '../sales/shared-lists.js';
import type { ScheduleMetrics } from '../sales/schedule/metrics.js';
import { runSchedule } from '../sales/schedule/run-schedule.js';
import { finishTransfers } from '../sales/stock/finish-transfers.js';
import { watchHotSales } from '../sales/watch-hot-sales.js';
import { watchOpenSales } from '../sales/watch-open-sales.js';
import { INVISIBLE_MS, type KeeperBroker } from './keeper-broker.js';
import { brokerJobs } from '../operate/broker/index.js';
import { deadLetterJobs } from '../operate/dead-letters/index.js';
import { openSender, planningWebhooks, webhookJobs, type WebhookMetrics } from '../operate/webhooks/index.js';
import {
  openReadiness,
  openSaleAdmin,
  openSaleEditor,
  rebuildStores,
  workerProgressOf,
} from '../process/sale-parts.js';
import { wrapped } from '../process/seams.js';
import { reconcileJobs, type ReconcileServices } from '../operate/reconcile/index.js';
import { ruleJobs } from '../operate/rules/index.js';
import { systemClock as clock } from '../process/system-clock.js';

/** A live worker marks a batch within milliseconds. If it has not after this time, it must have died. */
const MARK_AFTER_MS = 5_000;
/** Maximum number of batches marked per bucket in one run. */
const MARKED_PER_RUN = 100;
/** Maximum number of batches that one keeper publishes again in one run, so that it does not overload a slow worker. */
const REDRIVEN_PER_RUN = 2000;
/** A transfer between buckets takes milliseconds. After this time, its process must have died. */
const TRANSFER_AFTER_MS = 3_000;
/** Maximum number of orders that one sweep ends. The next sweep follows within seconds. */
const EXPIRED_PER_RUN = 20_000;
/** Each row takes one or two messages, or a script. The keeper handles a lease all at once. */
const ROWS_PER_LEASE = 64;
/** Number of refunds that are leased together. Each takes one call to the provider. */
const REFUNDS_PER_LEASE = 16;
/** Longer than a call to the provider and the writes after it. Applies to payment attempts as well. */
const REFUND_LEASE_MS = PROVIDER_CALL_MAX_MS + 40_000;
/** Interval for removing old rows, which is not urgent. */
const TIDY_EVERY_MS = 60_000;

/** Interval for counting overdue items, in pauses of the keeper. */
const OVERDUE_EVERY_PAUSES = 5;
/** Interval for counting open sales. A sale lasts seconds to minutes. */
const OPEN_SALES_EVERY_MS = 5_000;
/** Interval for checking memory. A rush fills memory in minutes, not in seconds. */
const MEMORY_EVERY_MS = 10_000;
/** Limits of HOT_SALE_AUTO. The rate exceeds one Redis server. A sale needs no more buckets than there are servers. */
const AUTO_SPLIT = { perSecond: 10_000, bucketsMax: 16 };
/** Retiring a sale may take several attempts. If they last longer than this, an operator is needed. */
const KEPT_OVERDUE_MS = 86_400_000;
/** Longer than any worker transaction, so no transaction is still writing an order of this age. */
const YOUNG_ORDER_MS = 3_600_000;
/** Part of a pause for which jobs share the sales, so each turn reads them anew. A repair reads a locked sale again. */
const LISTS_KEPT = 0.9;
/** A century, longer than any sale is kept. */
const NEVER_MS = 100 * 365 * 86_400_000;

interface OpenedStores {
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  readonly metrics: RecoveryMetrics;
  readonly log: Log;
}

interface OpenedKeeper extends ReconcileServices, Rebuilding {
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  readonly outboxMark: OutboxMark;
  readonly broker: KeeperBroker;
  /** If null, refunds wait for an operator and become overdue. */
  readonly provider: PaymentProvider | null;
  readonly clocks: ClockWatch;
  readonly stopping: AbortSignal;
  readonly tracing: Tracing;
  readonly metrics: OrderJobMetrics & RecoveryMetrics & SaleMetrics & ScheduleMetrics & WebhookMetrics;
  readonly log: Log;
}

type KeeperConfig = Config<'keeper' | 'repair' | 'reconcile' | 'hotSales' | 'rocketmq' | 'brokerAccess'>;

/** Opens the stores that rebuild a sale. Their lists of sales serve all jobs. */
export function openRebuilding(
  config: Config<'keeper' | 'repair' | 'brokerAccess'>,
  { redis, mysql, metrics, log }: OpenedStores,
) {
  const stores = rebuildStores(redis, mysql);
  const keptMs = config.keeper.everyMs * LISTS_KEPT;
  const rebuild = { ...stores, sales: shareLists(stores.sales, keptMs, clock) };
  return { rebuild, repair: { ...rebuild, progress: workerProgressOf(config), clock, metrics, log } };
}
type Rebuilding = ReturnType<typeof openRebuilding>;

/** Each job has its own loop, so no job waits for another. A consumer has one loop per broker. */
export function planJobs(config: KeeperConfig, given: OpenedKeeper): PlannedJob[] {
  const keeper = sharedParts(config, given);
  return [
    [config.keeper.outboxEveryMs, keeper.findDueWork],
    ...pendingJobs(keeper),
    ...deadLetterJobs(keeper),
    ...brokerJobs(keeper),
    ...saleJobs(keeper),
    ...outboxJobs(keeper),
    ...orderJobs(keeper),
    ...refundJobs(keeper),
    ...reconcileJobs(keeper),
    ...ruleJobs(keeper),
    ...hotSaleJobs(keeper),
    ...retirementJobs(keeper),
    ...webhookJobs(keeper),
    ...watchJobs(keeper),
  ];
}

function sharedParts(config: KeeperConfig, given: OpenedKeeper) {
  const { mysql, redis, log } = given;
  const leases = createJobLeases(mysql);
  const { find, of } = dueJobs(createDueWork(mysql));
  return {
    ...given,
    config,
    everyMs: config.keeper.everyMs,
    clock,
    owner: randomUUID(),
    leases,
    sales: given.rebuild.sales,
    store: createBatchStore(redis),
    repository: createOrderRepository(mysql),
    sendWebhook: openSender(config.keeper),
    transitions: wrapped('order transitions', createOrderTransitions(mysql, { clock, log })),
    findDueWork: find,
    due: of,
  };
}
type Keeper = ReturnType<typeof sharedParts>;

/** For batches in `pending`: marks batches as recorded that MySQL has, and publishes the others again. */
function pendingJobs({
  config,
  everyMs,
  broker,
  sales,
  repository,
  tracing,
  metrics,
  log,
  ...keeper
}: Keeper): PlannedJob[] {
  const store = sharePending(keeper.store, clock);
  return [
    [
      everyMs,
      markRecorded({ sales, store, repository, metrics }, { afterMs: MARK_AFTER_MS, maxPerBucket: MARKED_PER_RUN }),
    ],
    [
      everyMs,
      redrive(
        { sales, store, channel: broker.redrives, tracing, clock, log, metrics },
        { afterMs: config.keeper.redriveAfterMs, max: REDRIVEN_PER_RUN },
      ),
    ],
    // Overdue only after twice the time, because a batch that the re-drive has just published is not a fault yet.
    [everyMs, watchPending({ sales, store, metrics }, { overdueAfterMs: 2 * config.keeper.redriveAfterMs })],
  ];
}

/** Warms, checks, opens, closes and compares sales when due. Finishes changes and transfers. */
function saleJobs({ config, everyMs, redis, mysql, sales, reconcile, due, metrics, log }: Keeper): PlannedJob[] {
  const schedule = createSaleSchedule(mysql);
  const admin = openSaleAdmin(redis, mysql);
  const editor = openSaleEditor(redis, mysql, () => null, log);
  const readiness = openReadiness(redis, config, log);
  return [
    [everyMs, runSchedule({ schedule, sales: admin, readiness, clock, metrics, log }, { everyMs })],
    [
      everyMs,
      compareEnded(
        { schedule, compare: async (saleId) => (await reconcile.compareEnded(saleId)).outcome, log },
        { afterMs: config.reconcile.safeAgeMs },
      ),
    ],

    [everyMs, due('edit', finishEdits({ edits: createSaleEdits(mysql), editor }))],

    [
      everyMs,
      finishTransfers(
        { sales, store: createTransferStore(redis), metrics },
        { afterMs: TRANSFER_AFTER_MS, overdueMs: OVERDUE_MS.units_in_transfer },
      ),
    ],
  ];
}

/** For the outbox: publishes events and payment deadlines, and gives units back. */
function outboxJobs(keeper: Keeper): PlannedJob[] {
  const { config, everyMs, mysql, outboxMark, store, tracing, due, metrics, log } = keeper;
  const { outboxEveryMs, outboxLeaseMs, outboxKeepMs } = config.keeper;
  const outbox = markingLeases(createOutbox(mysql), outboxMark);
  const broker = { ...keeper.broker, events: planningWebhooks(keeper.broker.events, mysql) };
  const published = { outbox: wrapped('outbox to publish', outbox), clock, log, metrics };
  const released = { outbox: wrapped('outbox to release', outbox), clock, log, metrics };
  const rows = { max: ROWS_PER_LEASE, leaseMs: outboxLeaseMs };
  const relayed = (kind: OutboxKind, [relay, tryTroubled]: readonly [Job, Job]): PlannedJob[] => [
    [outboxEveryMs, due(kind, relay)],
    [outboxEveryMs, tryTroubled],
  ];
  return [
    ...relayed(
      'batch_recorded',
      relayOutbox(
        { ...published, handle: publishRecorded({ ...broker, tracing }), group: groupRecorded },
        { kind: 'batch_recorded', ...rows },
      ),
    ),
    ...relayed(
      'orders_moved',
      relayOutbox({ ...published, handle: publishMoved(broker), group: groupMoved }, { kind: 'orders_moved', ...rows }),
    ),
    ...relayed(
      'release',
      relayOutbox({ ...released, handle: releaseUnits(store, metrics) }, { kind: 'release', ...rows }),
    ),
    [everyMs, watchOutbox(outbox, metrics)],
    [TIDY_EVERY_MS, tidyOutbox(outbox, metrics, { keepMs: outboxKeepMs })],
  ];
}

/** Ends unpaid orders, and handles order events. */
function orderJobs(keeper: Keeper): PlannedJob[] {
  const { config, redis, mysql, broker, leases, owner, transitions, clocks, stopping, tracing, due, metrics, log } =
    keeper;
  const ready = takesWrites(leases, owner, clock);
  const consumer = { ready, deadLetters: createDeadLetterParking(mysql), tracing, clock, log, metrics };
  const groupOf = (group: Group) => ({ group, topic: GROUP_TOPICS[group], invisibleMs: INVISIBLE_MS });
  const bothStores = async (): Promise<void> => void (await Promise.all([ready(), pingAnyServer(redis)]));
  const stored = createStoredNotifications(mysql);
  const sender = createPurchaseNotificationsSender(redis);
  const { expireSweepEveryMs } = config.keeper;
  return [
    // Unpaid orders expire by their deadline message or, if it was lost, by the sweep.
    ...loopsOf(
      broker.expirer,
      consumeMessages(
        {
          ...consumer,
          ready: async () => void (await Promise.all([consumer.ready(), clocks.agree()])),
          source: broker.expirer,
          handle: expireByMessage({ transitions, orders: createOrderStates(mysql), clocks, metrics }),
        },
        groupOf(GROUPS.expirer),
      ),
    ),
    [expireSweepEveryMs, due('expiry', expireBySweep({ transitions, clocks, metrics }, { max: EXPIRED_PER_RUN }))],

    // For order events: issues a coupon for each paid order, and notifies waiting buyers.
    ...loopsOf(
      broker.coupon,
      consumeMessages(
        { ...consumer, source: broker.coupon, handle: issueCoupons(createCouponRepository(mysql), metrics) },
        groupOf(GROUPS.coupon),
      ),
    ),
    ...loopsOf(
      broker.notifier,
      consumeMessages(
        {
          ...consumer,
          ready: bothStores,
          source: broker.notifier,
          handle: notifyBuyers(createOrderStates(mysql), sender, stored, metrics),
        },
        groupOf(GROUPS.notifier),
      ),
    ),
    [TIDY_EVERY_MS, tidyNotifications(stored, stopping)],
  ];
}

/** Pays refunds, and asks the provider for the results of charges. Returns no jobs if there is no provider. */
function refundJobs(keeper: Keeper): PlannedJob[] {
  const { everyMs, mysql, provider, repository, transitions, clocks, due, metrics, log } = keeper;
  if (provider === null) return [];
  const ports = { refunds: createRefundRepository(mysql), cases: createPaymentCases(mysql), provider, metrics, log };
  const ofOrders = { ...ports, refunds: createOrderRefunds(mysql, { clock }) };
  const asked = { repository, attempts: createPaymentAttempts(mysql, { clock }), provider, transitions, metrics, log };
  const resolve = resolvePayments(asked, { max: REFUNDS_PER_LEASE, leaseMs: REFUND_LEASE_MS });
  return [
    [everyMs, due('refund', payRefunds(ports, { max: REFUNDS_PER_LEASE, leaseMs: REFUND_LEASE_MS }))],
    [everyMs, due('order_refund', payOrderRefunds(ofOrders, { max: REFUNDS_PER_LEASE, leaseMs: REFUND_LEASE_MS }))],
    [everyMs, due('payment', whileClocksAgree(clocks, resolve))],
  ];
}

/** Rebuilds sales that Redis may have lost. Needs no broker and starts before it, because buyers wait for a repair. */
export const repairJobs = (config: Config<'keeper' | 'repair'>, { rebuild, repair }: Rebuilding): PlannedJob[] => [
  [config.repair.everyMs, repairSales(repair, config.repair)],
  [config.keeper.everyMs, repairClosedSales(repair, config.repair)],
  [config.keeper.everyMs, alignSaleStates(rebuild)],
  [
    config.keeper.everyMs,
    watchSalesInRepair({ ...rebuild, clock, metrics: repair.metrics }, { afterMs: OVERDUE_MS.sale_locked }),
  ],
];

/** Reports hot sales, and splits them if so configured. */
function hotSaleJobs({ config, everyMs, redis, mysql, sales, rebuild, repair, metrics, log }: Keeper): PlannedJob[] {
  const jobs: PlannedJob[] = [];
  if (config.hotSales.perSecond > 0) {
    const hot = createHotSaleStore(redis);
    jobs.push([everyMs, watchHotSales({ store: hot, metrics }, { perSecond: config.hotSales.perSecond })]);
    if (config.hotSales.auto === 'true') {
      const forgetSnapshot = createSaleSnapshotCache(redis).forget;
      const ports = {
        hot,
        sales,
        stock: createStockStore(redis, log),
        repairs: rebuild.repairs,
        repository: createRepairRepository(mysql),
        masters: () => redis.masters().length,
        reshard: (saleId: string, order: ReshardOrder) =>
          reshardSale(saleId, order, { ...repair, forgetSnapshot }, config.repair),
        metrics,
        log,
      };
      jobs.push([everyMs, reshardHotSales(ports, AUTO_SPLIT)]);
    }
  }
  return jobs;
}

function retirementJobs(keeper: Keeper): PlannedJob[] {
  const { config, everyMs, redis, mysql, store, rebuild, reconcile, metrics, log } = keeper;
  const { retireAfterMs, archiveAfterMs, archivePerSecond } = config.keeper;
  const jobs: PlannedJob[] = [];
  if (retireAfterMs > 0) {
    const { safeAgeMs, markerAgeMs } = config.reconcile;
    const ports = {
      sales: createRetirementRepository(mysql),
      batches: store,
      store: createReconcileStore(redis),
      repairs: rebuild.repairs,
      repository: createReconcileRepository(mysql),
      parkedBatchesOf: rebuild.repository.parkedBatchesOf,
      reconcile,
      clock,
      log,
      metrics,
    };
    // Data younger than `safeAgeMs` is not compared.
    const limits = { afterMs: Math.max(retireAfterMs, safeAgeMs), markerAgeMs };
    jobs.push([everyMs, retireSales(ports, limits)]);
    const forgotten = { sales: ports.sales, store: createSaleStore(redis) };
    jobs.push([everyMs, forgetRetiredSales(forgotten, { snapshotMs: SNAPSHOT_CACHE_MS })]);
  }
  if (archiveAfterMs > 0) {
    const archive = createOrderArchive(mysql, Math.min(YOUNG_ORDER_MS, archiveAfterMs));
    const archived = { archive, log, metrics };
    jobs.push([1000, archiveOrders(archived, { afterMs: archiveAfterMs, ordersPerRun: archivePerSecond })]);
  }
  return jobs;
}

/** Publishes figures for alerts. */
function watchJobs(keeper: Keeper): PlannedJob[] {
  const { config, everyMs, redis, mysql, leases, owner, sales, metrics, log } = keeper;
  const { retireAfterMs, archiveAfterMs } = config.keeper;
  return [
    // Watches the memory of Redis before it is full.
    [MEMORY_EVERY_MS, watchRedisMemory({ readMemory: () => readRedisMemory(redis), clock, metrics })],

    // Only one keeper counts the remaining units of open sales.
    [
      OPEN_SALES_EVERY_MS,
      watchOpenSales(
        { leases, sales, store: createStockStore(redis, log), metrics },
        { owner, everyMs: OPEN_SALES_EVERY_MS },
      ),
    ],

    [
      OVERDUE_EVERY_PAUSES * everyMs,
      watchOverdue(
        { repository: createOverdueRepository(mysql), metrics },
        {
          ...OVERDUE_MS,
          payment_case: 0,
          webhook_paused: 0,
          sale_kept: retireAfterMs === 0 ? NEVER_MS : retireAfterMs + KEPT_OVERDUE_MS,
          sale_unarchived: archiveAfterMs === 0 ? NEVER_MS : archiveAfterMs + KEPT_OVERDUE_MS,
        },
      ),
    ],
  ];
}
