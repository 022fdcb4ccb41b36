/** A version. `rules` is JSON that the store does not check. */
export interface StoredRules {
  /** Rises by 1 with each change. 0 before the first publication. */
  readonly version: number;
  readonly rules: unknown;
}

/** The newest version. Its canary is stored apart: the previous release reads the rules without it. */
export interface StoredInForce extends StoredRules {
  /** JSON that the store has not checked. Null: no canary runs. */
  readonly canary: unknown;
}

export interface RuleChange {
  readonly version: number;
  /** The actor of the entry in the audit log. */
  readonly actor: string;
  /** Unix ms on the clock of MySQL. */
  readonly atMs: number;
}

/** The parts of a new version besides its rules. */
export interface VersionParts {
  /** Null, the default: no canary runs. */
  readonly canary?: object | null;
  /** For the audit log. Default: `rules.published`. */
  readonly action?: `rules.${'published' | 'canary_started' | 'canary_promoted' | 'canary_rolled_back'}`;
  /** More about it, for the audit log. */
  readonly more?: object;
}

export type StoreOutcome =
  | { readonly outcome: 'stored'; readonly version: number }
  /** Another publication was faster, and has this version. */
  | { readonly outcome: 'version_conflict'; readonly version: number };

/** Keeps every version of the rules. Methods throw OperationalError mysql. */
export interface RuleRepository {
  /** Returns the newest rules; version 0 before the first publication. */
  current(): Promise<StoredInForce>;

  /** Returns null if the version does not exist. */
  find(version: number): Promise<StoredRules | null>;

  /**
   * Stores version `expectedVersion + 1` with its canary and audit entry, if `expectedVersion` is the newest. After an
   * error, `current` shows whether it is stored.
   */
  store(rules: object, expectedVersion: number, actor: string, parts?: VersionParts): Promise<StoreOutcome>;

  /** Returns the age of a version on the clock of MySQL, or null. */
  ageMs(version: number): Promise<number | null>;

  /** Returns the newest changes first. */
  history(max: number): Promise<RuleChange[]>;
}

/**
 * Answer to a reader of one version. `level`: there are no newer rules.
 * - `behind`: the broadcast lacks that version too, or has newer rules without their canary, as the previous release
 *   announces them; the caller must read the repository and announce the rules
 */
export type RuleUpdate =
  | { readonly is: 'level' }
  | { readonly is: 'newer'; readonly stored: StoredInForce }
  | { readonly is: 'behind' };

/** Numbers of purchases that admission refused and accepted. */
export interface AnswerCount {
  readonly accepted: number;
  readonly refused: number;
}

/** The answers of one api to purchases since it follows a canary. */
export interface CanaryCounts {
  /** The version that started the canary. */
  readonly since: number;
  /** Answers to users judged by the main rules. */
  readonly others: AnswerCount;
  /** Answers to users judged by the canary. */
  readonly tried: AnswerCount;
}

/** The rules that one api follows. */
export interface RuleReport {
  /** Never used twice. */
  readonly processId: string;
  /** The machine and its process id, for people. */
  readonly host: string;
  readonly pid: number;
  /** Null if the api has had no usable rules since its start: it admits no buyer. */
  readonly version: number | null;
  /** A newer version that the api cannot use, with a sentence per reason. */
  readonly refused: { readonly version: number; readonly reasons: readonly string[] } | null;
  /** Null if no canary runs. */
  readonly canary: CanaryCounts | null;
}

/** Collects the rule reports of all apis for operators. Methods throw OperationalError redis. */
export interface RuleReports {
  /**
   * Replaces the report of an api.
   * @param lifeMs without a new report, it counts as gone after this time, on the clock of the store
   */
  report(report: RuleReport, lifeMs: number): Promise<void>;

  /** Removes the report when the process ends. Does nothing without a report. */
  withdraw(processId: string): Promise<void>;

  /** Returns at most 1000 reports, in no order. An unreadable report of another release follows no version. */
  live(): Promise<readonly RuleReport[]>;
}

/** Brings new rules to every process within a second, but may lose some. Methods throw OperationalError redis. */
export interface RuleBroadcast {
  newerThan(version: number): Promise<RuleUpdate>;

  /** Announces these rules, unless newer rules were announced. Safe to repeat. */
  announce(stored: StoredInForce): Promise<void>;
}
