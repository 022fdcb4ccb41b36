/** A change made by a person or by one of our programs. `before` and `after` are stored as JSON. */
export interface AuditEntry {
  /**
   * A user id, the account that ran the command, or the name that the operator gave, followed by the account:
   * `name (account)`.
   */
  readonly actor: string;
  /** `<kind>.<verb>`, such as `sale.opened`. */
  readonly action: string;
  /** The thing that was changed, as `<kind>:<id>`. */
  readonly subject: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** An entry as the log keeps it. */
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

/**
 * Records each change with its actor. Each repository writes the entry in the transaction of the change, so neither can
 * exist without the other.
 */
export interface AuditLog {
  /**
   * Records a change made outside MySQL. Call it before the change: if the process dies in between, the log has
   * one request too many, but never a change without an entry.
   * @throws OperationalError mysql
   */
  append(entry: AuditEntry): Promise<void>;

  /** @throws OperationalError mysql */
  list(filter: AuditFilter, page: AuditPage): Promise<StoredAuditEntry[]>;
}
