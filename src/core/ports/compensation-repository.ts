import type { CompensatedKind } from '../sale-finding.js';

/**
 * `pending` → `compensated` | `failed_final`. Attempts, the last error and the time of the next try
 * are columns. A `compensated` job opens again when the same subject is found once more; a `failed_final` one only when
 * an operator retries it.
 */
export const JOB_STATES = ['pending', 'compensated', 'failed_final'] as const;
export type JobState = (typeof JOB_STATES)[number];

/** What is to be repaired; one job for each kind and subject. */
export interface NewCompensationJob {
  readonly kind: CompensatedKind;
  readonly saleId: string;
  /** What it is about, as `subjectOf` says it. */
  readonly subject: string;
  readonly batchId: string | null;
  readonly userId: string | null;
  readonly requestId: string | null;
  /** What was found, for a person. */
  readonly detail: string;
}

/** Times in Unix ms on the clock of MySQL. */
export interface CompensationJob extends NewCompensationJob {
  /** Decimal; grows with time. */
  readonly jobId: string;
  readonly state: JobState;
  /** How often it was tried without success; an outage is no attempt. */
  readonly attempts: number;
  /** When it is due; while it is being worked on: when it is due again if that process dies. */
  readonly availableAtMs: number;
  /** The error of the last attempt, or how the job ended; null before the first attempt. */
  readonly lastError: string | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** Every condition that is there must hold. */
export interface JobFilter {
  readonly state?: JobState;
  readonly kind?: CompensatedKind;
  readonly saleId?: string;
}

/** One page, oldest job first. */
export interface JobPage {
  readonly afterId?: string;
  readonly max: number;
}

/**
 * - `added`: there is a new job; `reopened`: it was compensated before, and is pending again
 * - `already_pending`: it was found before
 * - `failed_final`: it was given up; nothing was changed
 */
export type Added = 'added' | 'reopened' | 'already_pending' | 'failed_final';

export type JobEnd = 'done' | 'not_pending' | 'not_found';

/**
 * - `retried`: it is pending and due now, with all its attempts before it
 * - `compensated`: there is nothing to do
 */
export type Retried = 'retried' | 'compensated' | 'not_found';

/** How many jobs a claim takes, and for how long. */
export interface Claim {
  readonly max: number;
  /** After this a job that is neither ended nor postponed is due again. */
  readonly leaseMs: number;
  /** The longest pause that the caller asks for when it postpones a job, ms; default 15 minutes. */
  readonly pauseMaxMs?: number;
  /** Only jobs of this sale. */
  readonly saleId?: string;
}

/**
 * The repairs that were ordered. Several processes may claim at once, none gets what another has. Every change that is
 * no attempt leaves a row in the audit log, in the same transaction: who, what, the job before and after.
 */
export interface CompensationRepository {
  /**
   * Makes jobs, at most one per kind and subject.
   * @returns one word per job, in order
   * @throws OperationalError mysql; some may have been made, so add them again
   */
  add(jobs: readonly NewCompensationJob[], actor: string): Promise<Added[]>;

  /** @throws OperationalError mysql */
  list(filter: JobFilter, page: JobPage): Promise<CompensationJob[]>;

  /** @throws OperationalError mysql */
  find(jobId: string): Promise<CompensationJob | null>;

  /**
   * The jobs of one request, oldest first.
   * @throws OperationalError mysql
   */
  byRequest(saleId: string, userId: string, requestId: string): Promise<CompensationJob[]>;

  /**
   * The jobs of the purchases of one batch, oldest first.
   * @throws OperationalError mysql
   */
  byBatch(batchId: string): Promise<CompensationJob[]>;

  /**
   * How many jobs are in each state, counted up to 10,000; every state has its entry.
   * @throws OperationalError mysql
   */
  counts(): Promise<Readonly<Record<JobState, number>>>;

  /**
   * Pending jobs that are due, those first that are due for longest; each is ours for `leaseMs`. No attempt counts yet.
   * @throws OperationalError mysql; some may have been claimed, so they come after `leaseMs`
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
   * Makes a claimed job due again in `delayMs`, and stores the error. A job that has ended stays as it is.
   * @param attempt `counts`: one was made, without success; `given_back`: it could not be made
   * @throws OperationalError mysql
   */
  postpone(jobId: string, delayMs: number, error: string, attempt: 'counts' | 'given_back'): Promise<void>;

  /**
   * Gives a job a new run of attempts.
   * @throws OperationalError mysql
   */
  retry(jobId: string, actor: string): Promise<Retried>;

  /**
   * Leaves a row in the audit log, before a step that cannot be part of a transaction.
   * @throws OperationalError mysql
   */
  announce(jobId: string, actor: string, action: string, before: unknown, after: unknown): Promise<void>;

  /**
   * Removes at most `max` jobs that were compensated, and last claimed longer ago than `keepMs`. Those that failed stay.
   * @returns how many
   * @throws OperationalError mysql
   */
  removeOld(keepMs: number, max: number): Promise<number>;
}
