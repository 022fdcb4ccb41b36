import type { Config } from '../core/config/schema.js';
import type { Log } from '../core/ports/log.js';
import { SHADOW_GROUP, TOPICS } from '../core/topics.js';
import { MetricsPage } from '../http/metrics-page.js';
import { startProbeServer } from '../http/probe-server.js';
import { openMysqlPool } from '../mysql/pool.js';
import { createShadowStore } from '../mysql/shadow-store.js';
import { createShadowMetrics, Shadow } from '../orders/shadow.js';
import { allOrNothing, type Opened } from '../process/all-or-nothing.js';
import { wrapped } from '../process/seams.js';
import { brokerConnection, openSignedMessages } from '../process/servers.js';
import { systemClock as clock } from '../process/system-clock.js';
import { createRegistry } from '../process/telemetry.js';
import { createDeliverySource } from '../rocketmq/delivery-source.js';
import type { Running } from './run-program.js';
import type { WorkerConfig } from './worker.js';

/** Opens MySQL read-only, and no Redis. @param forMs null: until stopped. @throws OperationalError at the start */
export const startShadow = (
  config: WorkerConfig,
  log: Log,
  { forMs, fail }: { readonly forMs: number | null; readonly fail: (error: unknown) => void },
): Promise<Running> => allOrNothing((opened) => start(config, { log, forMs, fail, opened }));

interface StartParts {
  readonly log: Log;
  readonly forMs: number | null;
  readonly fail: (error: unknown) => void;
  readonly opened: Opened;
}

async function start(config: WorkerConfig, { log, forMs, fail, opened }: StartParts): Promise<Running> {
  const registry = createRegistry('worker');
  const mysql = openMysqlPool({ ...config.mysql, isReadOnly: true });
  opened(() => mysql.close());
  await mysql.probe();
  const consumed = { topic: TOPICS.purchase, group: SHADOW_GROUP };
  const connection = { ...brokerConnection(config, log), awaitMs: config.rocketmq.receiveWaitMs };
  const { invisibleMs, loops, receiveMax } = config.worker;
  const source = await createDeliverySource({ ...consumed, ...connection, invisibleMs });
  opened(() => source.close());
  const messages = openSignedMessages(config.messages, { deadLetters: NOT_PARKED, registry, log });
  const shadow = new Shadow(
    {
      source: messages.of(source, consumed),
      store: createShadowStore(mysql),
      wrap: (repository) => wrapped('order repository', repository),
      clock,
      metrics: createShadowMetrics(registry),
      log,
    },
    { loops, receiveMax, paymentWindowMs: config.order.paymentWindowMs },
  );
  const stopping = new AbortController();
  const { signal } = stopping;
  const running = shadow.run(signal).catch(fail);
  const probe = await startProbeServer(
    { ready: readinessOf(source.health), metricsPage: metricsPageOf(registry, config) },
    config.workerMetrics,
  );
  return {
    ready: `shadow consumes ${TOPICS.purchase} and writes nothing, metrics on http://${config.workerMetrics.host}:${probe.port}/metrics`,
    facts: { metricsPort: probe.port },
    ...(forMs === null ? {} : { over: clock.sleep(forMs, signal) }),
    exitCode(): number {
      const { isSame, ...counts } = shadow.result;
      log.info(counts, isSame ? 'no difference' : 'the builds differ, or too little was compared');
      return isSame ? 0 : 1;
    },
    async stop(): Promise<void> {
      stopping.abort();
      await Promise.all([source.close(), running]);
      await probe.close();
      await mysql.close();
    },
  };
}

/** Parks nothing, because the workers park forged messages. */
const NOT_PARKED = { park: async () => 'already_parked' as const };

const readinessOf = (health: { readonly lastError: string | null; isFailing(): boolean }) => async () => {
  const ok = !health.isFailing();
  const detail = ok ? 'answers' : (health.lastError ?? 'does not answer');
  return { ready: ok, dependencies: [{ name: 'rocketmq', ok, detail }] };
};

const metricsPageOf = (registry: ReturnType<typeof createRegistry>, config: Config<'metrics'>): MetricsPage =>
  new MetricsPage(() => registry.metrics(), config.metrics, clock);
