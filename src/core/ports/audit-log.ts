/** A change made by a person or by one of our programs. `before` and `after` are stored as JSON. */
export interface AuditEntry {
  /** A user id, the account that ran a command, or the operator's name with the account: `name (account)`. */
  readonly actor: string;
  /** `<kind>.<verb>`, such as `sale.opened`. */
  readonly action: string;
  /** The thing that was changed, as `<kind>:<id>`. */
  readonly subject: string;
  readonly before: unknown;
  readonly after: unknown;
}

export interface StoredAuditEntry extends AuditEntry {
  /** The row number, in decimal; grows with time. */
  readonly auditId: string;
  /** Unix ms on the clock of MySQL. */
  readonly atMs: number;
}

/** Conditions that must all hold. An absent condition matches every entry. */
export interface AuditFilter {
  readonly subject?: string;
  readonly actor?: string;
  readonly action?: string;
  /** Earliest time of the entry, Unix ms. */
  readonly sinceMs?: number;
}

/** A page of entries, newest first. */
export interface AuditPage {
  /** Returns entries older than this one. If absent, the page starts at the newest entry. */
  readonly beforeId?: string;
  readonly max: number;
}

/** Each change with its actor. Repositories write the entry in the transaction of the change: neither exists alone. */
export interface AuditLog {
  /**
   * Records a change outside MySQL. Call it before the change: a crash then leaves an entry too many, never a change
   * without one.
   * @throws OperationalError mysql
   */
  append(entry: AuditEntry): Promise<void>;

  /** @throws OperationalError mysql */
  list(filter: AuditFilter, page: AuditPage): Promise<StoredAuditEntry[]>;
}
