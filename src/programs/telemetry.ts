import { pino } from 'pino';
import { collectDefaultMetrics, Registry } from 'prom-client';
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
