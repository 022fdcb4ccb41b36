import { setMaxListeners } from 'node:events';
import type { Config, PROGRAM_SECTIONS } from '../core/config/schema.js';
import { keepRunning, type PlannedJob } from '../core/job.js';
import type { Log } from '../core/ports/log.js';
import type { Payments } from '../core/ports/payment-provider.js';
import { MetricsPage } from '../http/metrics-page.js';
import { startProbeServer } from '../http/probe-server.js';
import { createDeadLetterParking } from '../mysql/dead-letters.js';
import { readMysqlClock } from '../mysql/read-facts.js';
import { ClockWatch } from '../orders/clock-watch.js';
import { createOrderJobMetrics } from '../orders/metrics.js';
import { openPayments } from '../payment/open-payments.js';
import { createRecoveryMetrics } from '../recovery/metrics.js';
import { createSaleMetrics } from '../sales/metrics.js';
import { readRedisClocks } from '../redis/read-facts.js';
import { createProgramReports } from '../redis/program-reports.js';
import { createScheduleMetrics } from '../sales/schedule/metrics.js';
import { allOrNothing, type Opened } from '../process/all-or-nothing.js';
import { openKeeperBroker } from './keeper-broker.js';
import { openRebuilding, planJobs, repairJobs } from './keeper-jobs.js';
import { brokerAccessOf } from '../rocketmq/credentials.js';
import { Connections } from '../process/connections.js';
import { openResolveJob, RESOLVE_EVERY_MS } from '../operate/findings/index.js';
import { openReconcile } from '../operate/reconcile/index.js';
import { createWebhookMetrics } from '../operate/webhooks/index.js';
import { openWitnessJob, WITNESS_EVERY_MS } from '../operate/witness/index.js';
import { reportProgram } from './report-program.js';
import type { OpenProgram, Running } from './run-program.js';
import { createReadiness, messageSignatures, openSignedMessages, openStores, serversOf } from '../process/servers.js';
import { systemClock as clock } from '../process/system-clock.js';
import { createJobMetrics, createRegistry } from '../process/telemetry.js';

export type KeeperConfig = Config<(typeof PROGRAM_SECTIONS)['keeper'][number]>;

/** @throws OperationalError if a dependency does not answer; ConfigError if the payment provider refuses our key */
export async function startKeeper(config: KeeperConfig, log: Log): Promise<Running> {
  const keeper = await openKeeper(config, log, () => openPayments(config.payment, { clock, log }));
  const probe = await startProbeServer(keeper, config.keeperMetrics);
  return {
    ready: `keeper runs ${keeper.jobs} jobs, metrics on http://${config.keeperMetrics.host}:${probe.port}/metrics`,
    facts: { metricsPort: probe.port },
    async stop(): Promise<void> {
      await keeper.drain();
      await probe.close();
      await keeper.close();
    },
  };
}

/** @param payments called first; null if refunds wait for an operator. @throws OperationalError, or like `payments` */
export const openKeeper = (config: OpenConfig, log: Log, payments: OpenParts['payments']): Promise<OpenKeeper> =>
  allOrNothing((opened) => open(config, { log, payments, opened }));

type OpenConfig = Omit<KeeperConfig, 'keeperMetrics' | 'log'>;
type OpenKeeper = OpenProgram & { readonly jobs: number };
interface OpenParts {
  readonly log: Log;
  readonly payments: () => Promise<Payments | null>;
  readonly opened: Opened;
}

async function open(config: OpenConfig, { log, opened, ...parts }: OpenParts): Promise<OpenKeeper> {
  log.info({ servers: serversOf(config) }, 'starting with these servers');
  const payments = await parts.payments();
  const registry = createRegistry('keeper');
  const stores = await openStores(config, 'keeper', { registry, log, opened });
  const { tracing, redis, mysql, outboxMark } = stores;
  const metrics = {
    ...createJobMetrics(registry),
    ...createOrderJobMetrics(registry),
    ...createRecoveryMetrics(registry),
    ...createSaleMetrics(registry),
    ...createScheduleMetrics(registry),
    ...createWebhookMetrics(registry),
  };
  const stopping = new AbortController();
  setMaxListeners(0, stopping.signal); // every job listens to this signal
  const start = (jobs: readonly PlannedJob[]): Promise<void>[] =>
    jobs.map(([everyMs, job]) => keepRunning(job, everyMs, stopping.signal, { clock, log, metrics }));
  const rebuilding = openRebuilding(config, { redis, mysql, metrics, log });
  const repairing = start(repairJobs(config, rebuilding));
  opened(async () => {
    stopping.abort();
    await Promise.all(repairing);
  });
  const signatures = messageSignatures(config.messages);
  const messages = openSignedMessages(config.messages, { deadLetters: createDeadLetterParking(mysql), registry, log });
  const broker = await openKeeperBroker(config, { signatures, messages }, log);
  opened(() => Promise.all([broker.closeSources(), broker.closeChannels()]));
  const { redrives } = broker;
  const connections = new Connections(config, log, { redis, mysql, redrives });
  const servers = { mysql: () => readMysqlClock(mysql), redis: () => readRedisClocks(redis) };
  const clocks = new ClockWatch({ servers, clock, metrics });
  const jobs = planJobs(config, {
    redis,
    mysql,
    outboxMark,
    broker,
    provider: payments?.provider ?? null,
    ...(await openReconcile(connections)),
    ...rebuilding,
    clocks,
    stopping: stopping.signal,
    tracing,
    metrics,
    log,
  });

  const reading = { mysql, registry, clock, log };
  const witness = openWitnessJob(config, reading);
  if (witness !== null) jobs.push([WITNESS_EVERY_MS, witness]);
  const resolving = openResolveJob(config, reading);
  if (resolving !== null) jobs.push([RESOLVE_EVERY_MS, resolving]);
  opened(async () => witness?.close());
  const { tls } = brokerAccessOf(config.brokerAccess);
  const ready = createReadiness({ redis, mysql, endpoint: config.rocketmq.endpoint, tls, clocks });
  const loops = [...repairing, ...start(jobs)];
  const reports = createProgramReports(redis, clock);
  const reporting = reportProgram({ kind: 'keeper', reports, registry, ready, clock, log }, stopping.signal);

  return {
    jobs: loops.length,
    ready,
    metricsPage: new MetricsPage(() => registry.metrics(), config.metrics, clock),
    async drain(): Promise<void> {
      stopping.abort();
      const sources = broker.closeSources(); // receives that are under way end by themselves
      await Promise.all([...loops, reporting]);
      witness?.close();
      await sources;
      await connections.close();
      await broker.closeChannels();
    },
    close: () => stores.close(),
  };
}
