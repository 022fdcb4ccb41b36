/** The rules of admission in one version. `rules` is JSON that the store has not checked. */
export interface StoredRules {
  /** Rises by one with each change; 0: none were published. */
  readonly version: number;
  readonly rules: unknown;
}

/** One change of the rules. */
export interface RuleChange {
  readonly version: number;
  /** As in the audit log. */
  readonly actor: string;
  /** Unix ms on the clock of MySQL. */
  readonly atMs: number;
}

/** What became of a change. */
export type StoreOutcome =
  | { readonly outcome: 'stored'; readonly version: number }
  /** Another publication came first; `version` is the newest one now. */
  | { readonly outcome: 'version_conflict'; readonly version: number };

/** Keeps every version of the rules. */
export interface RuleRepository {
  /** The newest; version 0 without rules when there are none. @throws OperationalError mysql */
  current(): Promise<StoredRules>;

  /** One version; null when there is none. @throws OperationalError mysql */
  find(version: number): Promise<StoredRules | null>;

  /**
   * Stores new rules as version `expectedVersion + 1`, with their row in the audit log, if that is the newest version.
   * @throws OperationalError mysql; they may be stored all the same; `current` shows it
   */
  store(rules: object, expectedVersion: number, actor: string): Promise<StoreOutcome>;

  /** The newest changes first. @throws OperationalError mysql */
  history(max: number): Promise<RuleChange[]>;
}

/**
 * What the broadcast has for a reader of one version.
 * - `level`: nothing newer
 * - `newer`: these rules
 * - `behind`: not even that version; the caller must read the repository and announce it
 */
export type RuleUpdate =
  | { readonly is: 'level' }
  | { readonly is: 'newer'; readonly stored: StoredRules }
  | { readonly is: 'behind' };

/** Which rules one api follows. */
export interface RuleReport {
  /** Never used twice. */
  readonly processId: string;
  /** The machine and the process id there, for people. */
  readonly host: string;
  readonly pid: number;
  /** In force in this api; null: it could use none since its start, and lets no buyer in. */
  readonly version: number | null;
  /** A newer version that it cannot use, with a sentence for each reason. */
  readonly refused: { readonly version: number; readonly reasons: readonly string[] } | null;
}

/** Where each api says which rules it follows, and operators read it. */
export interface RuleReports {
  /**
   * Writes the report of an api, in place of its last one.
   * @param lifeMs after so long without another report it is gone, on the clock of the store
   * @throws OperationalError redis
   */
  report(report: RuleReport, lifeMs: number): Promise<void>;

  /** Removes the report: the process ends. Nothing happens when there is none. @throws OperationalError redis */
  withdraw(processId: string): Promise<void>;

  /**
   * Those of all apis that live, at most 1000, in no order. One that cannot be read (another release wrote it) follows
   * no version.
   * @throws OperationalError redis
   */
  live(): Promise<readonly RuleReport[]>;
}

/** Brings new rules to every process within a second. It may lose them: the repository is the truth. */
export interface RuleBroadcast {
  /** @throws OperationalError redis */
  newerThan(version: number): Promise<RuleUpdate>;

  /** Announces these rules, unless there are newer ones. Safe to repeat. @throws OperationalError redis */
  announce(stored: StoredRules): Promise<void>;
}
