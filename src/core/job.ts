import { EventEmitter, once } from 'node:events';
import type { LoopedSource } from './ports/channels.js';
import type { Clock } from './ports/clock.js';
import type { DueWork, ReadDueWork } from './ports/due-work.js';
import type { JobLeases } from './ports/job-leases.js';
import { OutageLog } from './outage-log.js';
import type { Log } from './ports/log.js';

/** Periodic work, bounded per run. May be repeated, even by two keepers at once. */
export interface Job {
  readonly name: string;
  /** Resolves when work is due, or when the signal aborts. If absent, the job looks for work itself. */
  untilDue?(signal: AbortSignal): Promise<unknown>;
  /** Errors are logged: a bug must not stop other jobs. @returns `idle`: found nothing and may pause longer */
  runOnce(): Promise<'idle' | void>;
}

/** A job and the pause between two runs of it, ms. */
export type PlannedJob = readonly [everyMs: number, job: Job];

/** Pause of a consumer before its next receive. A successful receive itself waits for messages. */
const RECEIVE_EVERY_MS = 200;

/** Returns one loop per broker: a receive waits at one broker, which would delay messages of the others. */
export const loopsOf = ({ loops }: LoopedSource, job: Job, everyMs = RECEIVE_EVERY_MS): PlannedJob[] =>
  Array.from({ length: loops }, () => [everyMs, job]);

interface LoopPorts {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: {
    /** Records the start of a run. @returns records its end */
    jobBegan(job: string): () => void;
    jobRan(job: string, result: 'done' | 'failed', tookMs: number): void;
  };
}

/** Sleeps to the next multiple of `everyMs`, so that loops with such pauses wake the process up together. */
export const toNextTick = (clock: Clock, everyMs: number, signal: AbortSignal): Promise<void> =>
  clock.sleep(everyMs - (clock.monotonicMs() % everyMs), signal);

/** The pause of an idle job grows by `everyMs` with each run, up to this many times. */
const IDLE_PAUSES_MAX = 5;

/**
 * Runs a job every `everyMs`, or less often while idle, until the signal aborts and the last run has ended. Jobs begin
 * together, so an idle keeper wakes up seldom and jobs share reads.
 */
export async function keepRunning(job: Job, everyMs: number, signal: AbortSignal, ports: LoopPorts): Promise<void> {
  const { clock, log, metrics } = ports;
  const messages = { begins: 'a keeper job failed and will run again', ends: 'a keeper job works again' };
  const outage = new OutageLog(log, messages, { job: job.name });
  let pauses = 1;
  for (;;) {
    // a job that failed runs again, so that its next success is counted
    if (job.untilDue !== undefined && !outage.isOut) await job.untilDue(signal);
    if (signal.aborted) return;
    const startedMs = clock.monotonicMs();
    const ended = metrics.jobBegan(job.name);
    try {
      const isIdle = (await job.runOnce()) === 'idle';
      pauses = isIdle ? Math.min(pauses + 1, IDLE_PAUSES_MAX) : 1;
      metrics.jobRan(job.name, 'done', clock.monotonicMs() - startedMs);
      outage.end();
    } catch (err) {
      metrics.jobRan(job.name, 'failed', clock.monotonicMs() - startedMs);
      pauses = 1;
      outage.failed(err);
    } finally {
      ended();
    }
    await clock.sleep(everyMs * pauses - (clock.monotonicMs() % everyMs), signal);
  }
}

/** Finds the work of many jobs with one read. Until their work is due, these jobs cost nothing. */
export function dueJobs(readDue: ReadDueWork) {
  const found = new EventEmitter().setMaxListeners(0);
  const find: Job = {
    name: 'find-due-work',
    async runOnce(): Promise<void> {
      try {
        for (const work of await readDue()) found.emit(work);
      } catch (error) {
        if (found.listenerCount('error') > 0) found.emit('error', error); // all jobs begin and notice the outage
        throw error;
      }
    },
  };
  const of = (work: DueWork, job: Job): Job => ({
    ...job,
    untilDue: (signal) => once(found, work, { signal }).catch(() => undefined),
  });
  return { find, of };
}

/** Maximum number of rows that one statement changes. The statement then takes some tens of ms. */
const ROWS_PER_STEP = 1_000;
/** Maximum number of statements in one run. They change more rows per minute than workers and keepers write. */
const STEPS_MAX = 600;

/**
 * Changes rows step by step, so no statement takes long.
 * @param step changes at most `max` rows, and returns their number
 * @param stopping ends the run early
 */
export async function inSteps(step: (max: number) => Promise<number>, stopping?: AbortSignal): Promise<void> {
  for (let steps = 1; steps <= STEPS_MAX && stopping?.aborted !== true; steps++) {
    if ((await step(ROWS_PER_STEP)) < ROWS_PER_STEP) return; // nothing is left
  }
}

/** Minimum interval between two log lines about a bug that occurs again and again. */
const LOG_AGAIN_MS = 10_000;

/**
 * Logs bugs in code that serves only people, where they do not end the process.
 * @param message what failed to happen
 * @param everyMs between two lines
 */
export function bugLog(
  message: string,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  everyMs = LOG_AGAIN_MS,
): (err: unknown) => void {
  let loggedMs = -Infinity;
  return (err) => {
    if (clock.monotonicMs() - loggedMs < everyMs) return;
    loggedMs = clock.monotonicMs();
    log.error({ err }, `a bug: ${message}`);
  };
}

/** Length of the lease of a job, in pauses. The owner may be late with one run. */
const LEASE_PAUSES = 3;

/** The owner of a job lease, and the pause between two runs. */
export interface LeaseOptions {
  /** Unique per process. */
  readonly owner: string;
  readonly everyMs: number;
}

/**
 * Publishes figures for all keepers. The owner of the lease reads them; the others, or an owner that fails to read,
 * publish null, because old figures would look like new ones.
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
