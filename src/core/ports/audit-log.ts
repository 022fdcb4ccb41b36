/** A change that a person, or one of our programs, made. `before` and `after` are kept as JSON. */
export interface AuditEntry {
  /** A user id, the account that ran the command, or who was named there: `name (account)`. */
  readonly actor: string;
  /** `<kind>.<what was done>`, such as `sale.opened`. */
  readonly action: string;
  /** What it was done to, as `<kind>:<id>`. */
  readonly subject: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** An entry as the log keeps it. */
export interface StoredAuditEntry extends AuditEntry {
  /** Number of its row, in decimal; grows with time. */
  readonly auditId: string;
  /** Unix ms on the clock of MySQL. */
  readonly atMs: number;
}

/** Every condition that is there must hold. */
export interface AuditFilter {
  readonly subject?: string;
  readonly actor?: string;
  readonly action?: string;
  /** Done at this time or later, Unix ms. */
  readonly sinceMs?: number;
}

/** One page, newest entry first. */
export interface AuditPage {
  /** Entries older than this one; from the newest when absent. */
  readonly beforeId?: string;
  readonly max: number;
}

/**
 * Who did what. Each repository writes the entry in the transaction of its change, so that no change is without its entry, and
 * no entry without its change.
 */
export interface AuditLog {
  /**
   * For what is changed elsewhere than in MySQL. Write it before the change: the entry then says what was asked for, and no
   * change is without its entry.
   * @throws OperationalError mysql
   */
  append(entry: AuditEntry): Promise<void>;

  /** @throws OperationalError mysql */
  list(filter: AuditFilter, page: AuditPage): Promise<StoredAuditEntry[]>;
}
