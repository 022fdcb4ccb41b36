import type { Condition } from '../conditions.js';
import type { SeenProgram } from '../vanished-programs.js';

export const PROGRAM_KINDS = ['api', 'worker', 'keeper'] as const;
export type ProgramKind = (typeof PROGRAM_KINDS)[number];

/** A report of one process about itself. */
export interface ProgramReport {
  readonly kind: ProgramKind;
  /** `host:pid`, for people. */
  readonly id: string;
  readonly version: string;
  /** Whether the process can do its work because all its dependencies answer. */
  readonly ready: boolean;
  /** When the process began not to be ready, Unix ms. Null if it is ready, or if an older release does not say. */
  readonly notReadySinceMs: number | null;
  /** Reasons for not being ready, one sentence each. */
  readonly problems: readonly string[];
  /** Problems seen by this process. */
  readonly conditions: readonly Condition[];
  /** Number of buyers in each waiting room that an api knows, by sale. */
  readonly waiting: Readonly<Record<string, number>>;
}

/** The last report of this process, as it knows it itself. */
export interface OwnReport {
  readonly report: ProgramReport;
  /** When it was made, on the monotonic clock. */
  readonly atMs: number;
  /** Why Redis does not store the reports, for people, and since when, Unix ms, or null. */
  readonly refusal: { readonly why: string; readonly sinceMs: number } | null;
}

export interface LiveProgram extends ProgramReport {
  /** Age of the report, ms. */
  readonly seenMsAgo: number;
}

/** Collects the reports of all running processes for operators. Methods throw OperationalError redis. */
export interface ProgramReports {
  /**
   * Replaces the report of a process.
   * @param processId never used twice
   * @param lifeMs without a new report, it counts as gone after this time, on the clock of the store
   */
  report(processId: string, report: ProgramReport, lifeMs: number): Promise<void>;

  /** Removes the report when the process ends. Does nothing without a report. */
  withdraw(processId: string): Promise<void>;

  /** Returns at most 1000 reports, by kind and id. Omits unreadable reports of other releases. */
  live(): Promise<readonly LiveProgram[]>;

  /** Returns processes that fell silent within an hour, unless they withdrew or a newer process of their kind came. */
  vanished(): Promise<readonly SeenProgram[]>;
}
