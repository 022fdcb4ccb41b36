import type { SaleFinding } from '../sale-finding.js';

/**
 * - `match`: nothing was found, and everything was compared
 * - `findings`: something was found
 * - `partly`: nothing was found, but not everything was compared: another run was working on a sale, a sale failed, the
 *   run was ended early, or a sale has more candidates than one run checks
 * - `none`: nothing was compared at all
 * - `failed`: a dependency failed, so the run says nothing
 */
export const RUN_OUTCOMES = ['match', 'findings', 'partly', 'none', 'failed'] as const;
export type RunOutcome = (typeof RUN_OUTCOMES)[number];

/** A run that has ended. Times in Unix ms on the clock of MySQL. */
export interface ReconcileRun {
  /** Decimal; grows with time. */
  readonly runId: string;
  /** Null if the run compared all sales. */
  readonly saleId: string | null;
  /** Whether the run created repair jobs for its findings. */
  readonly applied: boolean;
  readonly actor: string;
  readonly startedAtMs: number;
  /** Null if the run is still running or has died. */
  readonly finishedAtMs: number | null;
  readonly outcome: RunOutcome | null;
  readonly figures: Readonly<Record<string, number>>;
  /** The first findings. */
  readonly findings: readonly SaleFinding[];
}

export interface RunResult {
  readonly outcome: RunOutcome;
  readonly figures: Readonly<Record<string, number>>;
  readonly findings: readonly SaleFinding[];
}

/** The right to reconcile a sale, or the process that has it now. */
export type SaleLease =
  | { readonly outcome: 'held' }
  | { readonly outcome: 'taken'; readonly owner: string; readonly untilMs: number };

export interface RunFilter {
  readonly saleId?: string;
  /** Returns runs older than this id. */
  readonly beforeId?: string;
}

/** The record of runs, and the right to start one. */
export interface ReconcileRuns {
  /**
   * Takes or renews the right to reconcile a sale. Only one owner at a time has it. If the owner dies, the right ends
   * after `leaseMs`.
   * @param owner unique per run
   * @throws OperationalError mysql
   */
  lease(saleId: string, owner: string, leaseMs: number): Promise<SaleLease>;

  /**
   * Gives the right back. Does nothing if another process has it.
   * @throws OperationalError mysql
   */
  free(saleId: string, owner: string): Promise<void>;

  /**
   * Records that a run begins.
   * @returns the number of the run
   * @throws OperationalError mysql
   */
  begin(run: { readonly saleId: string | null; readonly applied: boolean; readonly actor: string }): Promise<string>;

  /** @throws OperationalError mysql */
  end(runId: string, result: RunResult): Promise<void>;

  /**
   * Removes the records of runs that began more than `keepMs` ago, at most `max`.
   * @returns the number of removed records
   * @throws OperationalError mysql
   */
  removeOld(keepMs: number, max: number): Promise<number>;

  /**
   * Lists runs, newest first.
   * @throws OperationalError mysql
   */
  list(filter: RunFilter, max: number): Promise<ReconcileRun[]>;
}
