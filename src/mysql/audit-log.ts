import type { AuditEntry, AuditFilter, AuditLog, AuditPage, StoredAuditEntry } from '../core/ports/audit-log.js';
import { bigint, execute, given, knex, readJson, select } from './knex.js';
import type { MysqlPool, Transaction } from './pool.js';

const ACTOR_MAX = 128;

/** Call it in the transaction of the change: what is not committed was not done. */
export async function insertAudit(tx: Transaction, entry: AuditEntry): Promise<void> {
  const { actor, action, subject, before, after } = entry;
  const row = {
    actor: actor.slice(0, ACTOR_MAX),
    action,
    subject,
    before_json: JSON.stringify(before),
    after_json: JSON.stringify(after),
  };
  await execute(tx, knex('audit_log').insert(row));
}

/** Who did what, from MySQL. */
export function createAuditLog(pool: MysqlPool): AuditLog {
  return { list: (filter, page) => list(pool, filter, page) };
}

/** Newest first, along the primary key or the index by subject, which ends in it. */
async function list(pool: MysqlPool, filter: AuditFilter, { beforeId, max }: AuditPage): Promise<StoredAuditEntry[]> {
  const { subject, actor, action, sinceMs } = filter;
  let entries = knex('audit_log')
    .select('id', 'actor', 'action', 'subject', 'before_json', 'after_json', 'created_at')
    .where(given({ subject, actor, action }));
  if (sinceMs !== undefined) entries = entries.where('created_at', '>=', new Date(sinceMs));
  if (beforeId !== undefined) entries = entries.where('id', '<', bigint(beforeId));
  const rows = await select(pool, entries.orderBy('id', 'desc').limit(max));
  return rows.map((row) => ({
    auditId: row.id,
    actor: row.actor,
    action: row.action,
    subject: row.subject,
    before: readJson(row.before_json),
    after: readJson(row.after_json),
    atMs: row.created_at.getTime(),
  }));
}
