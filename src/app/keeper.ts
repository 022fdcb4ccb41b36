import type { Config, PROGRAM_SECTIONS } from '../config/schema.js';
import { DEAD_LETTERS, GROUPS, TOPICS } from '../domain/topics.js';
import { startProbeServer } from '../http/probe-server.js';
import { collectDeadLetters } from '../keeper/collect-dead-letters.js';
import { expireOrders } from '../keeper/expire-orders.js';
import { keepRunning, type Job } from '../keeper/job.js';
import { redrive } from '../keeper/redrive.js';
import { releaseUnits } from '../keeper/release-units.js';
import { settleRecorded } from '../keeper/settle-recorded.js';
import { watchPending } from '../keeper/watch-pending.js';
import { createDeadLetterBook } from '../mysql/dead-letter-book.js';
import { createOrderBook } from '../mysql/order-book.js';
import { createOrderMoves } from '../mysql/order-moves.js';
import { openMysqlPool, type MysqlPool } from '../mysql/pool.js';
import { createReleaseOutbox } from '../mysql/release-outbox.js';
import { createSaleBook } from '../mysql/sale-book.js';
import { createKeeperMeters, createRegistry } from '../observability/metrics.js';
import type { KeeperMeters } from '../ports/keeper-meters.js';
import type { Log } from '../ports/log.js';
import type { RedisConnection } from '../redis/connection.js';
import { createSettlementLedger } from '../redis/settlement-ledger.js';
import { createDeliverySource } from '../rocketmq/delivery-source.js';
import { createRedriveChannel } from '../rocketmq/redrive-channel.js';
import { openRedis } from './open-redis.js';
import { createReadiness } from './readiness.js';
import type { Running } from './run-program.js';
import { systemClock as clock } from './system-clock.js';

export type KeeperConfig = Config<(typeof PROGRAM_SECTIONS)['keeper'][number]>;

/** Release rows taken in one run, and batches settled per bucket in one run. */
const ROWS_PER_RUN = 100;
/** Orders that one sweep ends at most; the next sweep is seconds away. */
const EXPIRED_PER_RUN = 20_000;
/** Dead letters are a few statements each; after this they come again. */
const DEAD_LETTER_INVISIBLE_MS = 30_000;
/** A worker that lives settles within milliseconds; this is one that died. */
const SETTLE_AFTER_MS = 5000;
/** A failed receive is tried again after this; a good one waits for messages by itself. */
const COLLECT_EVERY_MS = 200;

/**
 * The keeper: the periodic work that mends what a death left behind.
 * @throws OperationalError when a dependency does not answer at the start
 */
export async function startKeeper(config: KeeperConfig, log: Log): Promise<Running> {
  const registry = createRegistry('keeper');
  const meters = createKeeperMeters(registry);
  const redis = await openRedis(config.redis, log);
  const mysql = openMysqlPool(config.mysql);
  await mysql.probe();

  const broker = await openBroker(config, log);
  const jobs = planJobs(config, { redis, mysql, meters, log, ...broker });

  const probe = await startProbeServer(
    { ready: createReadiness({ redis, mysql, endpoint: config.rocketmq.endpoint }), metrics: () => registry.metrics() },
    config.metrics,
  );
  const stopping = new AbortController();
  const loops = jobs.map(({ job, everyMs: pauseMs }) =>
    keepRunning(job, pauseMs, stopping.signal, { clock, log, meters }),
  );

  return {
    ready: `keeper runs ${jobs.length} jobs, metrics on http://${config.metrics.host}:${probe.port}/metrics`,
    facts: { metricsPort: probe.port },
    async stop(): Promise<void> {
      stopping.abort();
      const sources = Promise.all([broker.writerDead.close(), broker.redriveDead.close()]);
      await Promise.all(loops);
      await sources;
      await broker.channel.close();
      await probe.close();
      await redis.close();
      await mysql.close();
    },
  };
}

/** Where batches are published again, and the two topics of dead letters. */
async function openBroker(config: KeeperConfig, log: Log) {
  const { endpoint, startTimeoutMs, requestTimeoutMs } = config.rocketmq;
  const shared = { endpoint, requestTimeoutMs, log, start: { startupTimeoutMs: startTimeoutMs } };
  const deadLetters = ({ topic, collector }: { topic: string; collector: string }) =>
    createDeliverySource({ ...shared, topic, group: collector, invisibleMs: DEAD_LETTER_INVISIBLE_MS });
  const [channel, writerDead, redriveDead] = await Promise.all([
    createRedriveChannel(shared),
    deadLetters(DEAD_LETTERS[GROUPS.writer]),
    deadLetters(DEAD_LETTERS[GROUPS.redriveWriter]),
  ]);
  return { channel, writerDead, redriveDead };
}

interface JobParts extends Awaited<ReturnType<typeof openBroker>> {
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  readonly meters: KeeperMeters;
  readonly log: Log;
}

/** The jobs and the pause between two runs of each. */
function planJobs(config: KeeperConfig, parts: JobParts): { readonly job: Job; readonly everyMs: number }[] {
  const { redis, mysql, meters, log, channel, writerDead, redriveDead } = parts;
  const { everyMs, expireSweepEveryMs, redriveAfterMs: afterMs, redriveMax: max } = config.keeper;
  const ledger = createSettlementLedger(redis);
  const sales = createSaleBook(mysql);
  const book = createOrderBook(mysql);
  const collect = { letters: createDeadLetterBook(mysql), ledger, log, meters };
  return [
    { everyMs, job: settleRecorded({ sales, ledger, book, meters }, { afterMs: SETTLE_AFTER_MS, max: ROWS_PER_RUN }) },
    { everyMs, job: redrive({ sales, ledger, channel, clock, log, meters }, { afterMs, max }) },
    { everyMs, job: releaseUnits({ outbox: createReleaseOutbox(mysql), ledger, meters }, { max: ROWS_PER_RUN }) },
    { everyMs, job: watchPending({ sales, ledger, meters }) },
    {
      everyMs: expireSweepEveryMs,
      job: expireOrders({ moves: createOrderMoves(mysql, { clock, log }), meters }, { max: EXPIRED_PER_RUN }),
    },
    {
      everyMs: COLLECT_EVERY_MS,
      job: collectDeadLetters({ ...collect, source: writerDead }, { group: GROUPS.writer, topic: TOPICS.purchase }),
    },
    {
      everyMs: COLLECT_EVERY_MS,
      job: collectDeadLetters(
        { ...collect, source: redriveDead },
        { group: GROUPS.redriveWriter, topic: TOPICS.redrive },
      ),
    },
  ];
}
