import { SaleInRepair } from './errors.js';
import type { Clock } from './ports/clock.js';
import type { DueWork, ReadDueWork } from './ports/due-work.js';
import type { JobLeases } from './ports/job-leases.js';
import type { Log } from './ports/log.js';

/** Periodic work. One run does a bounded amount and may be repeated, by two keepers at once too. */
export interface Job {
  readonly name: string;
  /**
   * Whatever it throws is logged, and the next run tries again: a bug in one job must not stop the others.
   * @returns `idle` if it found nothing, and whatever comes may wait for a longer pause
   */
  runOnce(): Promise<'idle' | void>;
}

interface LoopPorts {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: {
    /** A run begins. @returns ends it */
    jobBegan(job: string): () => void;
    jobRan(job: string, result: 'done' | 'failed', tookMs: number): void;
  };
}

/** What runs five times a second and fails each time is logged so often: an outage must not fill the disk. */
const LOG_AGAIN_MS = 10_000;

/** The pause of a job that finds nothing grows by `everyMs` with each run, up to this many times `everyMs`. */
const IDLE_PAUSES_MAX = 5;

/**
 * Runs a job once in `everyMs`, or less often while it is idle, until the signal aborts; resolves when the last run has ended.
 * Jobs with the same pause begin together: an idle keeper wakes up seldom, and they share what they read.
 */
export async function keepRunning(job: Job, everyMs: number, signal: AbortSignal, ports: LoopPorts): Promise<void> {
  const { clock, log, metrics } = ports;
  let failures = 0;
  let loggedMs = -Infinity;
  let pauses = 1;
  while (!signal.aborted) {
    const startedMs = clock.monotonicMs();
    const ended = metrics.jobBegan(job.name);
    try {
      const isIdle = (await job.runOnce()) === 'idle';
      pauses = isIdle ? Math.min(pauses + 1, IDLE_PAUSES_MAX) : 1;
      metrics.jobRan(job.name, 'done', clock.monotonicMs() - startedMs);
      if (failures > 1) log.info({ job: job.name, failures }, 'a keeper job runs again');
      failures = 0;
    } catch (err) {
      metrics.jobRan(job.name, 'failed', clock.monotonicMs() - startedMs);
      pauses = 1;
      failures++;
      if (failures === 1 || clock.monotonicMs() - loggedMs >= LOG_AGAIN_MS) {
        loggedMs = clock.monotonicMs();
        if (err instanceof SaleInRepair)
          log.info({ job: job.name, error: err.message }, 'a keeper job waits for a sale that is being rebuilt');
        else log.warn({ err, job: job.name, failures }, 'a keeper job failed and will run again');
      }
    } finally {
      ended();
    }
    await clock.sleep(everyMs * pauses - (clock.monotonicMs() % everyMs), signal);
  }
}

/** Runs the job only while it has work. The pause does not grow: work begins as soon as before. */
export const whenDue = (work: DueWork, readDue: ReadDueWork, job: Job): Job => ({
  name: job.name,
  runOnce: async () => ((await readDue()).has(work) ? job.runOnce() : undefined),
});

/**
 * For what runs beside a sale and is for people only, such as what a console shows: a bug in it is logged, as seldom as that of a
 * job, and ends nothing.
 * @param message what did not happen
 * @param everyMs at most one line in this time
 */
export function bugLog(
  message: string,
  { clock, log }: { readonly clock: Pick<Clock, 'monotonicMs'>; readonly log: Pick<Log, 'error'> },
  everyMs = LOG_AGAIN_MS,
): (err: unknown) => void {
  let loggedMs = -Infinity;
  return (err) => {
    if (clock.monotonicMs() - loggedMs < everyMs) return;
    loggedMs = clock.monotonicMs();
    log.error({ err }, `a bug: ${message}`);
  };
}

/** In pauses: one run may be late. */
const LEASE_PAUSES = 3;

/** Which process asks for the lease of a job, and how long it pauses between two runs. */
export interface LeaseOptions {
  /** Unique per process. */
  readonly owner: string;
  readonly everyMs: number;
}

/**
 * A job that publishes figures for all keepers: the one that has the lease looks. The others publish null, and so does one
 * whose look fails: old figures would look like new ones.
 */
export function publishedByOne<F>(
  name: string,
  leases: JobLeases,
  { owner, everyMs }: LeaseOptions,
  { look, publish }: { readonly look: () => Promise<F>; readonly publish: (figures: F | null) => void },
): Job {
  return {
    name,
    async runOnce(): Promise<void> {
      try {
        const isOurs = await leases.hold(name, owner, LEASE_PAUSES * everyMs);
        publish(isOurs ? await look() : null);
      } catch (error) {
        publish(null);
        throw error;
      }
    },
  };
}
