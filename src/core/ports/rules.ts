/** A version of the admission rules. `rules` is JSON that the store does not check. */
export interface StoredRules {
  /** Rises by 1 with each change. 0 if no rules were ever published. */
  readonly version: number;
  readonly rules: unknown;
}

/** The newest version with its canary, which is stored apart: the previous release reads the rules without it. */
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
  /** Another publication came first. `version` is now the newest one. */
  | { readonly outcome: 'version_conflict'; readonly version: number };

/** Keeps every version of the rules. */
export interface RuleRepository {
  /** Returns the newest rules; version 0 without rules when none were published. @throws OperationalError mysql */
  current(): Promise<StoredInForce>;

  /**
   * Returns a version, or null if it does not exist.
   * @throws OperationalError mysql
   */
  find(version: number): Promise<StoredRules | null>;

  /**
   * Stores new rules as version `expectedVersion + 1`, with their canary and their row in the audit log, if
   * `expectedVersion` is the newest version.
   * @throws OperationalError mysql; the rules may be stored all the same: `current` shows it
   */
  store(rules: object, expectedVersion: number, actor: string, parts?: VersionParts): Promise<StoreOutcome>;

  /**
   * Returns the age of a version on the clock of MySQL, or null if it does not exist.
   * @throws OperationalError mysql
   */
  ageMs(version: number): Promise<number | null>;

  /** Returns the newest changes first. @throws OperationalError mysql */
  history(max: number): Promise<RuleChange[]>;
}

/**
 * The answer of the broadcast to a reader of one version.
 * - `level`: no newer rules
 * - `newer`: newer rules
 * - `behind`: the broadcast does not have that version either, or has newer rules without their canary, as the previous
 *   release announces them; the caller must read the repository and announce the rules
 */
export type RuleUpdate =
  | { readonly is: 'level' }
  | { readonly is: 'newer'; readonly stored: StoredInForce }
  | { readonly is: 'behind' };

/** Answers to purchases, as admission refused or accepted them. */
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
  /**
   * The version that this api follows. Null if it has had no usable rules since its start and therefore admits no
   * buyer.
   */
  readonly version: number | null;
  /** A newer version that the api cannot use, with a sentence for each reason. */
  readonly refused: { readonly version: number; readonly reasons: readonly string[] } | null;
  /** Null if the api follows no canary. */
  readonly canary: CanaryCounts | null;
}

/** Collects the rule reports of all apis for operators. */
export interface RuleReports {
  /**
   * Replaces the report of an api.
   * @param lifeMs an api that sends no new report within this time, on the clock of the store, counts as gone
   * @throws OperationalError redis
   */
  report(report: RuleReport, lifeMs: number): Promise<void>;

  /**
   * Removes the report when the process ends. Does nothing if there is no report.
   * @throws OperationalError redis
   */
  withdraw(processId: string): Promise<void>;

  /**
   * Returns the reports of all live apis, at most 1000, in no order. A report that cannot be read, because another
   * release wrote it, counts as following no version.
   * @throws OperationalError redis
   */
  live(): Promise<readonly RuleReport[]>;
}

/** Brings new rules to every process within a second. It may lose rules; the repository is authoritative. */
export interface RuleBroadcast {
  /** @throws OperationalError redis */
  newerThan(version: number): Promise<RuleUpdate>;

  /** Announces these rules, unless newer rules were announced. Safe to repeat. @throws OperationalError redis */
  announce(stored: StoredInForce): Promise<void>;
}
