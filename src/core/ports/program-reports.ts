import type { Condition } from '../conditions.js';

export const PROGRAM_KINDS = ['api', 'worker', 'keeper'] as const;
export type ProgramKind = (typeof PROGRAM_KINDS)[number];

/** What one process says of itself. */
export interface ProgramReport {
  readonly kind: ProgramKind;
  /** `host:pid`, for people. */
  readonly id: string;
  readonly version: string;
  /** Whether it does its work: all that it needs answers. */
  readonly ready: boolean;
  /** Why not, a sentence each. */
  readonly problems: readonly string[];
  /** What is wrong, as this process sees it. */
  readonly conditions: readonly Condition[];
  /** Buyers in the waiting rooms of an api, by sale. */
  readonly waiting: Readonly<Record<string, number>>;
}

export interface LiveProgram extends ProgramReport {
  /** How long ago it reported, ms. */
  readonly seenMsAgo: number;
}

/** Where every process says that it runs, and operators read it. */
export interface ProgramReports {
  /**
   * Writes the report of a process, in place of its last one.
   * @param processId never used twice
   * @param lifeMs after so long without another report it is gone, on the clock of the store
   * @throws OperationalError redis
   */
  report(processId: string, report: ProgramReport, lifeMs: number): Promise<void>;

  /** Removes the report: the process ends. Nothing happens when there is none. @throws OperationalError redis */
  withdraw(processId: string): Promise<void>;

  /**
   * Those of all processes that live, at most 1000, by kind and id. One that cannot be read (another release wrote it) is left
   * out.
   * @throws OperationalError redis
   */
  live(): Promise<readonly LiveProgram[]>;
}
