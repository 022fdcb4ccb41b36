/** The rules of the entry in one version. `rules` is JSON that nobody below has looked into. */
export interface StoredRules {
  /** Counts up by one with each change; 0: nobody has published any. */
  readonly version: number;
  readonly rules: unknown;
}

/** One change of the rules. */
export interface RuleChange {
  readonly version: number;
  /** The user id of an admin, or the name of the account at the keyboard. */
  readonly actor: string;
  /** Unix ms on the clock of MySQL. */
  readonly atMs: number;
}

/** What became of a change. */
export type StoreOutcome =
  | { readonly outcome: 'stored'; readonly version: number }
  /** Somebody else was faster: `version` is the one to look at now. */
  | { readonly outcome: 'version_conflict'; readonly version: number };

/** Where rules are kept for good, every version of them. */
export interface RuleRepository {
  /** The newest; version 0 with no rules when there are none. @throws OperationalError mysql */
  current(): Promise<StoredRules>;

  /** One version; null when there is none. @throws OperationalError mysql */
  find(version: number): Promise<StoredRules | null>;

  /**
   * Keeps new rules as version `expectedVersion + 1`, with their entry in the audit log, if that is the newest version.
   * @throws OperationalError mysql; they may be stored all the same, which `current` tells
   */
  store(rules: object, expectedVersion: number, actor: string): Promise<StoreOutcome>;

  /** The newest changes first. @throws OperationalError mysql */
  history(max: number): Promise<RuleChange[]>;
}

/**
 * What the board says to one who knows a version.
 * - `level`: nothing newer hangs there
 * - `newer`: these rules do
 * - `behind`: not even the known version does; somebody must look at the store and put it up
 */
export type RuleAnnouncement =
  | { readonly board: 'level' }
  | { readonly board: 'newer'; readonly stored: StoredRules }
  | { readonly board: 'behind' };

/** Where every process sees new rules at once. It may forget: the store is the truth. */
export interface RuleBroadcast {
  /** @throws OperationalError redis */
  notificationsSince(version: number): Promise<RuleAnnouncement>;

  /** Puts rules up, unless newer ones hang there. Safe to repeat. @throws OperationalError redis */
  post(stored: StoredRules): Promise<void>;
}
