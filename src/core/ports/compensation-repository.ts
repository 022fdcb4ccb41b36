import type { CompensatedKind } from '../sale-finding.js';

/**
 * `pending` → `compensated` | `failed_final`. Columns hold the number of attempts, the last error and the time of the
 * next attempt. A `compensated` job reopens if the same subject is found again. A `failed_final` job reopens only if an
 * operator retries it.
 */
export const JOB_STATES = ['pending', 'compensated', 'failed_final'] as const;
export type JobState = (typeof JOB_STATES)[number];

/** A repair to do. There is at most one job for each kind and subject. */
export interface NewCompensationJob {
  readonly kind: CompensatedKind;
  readonly saleId: string;
  /** The subject of the repair, as built by `subjectOf`. */
  readonly subject: string;
  readonly batchId: string | null;
  readonly userId: string | null;
  readonly requestId: string | null;
  /** Description of the finding, for people. */
  readonly detail: string;
}

/** Times in Unix ms on the clock of MySQL. */
export interface CompensationJob extends NewCompensationJob {
  /** Decimal; grows with time. */
  readonly jobId: string;
  readonly state: JobState;
  /** Number of failed attempts. An attempt that an outage prevented does not count. */
  readonly attempts: number;
  /** When the job is due. While a process works on it, when it will be due again if that process dies. */
  readonly availableAtMs: number;
  /** The error of the last attempt, or how the job ended. Null before the first attempt. */
  readonly lastError: string | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** Conditions that must all hold. An absent condition matches every job. */
export interface JobFilter {
  readonly state?: JobState;
  readonly kind?: CompensatedKind;
  readonly saleId?: string;
}

/** A page of jobs, oldest first. */
export interface JobPage {
  readonly afterId?: string;
  readonly max: number;
}

/**
 * - `added`: a new job; `reopened`: the job was compensated before, and is pending again
 * - `already_pending`: the job was found before
 * - `failed_final`: the attempts had been given up; nothing was changed
 */
export type Added = 'added' | 'reopened' | 'already_pending' | 'failed_final';

export type JobEnd = 'done' | 'not_pending' | 'not_found';

/**
 * - `retried`: the job is pending and due now, and its attempts count from 0 again
 * - `compensated`: there is nothing to do
 */
export type Retried = 'retried' | 'compensated' | 'not_found';

/** How many jobs a claim takes, and for how long. */
export interface Claim {
  readonly max: number;
  /** Length of the lease, ms. A job that is neither ended nor postponed by then is due again. */
  readonly leaseMs: number;
  /** Longest pause with which the caller postpones a job, ms. Default: 15 minutes. */
  readonly pauseMaxMs?: number;
  /** If set, claims only jobs of this sale. */
  readonly saleId?: string;
}

/**
 * Stores the ordered repairs. Several processes may claim at once; no job is given to two of them. Every change except
 * a failed attempt writes a row to the audit log in the same transaction: actor, action, and the job before and after.
 */
export interface CompensationRepository {
  /**
   * Creates jobs, at most one per kind and subject.
   * @returns one word per job, in order
   * @throws OperationalError mysql; some jobs may have been created, so add them again
   */
  add(jobs: readonly NewCompensationJob[], actor: string): Promise<Added[]>;

  /** @throws OperationalError mysql */
  list(filter: JobFilter, page: JobPage): Promise<CompensationJob[]>;

  /** @throws OperationalError mysql */
  find(jobId: string): Promise<CompensationJob | null>;

  /**
   * Returns the jobs of one request, oldest first.
   * @throws OperationalError mysql
   */
  byRequest(saleId: string, userId: string, requestId: string): Promise<CompensationJob[]>;

  /**
   * Returns the jobs of the purchases of one batch, oldest first.
   * @throws OperationalError mysql
   */
  byBatch(batchId: string): Promise<CompensationJob[]>;

  /**
   * Counts the jobs in each state, up to 10,000. Every state has an entry.
   * @throws OperationalError mysql
   */
  counts(): Promise<Readonly<Record<JobState, number>>>;

  /**
   * Claims due pending jobs for `leaseMs`, longest overdue first. The claim itself does not count as an
   * attempt.
   * @throws OperationalError mysql; some jobs may have been claimed and are due again after `leaseMs`
   */
  claim(claim: Claim): Promise<CompensationJob[]>;

  /**
   * Ends a job as `compensated`.
   * @throws OperationalError mysql
   */
  done(jobId: string, actor: string, note: string): Promise<JobEnd>;

  /**
   * Ends a job as `failed_final`.
   * @throws OperationalError mysql
   */
  failed(jobId: string, actor: string, error: string): Promise<JobEnd>;

  /**
   * Makes a claimed job due again in `delayMs` and stores the error. A job that has ended stays unchanged.
   * @param attempt `counts` if an attempt failed; `given_back` if no attempt could be made
   * @throws OperationalError mysql
   */
  postpone(jobId: string, delayMs: number, error: string, attempt: 'counts' | 'given_back'): Promise<void>;

  /**
   * Lets a job start again with its first attempt.
   * @throws OperationalError mysql
   */
  retry(jobId: string, actor: string): Promise<Retried>;

  /**
   * Writes a row to the audit log before a step that cannot be part of a transaction.
   * @throws OperationalError mysql
   */
  announce(jobId: string, actor: string, action: string, before: unknown, after: unknown): Promise<void>;

  /**
   * Removes at most `max` compensated jobs whose last claim is older than `keepMs`. Failed jobs are kept.
   * @returns the number of removed jobs
   * @throws OperationalError mysql
   */
  removeOld(keepMs: number, max: number): Promise<number>;
}
