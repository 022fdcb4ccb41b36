import type { StoredAuditEntry } from '../core/ports/audit-log.js';

/** An entry of the audit log as programs read it, over HTTP and from the command line. */
export function auditBody({ atMs, ...entry }: StoredAuditEntry): object {
  return { ...entry, at: new Date(atMs).toISOString() };
}
