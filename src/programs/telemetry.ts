import { pino } from 'pino';
import { collectDefaultMetrics, Histogram, Registry } from 'prom-client';
import type { Log } from '../core/ports/log.js';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** JSON lines on stderr, one per event, so that stdout stays free for what a command prints. */
export function createLog(program: string, level: LogLevel): Log {
  const options = { level, base: { program, pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime };
  return pino(options, pino.destination({ fd: 2, sync: true }));
}

/** One registry of metrics per process, with what Node itself measures: memory, handles, event loop. */
export function createRegistry(program: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ program });
  collectDefaultMetrics({ register: registry });
  return registry;
}

/** How long the runs of background jobs take. */
export function createJobMetrics(registry: Registry) {
  const runs = new Histogram({
    name: 'seckill_keeper_job_seconds',
    help: 'Runs of a job by result.',
    labelNames: ['job', 'result'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [registry],
  });
  return {
    jobRan: (job: string, result: 'done' | 'failed', tookMs: number): void =>
      runs.labels(job, result).observe(tookMs / 1000),
  };
}
