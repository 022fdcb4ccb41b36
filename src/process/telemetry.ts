import { pino } from 'pino';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { metricMakers } from '../core/metric-makers.js';
import type { Log } from '../core/ports/log.js';
import { version } from './version.js';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** Writes JSON lines to stderr, one per event, so that stdout is free for the output of a command. */
export function createLog(program: string, level: LogLevel): Log {
  const base = { program, pid: process.pid };
  const options = { level, base, timestamp: pino.stdTimeFunctions.isoTime, serializers: { err: loggedError } };
  return pino(options, pino.destination({ fd: 2, sync: true }));
}

/**
 * Serializes a Redis error without the command that it carries, because the command of a refused login contains the
 * password.
 */
export function loggedError(error: Error): unknown {
  const logged: unknown = pino.stdSerializers.err(error);
  if (typeof logged !== 'object' || logged === null) return logged;
  const { command: _command, previousErrors: _previous, aggregateErrors, ...rest } = logged as Record<string, unknown>;
  if (!Array.isArray(aggregateErrors)) return rest;
  return { ...rest, aggregateErrors: aggregateErrors.map((one: { message?: unknown }) => String(one.message)) };
}

/** Interval of the timer that measures the event loop lag. Each time, it wakes up an idle process. */
const LAG_TIMER_MS = 250;

/** Creates the metrics registry of a process, with its version and Node's own metrics: memory, handles, event loop. */
export function createRegistry(program: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ program });
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_TIMER_MS });
  createBuildInfo(registry);
  return registry;
}

/** Creates a series that exists while the program runs. Alerts on missing programs use it. */
export function createBuildInfo(registry: Registry): void {
  const { gauge } = metricMakers(registry);
  gauge('seckill_build_info', 'Always 1. The labels say which version of Seckill and of Node the program runs.', [
    'version',
    'node',
  ])
    .labels(version, process.version)
    .set(1);
}

/** Records how long each caller of MySQL waited for a connection, in ms. */
export function createPoolWaits(registry: Registry): (waitedMs: number) => void {
  const { histogram } = metricMakers(registry);
  const waits = histogram(
    'seckill_mysql_pool_wait_seconds',
    'Time that a caller waited for a MySQL connection. If it grows, MYSQL_POOL_MAX is too small or MySQL is slow.',
    { buckets: [0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5] },
  );
  return (waitedMs) => waits.observe(waitedMs / 1000);
}

/** Measures the runs of background jobs. */
export function createJobMetrics(registry: Registry) {
  const { histogram } = metricMakers(registry);
  // The label is not `job`: Prometheus has a label of that name and would rename ours.
  const runs = histogram('seckill_keeper_job_seconds', 'Runs of a job by result.', { labelNames: ['task', 'result'] });
  const running = new Set<{ readonly job: string; readonly sinceMs: number }>();
  new Gauge({
    name: 'seckill_keeper_job_running_seconds',
    help: 'How long the oldest unfinished run of a job has been running.',
    labelNames: ['task'],
    registers: [registry],
    collect() {
      this.reset();
      const longest = new Map<string, number>();
      for (const { job, sinceMs } of running)
        longest.set(job, Math.max(longest.get(job) ?? 0, performance.now() - sinceMs));
      for (const [job, ms] of longest) this.labels(job).set(ms / 1000);
    },
  });
  return {
    /**
     * Records the start of a run.
     * @returns a function that records its end
     */
    jobBegan(job: string): () => void {
      const run = { job, sinceMs: performance.now() };
      running.add(run);
      return () => void running.delete(run);
    },
    jobRan: (job: string, result: 'done' | 'failed', tookMs: number): void =>
      runs.labels(job, result).observe(tookMs / 1000),
  };
}
