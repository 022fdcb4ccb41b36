import { hostname } from 'node:os';
import { randomBytes } from 'node:crypto';
import type { Config, PROGRAM_SECTIONS } from '../core/config/schema.js';
import { GROUPS, TOPICS } from '../core/topics.js';
import { MetricsPage } from '../http/metrics-page.js';
import { startProbeServer } from '../http/probe-server.js';
import { createDeadLetterParking } from '../mysql/dead-letters.js';
import { createOrderRepository } from '../mysql/order-repository.js';
import { createWorkerSlots } from '../mysql/worker-slots.js';
import { createWorkerMetrics } from '../orders/metrics.js';
import { MysqlOutage } from '../orders/mysql-outage.js';
import { createOrderIdMinter } from '../orders/order-id-minter.js';
import { WorkerLoop } from '../orders/worker-loop.js';
import type { Log } from '../core/ports/log.js';
import { createBatchStore } from '../redis/batch-store.js';
import { createProgramReports } from '../redis/program-reports.js';
import { createDeliverySource } from '../rocketmq/delivery-source.js';
import { allOrNothing, type Opened } from '../process/all-or-nothing.js';
import { reportProgram } from './report-program.js';
import type { OpenProgram, Running } from './run-program.js';
import { wrapped } from '../process/seams.js';
import { brokerConnection, createReadiness, openSignedMessages, openStores, serversOf } from '../process/servers.js';
import { systemClock as clock } from '../process/system-clock.js';
import { createRegistry } from '../process/telemetry.js';

export type WorkerConfig = Config<(typeof PROGRAM_SECTIONS)['worker'][number]>;

/** The topics of batches that the broker committed, and of batches that the keeper published again. */
const CONSUMED = [
  { topic: TOPICS.purchase, group: GROUPS.writer },
  { topic: TOPICS.redrive, group: GROUPS.redriveWriter },
] as const;
const PROBE_EVERY_MS = 1000;

/** @throws OperationalError if a dependency does not answer at the start */
export async function startWorker(config: WorkerConfig, log: Log, fail: (error: unknown) => void): Promise<Running> {
  const worker = await openWorker(config, log, fail);
  const probe = await startProbeServer(worker, config.workerMetrics);
  return {
    ready: `worker consumes ${TOPICS.purchase}, metrics on http://${config.workerMetrics.host}:${probe.port}/metrics`,
    facts: { metricsPort: probe.port },
    async stop(): Promise<void> {
      await worker.drain();
      await probe.close();
      await worker.close();
    },
  };
}

/** @param fail receives bugs. @throws OperationalError if a dependency does not answer at the start */
export const openWorker = (config: OpenConfig, log: Log, fail: (error: unknown) => void): Promise<OpenProgram> =>
  allOrNothing((opened) => open(config, { log, fail, opened }));

type OpenConfig = Omit<WorkerConfig, 'workerMetrics' | 'log'>;
interface OpenParts {
  readonly log: Log;
  readonly fail: (error: unknown) => void;
  readonly opened: Opened;
}

async function open(config: OpenConfig, { log, fail, opened }: OpenParts): Promise<OpenProgram> {
  log.info({ servers: serversOf(config) }, 'starting with these servers');
  const registry = createRegistry('worker');
  const metrics = createWorkerMetrics(registry);
  const stores = await openStores(config, 'worker', { registry, log, opened });
  const { tracing, redis, mysql } = stores;

  const owner = ownerName();
  const leaseMs = config.order.slotLeaseMs;
  const minter = createOrderIdMinter(
    { slots: createWorkerSlots(mysql, config.mysql.cell), clock, log },
    { owner, leaseMs },
  );
  await minter.renew();
  const outage = new MysqlOutage(
    { probe: () => minter.renew(), clock, metrics, log },
    { probeEveryMs: PROBE_EVERY_MS },
  );
  void outage.watch(leaseMs / 3); // well before the lease ends, so that a few lost renewals do no harm
  opened(async () => {
    outage.shutdown();
    await minter.close();
  });

  const { endpoint, receiveWaitMs } = config.rocketmq;
  const { invisibleMs, loops, receiveMax, retryFirstMs } = config.worker;
  const { paymentWindowMs } = config.order;
  const connection = { ...brokerConnection(config, log), awaitMs: receiveWaitMs };
  const deadLetters = createDeadLetterParking(mysql);
  const messages = openSignedMessages(config.messages, { deadLetters, registry, log });
  const shared = {
    repository: wrapped('order repository', createOrderRepository(wrapped('mysql of the worker', mysql))),
    deadLetters,
    store: wrapped('batch store', createBatchStore(redis)),
    minter,
    outage,
    tracing,
    clock,
    metrics,
    log,
    onBug: fail,
  };
  const consumers = await Promise.all(
    CONSUMED.map(async (consumed) => {
      const source = await createDeliverySource({ ...consumed, ...connection, invisibleMs });
      opened(() => source.close());
      const loop = new WorkerLoop(
        { ...shared, source: wrapped('delivery source', messages.of(source, consumed)) },
        { ...consumed, loops, receiveMax, retryFirstMs, paymentWindowMs, renewMs: invisibleMs / 3 },
      );
      return { source, loop };
    }),
  );
  for (const { loop } of consumers) loop.start();
  // one broker serves both consumers
  const { tls } = connection;
  const ready = createReadiness({ redis, mysql, endpoint, tls, health: consumers[0]?.source.health, minter });
  const stopReporting = new AbortController();
  const reports = createProgramReports(redis, clock);
  const reporting = reportProgram({ kind: 'worker', reports, registry, ready, clock, log }, stopReporting.signal);

  return {
    ready,
    metricsPage: new MetricsPage(() => registry.metrics(), config.metrics, clock),
    async drain(): Promise<void> {
      const closed = Promise.all(consumers.map(({ source }) => source.close())); // receives in progress end by themselves
      await Promise.all(consumers.map(({ loop }) => loop.stop()));
      await closed;
      stopReporting.abort();
      await reporting;
      outage.shutdown();
      await minter.close();
    },
    close: () => stores.close(),
  };
}

/** Returns a name for the owner of a lease: the host, for people, and a random part, because pids are reused. */
function ownerName(): string {
  const host = hostname().replace(/[^A-Za-z0-9_-]/g, '-');
  return `${host.slice(0, 40)}-${randomBytes(8).toString('hex')}`;
}
