import type { Clock } from '../ports/clock.js';
import type { KeeperMeters } from '../ports/keeper-meters.js';
import type { Log } from '../ports/log.js';

/** Periodic work. One run does a bounded amount and may be repeated, by two keepers at once too. */
export interface Job {
  readonly name: string;
  /** @throws OperationalError; the next run tries again */
  runOnce(): Promise<void>;
}

export interface LoopPorts {
  readonly clock: Clock;
  readonly log: Log;
  readonly meters: KeeperMeters;
}

/** Runs a job again and again, `everyMs` apart, until the signal aborts; resolves when the last run has ended. */
export async function keepRunning(job: Job, everyMs: number, signal: AbortSignal, ports: LoopPorts): Promise<void> {
  const { clock, log, meters } = ports;
  while (!signal.aborted) {
    const startedMs = clock.nowMs();
    try {
      await job.runOnce();
      meters.jobRan(job.name, 'done', clock.nowMs() - startedMs);
    } catch (err) {
      meters.jobRan(job.name, 'failed', clock.nowMs() - startedMs);
      log.warn({ err, job: job.name }, 'a keeper job failed and will run again');
    }
    await clock.sleep(everyMs, signal);
  }
}
