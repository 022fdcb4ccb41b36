import { pino } from 'pino';
import type { Log } from '../core/ports/log.js';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** JSON lines on stderr, one per event, so that stdout stays free for what a command prints. */
export function createLog(program: string, level: LogLevel): Log {
  const options = { level, base: { program, pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime };
  return pino(options, pino.destination({ fd: 2, sync: true }));
}
