import type { CompensatedKind } from '../sale-finding.js';

/**
 * `pending` → `compensated` | `failed_final`. A `compensated` job reopens if its subject is found again, a
 * `failed_final` job only if an operator retries it.
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
  /** When the job is due. During work on it: when it is due again if that process dies. */
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
 * - `added`: new; `reopened`: compensated before, now pending again
 * - `already_pending`: found before
 * - `failed_final`: the attempts had been given up; nothing was changed
 */
export type Added = 'added' | 'reopened' | 'already_pending' | 'failed_final';

export type JobEnd = 'done' | 'not_pending' | 'not_found';

/** `retried`: due now, with attempts from 0. `compensated`: nothing to do. */
export type Retried = 'retried' | 'compensated' | 'not_found';

/** The number of jobs to claim, and the length of the lease. */
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
 * The ordered repairs. Several processes may claim at once; each job goes to one. Every change except a failed attempt
 * writes to the audit log in the same transaction. Methods throw OperationalError mysql.
 */
export interface CompensationRepository {
  /** Creates at most one job per kind and subject. Returns one word per job, in order. After an error, add again. */
  add(jobs: readonly NewCompensationJob[], actor: string): Promise<Added[]>;

  list(filter: JobFilter, page: JobPage): Promise<CompensationJob[]>;

  find(jobId: string): Promise<CompensationJob | null>;

  /** Returns the jobs of one request, oldest first. */
  byRequest(saleId: string, userId: string, requestId: string): Promise<CompensationJob[]>;

  /** Returns the jobs of the purchases of one batch, oldest first. */
  byBatch(batchId: string): Promise<CompensationJob[]>;

  /** Counts the jobs in each state, up to 10,000. Every state has an entry. */
  counts(): Promise<Readonly<Record<JobState, number>>>;

  /** Claims due pending jobs, longest overdue first. The claim itself is no attempt. */
  claim(claim: Claim): Promise<CompensationJob[]>;

  /** Ends a job as `compensated`. */
  done(jobId: string, actor: string, note: string): Promise<JobEnd>;

  /** Ends a job as `failed_final`. */
  failed(jobId: string, actor: string, error: string): Promise<JobEnd>;

  /**
   * Makes a claimed job due again in `delayMs`, with the error. A job that has ended stays unchanged.
   * @param attempt `counts` if it failed; `given_back` if none could be made
   */
  postpone(jobId: string, delayMs: number, error: string, attempt: 'counts' | 'given_back'): Promise<void>;

  /** Lets a job start again with its first attempt. */
  retry(jobId: string, actor: string): Promise<Retried>;

  /** Writes to the audit log before a step that cannot be in a transaction. */
  announce(jobId: string, actor: string, action: string, before: unknown, after: unknown): Promise<void>;

  /** Removes at most `max` compensated jobs last claimed over `keepMs` ago; returns their number. Keeps failed ones. */
  removeOld(keepMs: number, max: number): Promise<number>;
}
