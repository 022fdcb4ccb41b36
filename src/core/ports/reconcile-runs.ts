import type { SaleFinding } from '../sale-finding.js';

/**
 * - `match`: nothing was found, and everything was compared
 * - `findings`: something was found
 * - `partly`: nothing was found, but not everything was compared: another run was working on a sale, a sale failed, the
 *   run was ended early, or a sale has more candidates than one run checks
 * - `none`: nothing was compared
 * - `failed`: a dependency failed, so the run says nothing
 */
export const RUN_OUTCOMES = ['match', 'findings', 'partly', 'none', 'failed'] as const;
export type RunOutcome = (typeof RUN_OUTCOMES)[number];

/** Times in Unix ms on the clock of MySQL. */
export interface ReconcileRun {
  /** Decimal; grows with time. */
  readonly runId: string;
  /** Null if the run compared all sales. */
  readonly saleId: string | null;
  /** Whether the run created repair jobs for its findings. */
  readonly applied: boolean;
  readonly actor: string;
  readonly startedAtMs: number;
  /** Null if still running or dead. */
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

/** The right to reconcile a sale, or the process that has it. */
export type SaleLease =
  | { readonly outcome: 'held' }
  | { readonly outcome: 'taken'; readonly owner: string; readonly untilMs: number };

export interface RunFilter {
  readonly saleId?: string;
  /** Returns runs older than this id. */
  readonly beforeId?: string;
}

/** The record of runs, and the right to start one. Methods throw OperationalError mysql. */
export interface ReconcileRuns {
  /**
   * Takes or renews the right to reconcile a sale, which one owner has at a time. If the owner dies, it ends after
   * `leaseMs`.
   * @param owner unique per run
   */
  lease(saleId: string, owner: string, leaseMs: number): Promise<SaleLease>;

  /** Gives the right back, unless another process has it. */
  free(saleId: string, owner: string): Promise<void>;

  /** @returns the number of the run */
  begin(run: { readonly saleId: string | null; readonly applied: boolean; readonly actor: string }): Promise<string>;

  end(runId: string, result: RunResult): Promise<void>;

  /** Removes at most `max` runs that began more than `keepMs` ago. Returns their number. */
  removeOld(keepMs: number, max: number): Promise<number>;

  /** Lists runs, newest first. */
  list(filter: RunFilter, max: number): Promise<ReconcileRun[]>;
}
