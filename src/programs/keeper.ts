import { setMaxListeners } from 'node:events';
import type { Config, PROGRAM_SECTIONS } from '../core/config/schema.js';
import { startProbeServer } from '../http/probe-server.js';
import { collectDeadLetters } from '../recovery/dead-letters/collect-dead-letters.js';
import { expireOrders } from '../orders/expire-orders.js';
import { finishTransfers } from '../sales/stock/finish-transfers.js';
import { keepRunning } from '../core/job.js';
import { redrive } from '../recovery/redrive.js';
import { markRecorded } from '../recovery/mark-recorded.js';
import { watchOverdue, type OverdueDeadlines } from '../recovery/watch-overdue.js';
import { watchPending } from '../recovery/pending-buckets.js';
import { createDeadLetterRepository } from '../mysql/dead-letter-repository.js';
import { createOrderRepository } from '../mysql/order-repository.js';
import { createOrderTransitions } from '../mysql/order-transitions.js';
import { createOverdueRepository } from '../mysql/overdue-repository.js';
import { openMysqlPool, type MysqlPool } from '../mysql/pool.js';
import { createSaleRepository } from '../mysql/sale-repository.js';
import { createKeeperMetrics, createReconcileMetrics, createRegistry, createRepairMetrics } from './metrics.js';
import type { KeeperMetrics } from '../core/ports/keeper-metrics.js';
import type { Log } from '../core/ports/log.js';
import { compensateJob, reconcileJob, tidyRuns } from '../recovery/reconcile/reconcile-jobs.js';
import type { RedisConnection } from '../redis/connection.js';
import { createBatchStore } from '../redis/batch-store.js';
import { createTransferStore } from '../redis/transfer-store.js';
import { keeperFailPoints, type KeeperFailPoints } from './fail-points.js';
import { openKeeperBroker, type KeeperBroker } from './keeper-broker.js';
import { openRedis } from './open-redis.js';
import { consumerJobs, refundJobs, relayJobs, type PlannedJob } from './order-jobs.js';
import { paymentProviderOf } from './payment-provider.js';
import { createReadiness } from './readiness.js';
import { openReconcileAdmin } from './reconcile-admin.js';
import { repairJobs } from './repair.js';
import type { Running } from './run-program.js';
import { systemClock as clock } from './system-clock.js';

export type KeeperConfig = Config<(typeof PROGRAM_SECTIONS)['keeper'][number]>;

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
const COLLECT_EVERY_MS = 200;
/** Removing old records is not urgent. */
const TIDY_RUNS_EVERY_MS = 60_000;

/**
 * The keeper: the periodic work that mends what a death left behind.
 * @throws OperationalError when a dependency does not answer at the start
 */
export async function startKeeper(config: KeeperConfig, log: Log): Promise<Running> {
  const registry = createRegistry('keeper');
  const points = keeperFailPoints(config.failPoint, log);
  const metrics = createKeeperMetrics(registry);
  const redis = await openRedis(config.redis, log);
  const mysql = openMysqlPool(config.mysql);
  await mysql.probe();

  const broker = await openKeeperBroker(config.rocketmq, log);
  const reconcile = openReconcileAdmin({
    ...{ redis, mysql, channel: broker.redrives, options: config.reconcile, log },
    wrapRepository: points.compensated,
  });
  const jobs = [
    ...planJobs(config, { redis, mysql, broker, points, metrics, log }),
    ...repairJobs(config, { redis, mysql, points, metrics: { ...metrics, ...createRepairMetrics(registry) }, log }),
    ...planReconcile(config, { admin: reconcile.admin, metrics: createReconcileMetrics(registry) }),
  ];

  const probe = await startProbeServer(
    { ready: createReadiness({ redis, mysql, endpoint: config.rocketmq.endpoint }), metrics: () => registry.metrics() },
    config.metrics,
  );
  const stopping = new AbortController();
  setMaxListeners(0, stopping.signal); // every job waits on it
  const loops = jobs.map(({ job, everyMs: pauseMs }) =>
    keepRunning(job, pauseMs, stopping.signal, { clock, log, metrics }),
  );

  return {
    ready: `keeper runs ${jobs.length} jobs, metrics on http://${config.metrics.host}:${probe.port}/metrics`,
    facts: { metricsPort: probe.port },
    async stop(): Promise<void> {
      stopping.abort();
      const sources = broker.closeSources(); // open receives end by themselves
      await Promise.all(loops);
      await sources;
      await reconcile.close();
      await broker.closeChannels();
      await probe.close();
      await redis.close();
      await mysql.close();
    },
  };
}

/** Compensations are worked off also where the keeper does not look for new ones: a person may have ordered them. */
function planReconcile(
  { reconcile: { everyMs, keepMs, apply }, keeper }: KeeperConfig,
  parts: Parameters<typeof reconcileJob>[0] &
    Parameters<typeof compensateJob>[0] & { admin: Parameters<typeof tidyRuns>[0] },
): PlannedJob[] {
  const compensations = { everyMs: keeper.everyMs, job: compensateJob(parts) };
  const tidy = { everyMs: TIDY_RUNS_EVERY_MS, job: tidyRuns(parts.admin, { keepMs }) };
  if (everyMs === 0) return [compensations, tidy];
  return [compensations, tidy, { everyMs, job: reconcileJob(parts, { apply: apply === 'true' }) }];
}

interface JobParts {
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  readonly broker: KeeperBroker;
  readonly points: KeeperFailPoints;
  readonly metrics: KeeperMetrics;
  readonly log: Log;
}

/** The jobs and the pause between two runs of each. */
function planJobs(config: KeeperConfig, parts: JobParts): PlannedJob[] {
  const { redis, mysql, broker, metrics, log } = parts;
  const { everyMs, expireSweepEveryMs, redriveAfterMs: afterMs, redriveMax: max } = config.keeper;
  const store = createBatchStore(redis);
  const sales = createSaleRepository(mysql);
  const repository = createOrderRepository(mysql);
  const moves = parts.points.moves(createOrderTransitions(mysql, { clock, log }));
  const orderParts = { ...parts, store, moves };
  const collect = { deadLetters: createDeadLetterRepository(mysql), store, repository, log, metrics };
  return [
    {
      everyMs,
      job: markRecorded({ sales, store, repository, metrics }, { afterMs: SETTLE_AFTER_MS, max: BATCHES_PER_RUN }),
    },
    { everyMs, job: redrive({ sales, store, channel: broker.redrives, clock, log, metrics }, { afterMs, max }) },
    { everyMs, job: watchPending({ sales, store, metrics }) },
    {
      everyMs,
      job: finishTransfers(
        { sales, store: createTransferStore(redis), metrics },
        { afterMs: TRANSFER_AFTER_MS, overdueMs: TRANSFER_OVERDUE_MS },
      ),
    },
    {
      everyMs,
      job: watchOverdue(
        { sales, store, moves, metrics, repository: createOverdueRepository(mysql) },
        deadlinesOf(config),
      ),
    },
    { everyMs: expireSweepEveryMs, job: expireOrders({ moves, metrics }, { max: EXPIRED_PER_RUN }) },
    ...broker.deadLetters.map(({ group, topic, source }) => ({
      everyMs: COLLECT_EVERY_MS,
      job: collectDeadLetters({ ...collect, source }, { group, topic }),
    })),
    ...relayJobs(config.keeper, orderParts),
    ...consumerJobs(orderParts),
    ...refundJobs(config.keeper, paymentProviderOf(config.payment, log), parts),
  ];
}

const deadlinesOf = ({ keeper, overdue }: KeeperConfig): OverdueDeadlines => ({
  batch_pending: keeper.redriveAfterMs,
  outbox: overdue.outboxMs,
  dead_letter: overdue.deadLetterMs,
  refund: overdue.refundMs,
  compensation: overdue.compensationMs,
  sale_over: overdue.saleMs,
});
