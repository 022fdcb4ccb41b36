import type { Config } from '../core/config/schema.js';
import type { Job } from '../core/job.js';
import type { KeeperMetrics } from '../core/ports/keeper-metrics.js';
import type { Log } from '../core/ports/log.js';
import type { OrderTransitions, OverdueOrders } from '../core/ports/order-transitions.js';
import type { PaymentProvider } from '../core/ports/payment-provider.js';
import type { ReconcileMetrics } from '../core/ports/reconcile-metrics.js';
import type { RepairMetrics } from '../core/ports/repair-metrics.js';
import { GROUP_TOPICS, GROUPS, type Group } from '../core/topics.js';
import { createCouponRepository } from '../mysql/coupon-repository.js';
import { createDeadLetterRepository } from '../mysql/dead-letter-repository.js';
import { createOrderRepository, createOrderStates } from '../mysql/order-repository.js';
import { createOrderTransitions } from '../mysql/order-transitions.js';
import { createOutbox } from '../mysql/outbox.js';
import { createOverdueRepository } from '../mysql/overdue-repository.js';
import type { MysqlPool } from '../mysql/pool.js';
import { createRefundRepository } from '../mysql/refund-repository.js';
import { createSaleRepository } from '../mysql/sale-repository.js';
import { consume } from '../orders/consume.js';
import { expireOrders } from '../orders/expire-orders.js';
import { expireUnpaid } from '../orders/expire-unpaid.js';
import { issueCoupons } from '../orders/issue-coupons.js';
import { notifyBuyers } from '../orders/notify-buyers.js';
import { payRefunds } from '../orders/pay-refunds.js';
import { gatherMoved, gatherRecorded, publishMoved, publishRecorded } from '../orders/publish-orders.js';
import { relayOutbox } from '../orders/relay-outbox.js';
import { releaseUnits } from '../orders/release-units.js';
import { tidyOutbox } from '../orders/tidy-outbox.js';
import { watchOutbox } from '../orders/watch-outbox.js';
import { collectDeadLetters } from '../recovery/dead-letters/collect-dead-letters.js';
import { watchPending } from '../recovery/pending-buckets.js';
import type { ReconcileAdmin } from '../recovery/reconcile/reconcile-admin.js';
import { compensateJob, reconcileJob, tidyRuns } from '../recovery/reconcile/reconcile-jobs.js';
import { redrive } from '../recovery/redrive.js';
import { alignGates } from '../recovery/repair/align-gates.js';
import { repairClosedSales, repairSales, watchShut } from '../recovery/repair/repair-jobs.js';
import { markRecorded } from '../recovery/mark-recorded.js';
import { watchOverdue } from '../recovery/watch-overdue.js';
import { createBatchStore } from '../redis/batch-store.js';
import { pingRedis, type RedisConnection } from '../redis/connection.js';
import { createPurchaseNotificationsSender } from '../redis/purchase-notifications.js';
import { createTransferStore } from '../redis/transfer-store.js';
import { finishTransfers } from '../sales/stock/finish-transfers.js';
import type { KeeperFailPoints } from './fail-points.js';
import { INVISIBLE_MS, type KeeperBroker } from './keeper-broker.js';
import { rebuildStores } from './operator.js';
import { systemClock as clock } from './system-clock.js';

/** A job and the pause between two runs of it. */
export interface PlannedJob {
  readonly job: Job;
  readonly everyMs: number;
}

/** Batches settled per bucket in one run. */
const BATCHES_PER_RUN = 100;
/** Orders that one sweep ends at most; the next sweep is seconds away. */
const EXPIRED_PER_RUN = 20_000;
/** A worker that lives settles within milliseconds; this is one that died. */
const SETTLE_AFTER_MS = 5000;
/** A transfer between two buckets takes milliseconds; this is one whose process died. */
const TRANSFER_AFTER_MS = 3000;
const TRANSFER_OVERDUE_MS = 60_000;
/** A failed receive is tried again after this; a good one waits for messages by itself. */
const RECEIVE_EVERY_MS = 200;
/** Rows of the outbox taken together. Each is a message or two, or a script, and all are under way at once. */
const ROWS_PER_LEASE = 64;
/** Refunds asked for at once; each is a call of the provider. */
const REFUNDS_PER_LEASE = 16;
/** Longer than any call of a provider. */
const REFUND_LEASE_MS = 60_000;
/** Removing old rows is not urgent. */
const TIDY_EVERY_MS = 60_000;

type KeeperMoves = OrderTransitions & OverdueOrders;

interface JobParts {
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  readonly broker: KeeperBroker;
  readonly points: KeeperFailPoints;
  readonly provider: PaymentProvider | null;
  readonly reconcile: ReconcileAdmin;
  readonly metrics: KeeperMetrics & RepairMetrics & ReconcileMetrics;
  readonly log: Log;
}

/** Every job of the keeper. Each runs in a loop of its own, so none waits for another. */
export function planJobs(config: Config<'keeper' | 'overdue' | 'repair' | 'reconcile'>, parts: JobParts): PlannedJob[] {
  const moves = parts.points.moves(createOrderTransitions(parts.mysql, { clock, log: parts.log }));
  return [
    ...batchJobs(config.keeper, parts),
    ...outboxJobs(config.keeper, parts),
    ...orderJobs(config.keeper, moves, parts),
    ...repairJobs(config, parts),
    ...reconcileJobs(config, parts),
    overdueJob(config, moves, parts),
  ];
}

/** Batches that no worker has recorded or settled, dead letters, and units that stopped between two buckets. */
function batchJobs(
  { everyMs, redriveAfterMs, redriveMax }: Config['keeper'],
  { redis, mysql, broker, metrics, log }: JobParts,
): PlannedJob[] {
  const sales = createSaleRepository(mysql);
  const repository = createOrderRepository(mysql);
  const store = createBatchStore(redis);
  const deadLetters = createDeadLetterRepository(mysql);
  return [
    {
      everyMs,
      job: markRecorded({ sales, store, repository, metrics }, { afterMs: SETTLE_AFTER_MS, max: BATCHES_PER_RUN }),
    },
    {
      everyMs,
      job: redrive(
        { sales, store, channel: broker.redrives, clock, log, metrics },
        { afterMs: redriveAfterMs, max: redriveMax },
      ),
    },
    { everyMs, job: watchPending({ sales, store, metrics }) },
    {
      everyMs,
      job: finishTransfers(
        { sales, store: createTransferStore(redis), metrics },
        { afterMs: TRANSFER_AFTER_MS, overdueMs: TRANSFER_OVERDUE_MS },
      ),
    },
    ...broker.deadLetters.map(({ group, topic, source }) => ({
      everyMs: RECEIVE_EVERY_MS,
      job: collectDeadLetters({ deadLetters, store, repository, log, metrics, source }, { group, topic }),
    })),
  ];
}

/** What follows from rows that were committed: messages, deadlines, units that go back. */
function outboxJobs(
  { everyMs, outboxEveryMs, outboxLeaseMs, outboxKeepMs }: Config['keeper'],
  { redis, mysql, broker, points, metrics, log }: JobParts,
): PlannedJob[] {
  const outbox = createOutbox(mysql);
  const published = { outbox: points.published(outbox), log, metrics };
  const released = { outbox: points.released(outbox), log, metrics };
  const lease = { max: ROWS_PER_LEASE, leaseMs: outboxLeaseMs };
  const release = releaseUnits({ store: createBatchStore(redis), metrics });
  return [
    {
      everyMs: outboxEveryMs,
      job: relayOutbox(
        { ...published, keep: publishRecorded(broker), gather: gatherRecorded },
        { ...lease, kind: 'batch_recorded' },
      ),
    },
    {
      everyMs: outboxEveryMs,
      job: relayOutbox(
        { ...published, keep: publishMoved(broker), gather: gatherMoved },
        { ...lease, kind: 'orders_moved' },
      ),
    },
    { everyMs: outboxEveryMs, job: relayOutbox({ ...released, keep: release }, { ...lease, kind: 'release' }) },
    { everyMs, job: watchOutbox({ outbox, metrics }) },
    { everyMs: TIDY_EVERY_MS, job: tidyOutbox({ outbox, metrics }, { keepMs: outboxKeepMs }) },
  ];
}

/** What becomes of orders: unpaid ones end, paid ones get a coupon, buyers are notified, money goes back. */
function orderJobs(
  { everyMs, expireSweepEveryMs }: Config['keeper'],
  moves: KeeperMoves,
  { redis, mysql, broker, provider, metrics, log }: JobParts,
): PlannedJob[] {
  const deadLetters = createDeadLetterRepository(mysql);
  const shared = { ready: () => mysql.probe(), deadLetters, clock, log, metrics };
  const storesAnswer = async (): Promise<void> => void (await Promise.all([mysql.probe(), pingRedis(redis)]));
  const optionsOf = (group: Group) => ({ group, topic: GROUP_TOPICS[group], invisibleMs: INVISIBLE_MS });
  const expire = expireUnpaid({ moves, orders: createOrderStates(mysql), metrics });
  const coupons = issueCoupons({ coupons: createCouponRepository(mysql), metrics });
  const notify = notifyBuyers({
    orders: createOrderStates(mysql),
    sender: createPurchaseNotificationsSender(redis),
    metrics,
  });
  const jobs: PlannedJob[] = [
    { everyMs: expireSweepEveryMs, job: expireOrders({ moves, metrics }, { max: EXPIRED_PER_RUN }) },
    {
      everyMs: RECEIVE_EVERY_MS,
      job: consume({ ...shared, source: broker.expirer, handle: expire }, optionsOf(GROUPS.expirer)),
    },
    {
      everyMs: RECEIVE_EVERY_MS,
      job: consume({ ...shared, source: broker.coupon, handle: coupons }, optionsOf(GROUPS.coupon)),
    },
    {
      everyMs: RECEIVE_EVERY_MS,
      job: consume(
        { ...shared, ready: storesAnswer, source: broker.notifier, handle: notify },
        optionsOf(GROUPS.notifier),
      ),
    },
  ];
  if (provider === null) return jobs; // refunds wait for a person, and become overdue
  const refunds = createRefundRepository(mysql);
  const refund = payRefunds({ refunds, provider, metrics, log }, { max: REFUNDS_PER_LEASE, leaseMs: REFUND_LEASE_MS });
  return [...jobs, { everyMs, job: refund }];
}

/** Sales that Redis may have lost data of are rebuilt from MySQL. */
function repairJobs(
  { repair, keeper, overdue }: Config<'repair' | 'keeper' | 'overdue'>,
  { redis, mysql, points, metrics, log }: JobParts,
): PlannedJob[] {
  const { store, repository, sales } = rebuildStores(redis, mysql, points);
  const rebuilding = { store, repository, sales, clock, metrics, log };
  return [
    { everyMs: repair.everyMs, job: repairSales(rebuilding, repair) },
    { everyMs: keeper.everyMs, job: repairClosedSales(rebuilding, repair) },
    { everyMs: keeper.everyMs, job: alignGates({ store, sales }) },
    { everyMs: keeper.everyMs, job: watchShut({ store, sales, clock, metrics }, { afterMs: overdue.shutMs }) },
  ];
}

/** Compensations are worked off even where the keeper does not compare: a person may have ordered them. */
function reconcileJobs(
  { reconcile: { everyMs, keepMs, apply }, keeper }: Config<'reconcile' | 'keeper'>,
  { reconcile: admin, metrics }: JobParts,
): PlannedJob[] {
  const jobs: PlannedJob[] = [
    { everyMs: keeper.everyMs, job: compensateJob({ admin, metrics }) },
    { everyMs: TIDY_EVERY_MS, job: tidyRuns(admin, { keepMs }) },
  ];
  if (everyMs === 0) return jobs;
  return [...jobs, { everyMs, job: reconcileJob({ admin, metrics }, { apply: apply === 'true' }) }];
}

function overdueJob(
  { keeper, overdue }: Config<'keeper' | 'overdue'>,
  moves: KeeperMoves,
  { redis, mysql, metrics }: JobParts,
): PlannedJob {
  const sales = createSaleRepository(mysql);
  const store = createBatchStore(redis);
  const deadlines = {
    batch_pending: keeper.redriveAfterMs,
    outbox: overdue.outboxMs,
    dead_letter: overdue.deadLetterMs,
    refund: overdue.refundMs,
    compensation: overdue.compensationMs,
    sale_over: overdue.saleMs,
  };
  return {
    everyMs: keeper.everyMs,
    job: watchOverdue({ sales, store, moves, metrics, repository: createOverdueRepository(mysql) }, deadlines),
  };
}
