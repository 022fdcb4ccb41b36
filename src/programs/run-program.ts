import type { Log } from '../core/ports/log.js';
import type { MetricsPage } from '../http/metrics-page.js';
import type { ReadyReport } from '../http/services.js';
import { isClientShutdownNoise } from '../rocketmq/client-options.js';

export interface Running {
  /** A line for a person, such as addresses and topics. */
  readonly ready: string;
  /** Facts for the process that started the program, such as ports. */
  readonly facts: Readonly<Record<string, string | number>>;
  /** Drains and closes, within its own time limits. */
  stop(): Promise<void>;
  /** Resolves when the program has done its work. If absent, the program runs until it is stopped. */
  readonly over?: Promise<void>;
  /** Called after `stop`, unless there was a bug. If absent, the exit code is 0. */
  exitCode?(): number;
}

/** A running worker or keeper that has neither a probe server nor its own process. */
export interface OpenProgram {
  readonly ready: () => Promise<ReadyReport>;
  readonly metricsPage: MetricsPage;
  /** Starts no more work and finishes the work in progress, within its own time limits. */
  drain(): Promise<void>;
  /** Call after `drain`. */
  close(): Promise<void>;
}

/** Longer than any drain. After this time, the process exits anyway. A supervisor must allow more time than this. */
export const STOP_TIMEOUT_MS = 20_000;
/** Time to report why a start failed. */
const FAILED_START_EXIT_MS = 500;

/** Runs until SIGTERM, SIGINT or its supervisor ends. Exits 1 after a bug, for a restart. @throws like `start` */
export async function runProgram(log: Log, start: (fail: (error: unknown) => void) => Promise<Running>): Promise<void> {
  let running: Running | null = null;
  let stopping = false;

  const stop = async (endCode: number, why: string): Promise<void> => {
    let exitCode = endCode;
    if (stopping) return;
    stopping = true;
    log.info({ why }, 'stopping');
    const timer = setTimeout(() => process.exit(exitCode), STOP_TIMEOUT_MS);
    timer.unref();
    try {
      await running?.stop();
      if (exitCode === 0) exitCode = running?.exitCode?.() ?? 0;
    } catch (err) {
      log.error({ err }, 'stopping failed');
    }
    log.info({ exitCode }, 'stopped');
    process.exit(exitCode);
  };
  const fail = (err: unknown): void => {
    log.error({ err }, 'a bug: draining, then exit 1');
    void stop(1, 'bug');
  };

  const supervised = process.send !== undefined;
  process.on('SIGTERM', () => void stop(0, 'SIGTERM'));
  // A supervisor stops its programs in order, so this process ignores Ctrl-C and a closed terminal.
  for (const signal of ['SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => (supervised ? undefined : void stop(0, signal)));
  }
  if (supervised) process.on('disconnect', () => void stop(0, 'the supervisor has ended'));
  process.on('uncaughtException', (error) => {
    if (isClientShutdownNoise(error)) log.debug({ err: error }, 'rocketmq client noise');
    else fail(error);
  });
  process.on('unhandledRejection', fail);

  try {
    running = await start(fail);
  } catch (error) {
    // the caller reports the error; after that, no open handle may keep the process alive
    setTimeout(() => process.exit(), FAILED_START_EXIT_MS).unref();
    throw error;
  }
  log.info(running.facts, running.ready);
  process.send?.({ ready: running.ready, facts: running.facts });
  void running.over?.then(() => stop(0, 'it is done'));
}
