import type { SaleFinding } from '../sale-finding.js';

/**
 * - `match`: nothing was found, and everything was compared
 * - `findings`: something was found
 * - `partly`: nothing was found, but not everything was compared: a sale was taken by another run or failed, the run was
 *   ended early, or a sale has more candidates than one run checks
 * - `none`: nothing was compared at all
 * - `failed`: a dependency failed, so the run says nothing
 */
export const RUN_OUTCOMES = ['match', 'findings', 'partly', 'none', 'failed'] as const;
export type RunOutcome = (typeof RUN_OUTCOMES)[number];

/** A run that has ended. Times in Unix ms on the clock of MySQL. */
export interface ReconcileRun {
  /** Decimal; grows with time. */
  readonly runId: string;
  /** Null: of all sales. */
  readonly saleId: string | null;
  /** Whether it made jobs of what it found. */
  readonly applied: boolean;
  readonly actor: string;
  readonly startedAtMs: number;
  /** Null: it runs, or it died. */
  readonly finishedAtMs: number | null;
  readonly outcome: RunOutcome | null;
  /** What was counted, by name. */
  readonly figures: Readonly<Record<string, number>>;
  /** The first of what was found. */
  readonly findings: readonly SaleFinding[];
}

export interface RunResult {
  readonly outcome: RunOutcome;
  readonly figures: Readonly<Record<string, number>>;
  readonly findings: readonly SaleFinding[];
}

/** Who holds the right to reconcile a sale. */
export type SaleLease =
  | { readonly outcome: 'held' }
  | { readonly outcome: 'taken'; readonly owner: string; readonly untilMs: number };

export interface RunFilter {
  readonly saleId?: string;
  /** Older than this one. */
  readonly beforeId?: string;
}

/** The record of runs, and the right to make one. */
export interface ReconcileRuns {
  /**
   * Takes the right to reconcile a sale, or keeps it. One at a time; the right of a dead owner ends with `leaseMs`.
   * @param owner unique per run
   * @throws OperationalError mysql
   */
  lease(saleId: string, owner: string, leaseMs: number): Promise<SaleLease>;

  /**
   * Gives it back; nothing happens when another process has it.
   * @throws OperationalError mysql
   */
  free(saleId: string, owner: string): Promise<void>;

  /**
   * Notes that a run begins.
   * @returns its number
   * @throws OperationalError mysql
   */
  begin(run: { readonly saleId: string | null; readonly applied: boolean; readonly actor: string }): Promise<string>;

  /** @throws OperationalError mysql */
  end(runId: string, result: RunResult): Promise<void>;

  /**
   * Removes the records of runs that began longer ago.
   * @returns how many
   * @throws OperationalError mysql
   */
  removeOld(keepMs: number, max: number): Promise<number>;

  /**
   * Newest first.
   * @throws OperationalError mysql
   */
  list(filter: RunFilter, max: number): Promise<ReconcileRun[]>;
}
