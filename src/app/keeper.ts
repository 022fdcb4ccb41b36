import type { Config, PROGRAM_SECTIONS } from '../config/schema.js';
import { DEAD_LETTERS, GROUPS, TOPICS } from '../domain/topics.js';
import { startProbeServer } from '../http/probe-server.js';
import { collectDeadLetters } from '../keeper/collect-dead-letters.js';
import { keepRunning, type Job } from '../keeper/job.js';
import { redrive } from '../keeper/redrive.js';
import { releaseUnits } from '../keeper/release-units.js';
import { settleRecorded } from '../keeper/settle-recorded.js';
import { watchPending } from '../keeper/watch-pending.js';
import { createDeadLetterBook } from '../mysql/dead-letter-book.js';
import { createOrderBook } from '../mysql/order-book.js';
import { openMysqlPool } from '../mysql/pool.js';
import { createReleaseOutbox } from '../mysql/release-outbox.js';
import { createSaleBook } from '../mysql/sale-book.js';
import { createKeeperMeters, createRegistry } from '../observability/metrics.js';
import type { Log } from '../ports/log.js';
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

  const { endpoint, startTimeoutMs, requestTimeoutMs } = config.rocketmq;
  const start = { startupTimeoutMs: startTimeoutMs };
  const deadLetterSource = ({ topic, collector }: { topic: string; collector: string }) =>
    createDeliverySource({
      ...{ endpoint, topic, group: collector, invisibleMs: DEAD_LETTER_INVISIBLE_MS, requestTimeoutMs, log, start },
    });
  const [channel, writerDead, redriveDead] = await Promise.all([
    createRedriveChannel({ endpoint, requestTimeoutMs, log, start }),
    deadLetterSource(DEAD_LETTERS[GROUPS.writer]),
    deadLetterSource(DEAD_LETTERS[GROUPS.redriveWriter]),
  ]);

  const ledger = createSettlementLedger(redis);
  const sales = createSaleBook(mysql);
  const book = createOrderBook(mysql);
  const letters = createDeadLetterBook(mysql);
  const { everyMs, redriveAfterMs, redriveMax } = config.keeper;
  const jobs: { job: Job; everyMs: number }[] = [
    { everyMs, job: settleRecorded({ sales, ledger, book, meters }, { afterMs: SETTLE_AFTER_MS, max: ROWS_PER_RUN }) },
    {
      everyMs,
      job: redrive({ sales, ledger, channel, clock, log, meters }, { afterMs: redriveAfterMs, max: redriveMax }),
    },
    { everyMs, job: releaseUnits({ outbox: createReleaseOutbox(mysql), ledger, meters }, { max: ROWS_PER_RUN }) },
    { everyMs, job: watchPending({ sales, ledger, meters }) },
    {
      everyMs: COLLECT_EVERY_MS,
      job: collectDeadLetters(
        { source: writerDead, letters, ledger, log, meters },
        { group: GROUPS.writer, topic: TOPICS.purchase },
      ),
    },
    {
      everyMs: COLLECT_EVERY_MS,
      job: collectDeadLetters(
        { source: redriveDead, letters, ledger, log, meters },
        { group: GROUPS.redriveWriter, topic: TOPICS.redrive },
      ),
    },
  ];

  const probe = await startProbeServer(
    { ready: createReadiness({ redis, mysql, endpoint }), metrics: () => registry.metrics() },
    config.metrics.port,
  );
  const stopping = new AbortController();
  const loops = jobs.map(({ job, everyMs: pauseMs }) =>
    keepRunning(job, pauseMs, stopping.signal, { clock, log, meters }),
  );

  return {
    ready: `keeper runs ${jobs.length} jobs, metrics on http://127.0.0.1:${probe.port}/metrics`,
    facts: { metricsPort: probe.port },
    async stop(): Promise<void> {
      stopping.abort();
      const sources = Promise.all([writerDead.close(), redriveDead.close()]);
      await Promise.all(loops);
      await sources;
      await channel.close();
      await probe.close();
      await redis.close();
      await mysql.close();
    },
  };
}
