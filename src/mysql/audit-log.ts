import type { Transaction } from './pool.js';

/** Something that a person did. `before` and `after` are kept as JSON. */
export interface AuditEntry {
  readonly actor: string;
  readonly action: string;
  /** What it was done to, as `kind:id`. */
  readonly subject: string;
  readonly before: unknown;
  readonly after: unknown;
}

const NAME_MAX = 128;

/** Belongs into the transaction that it tells of: what is not committed was not done. */
export async function insertAudit(tx: Transaction, entry: AuditEntry): Promise<void> {
  const { actor, action, subject, before, after } = entry;
  await tx.execute('INSERT INTO audit_log (actor, action, subject, before_json, after_json) VALUES (?, ?, ?, ?, ?)', [
    actor.slice(0, NAME_MAX),
    action,
    subject,
    JSON.stringify(before),
    JSON.stringify(after),
  ]);
}
