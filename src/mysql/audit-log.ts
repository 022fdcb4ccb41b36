import type { AuditEntry, AuditFilter, AuditLog, AuditPage, StoredAuditEntry } from '../core/ports/audit-log.js';
import type { MysqlPool, SqlValue, Transaction } from './pool.js';

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

interface AuditRow {
  readonly id: string;
  readonly actor: string;
  readonly action: string;
  readonly subject: string;
  readonly before_json: string | null;
  readonly after_json: string | null;
  readonly created_at: Date;
}

/** Who did what, from MySQL. */
export function createAuditLog(pool: MysqlPool): AuditLog {
  return { list: (filter, page) => list(pool, filter, page) };
}

/** Along the primary key, or the index by subject, which ends in it: people ask for the newest. */
async function list(pool: MysqlPool, filter: AuditFilter, { beforeId, max }: AuditPage): Promise<StoredAuditEntry[]> {
  const conditions: string[] = ['TRUE'];
  const values: SqlValue[] = [];
  const add = (condition: string, value: SqlValue): void => {
    conditions.push(condition);
    values.push(value);
  };
  if (filter.subject !== undefined) add('subject = ?', filter.subject);
  if (filter.actor !== undefined) add('actor = ?', filter.actor);
  if (filter.action !== undefined) add('action = ?', filter.action);
  if (filter.sinceMs !== undefined) add('created_at >= ?', new Date(filter.sinceMs));
  if (beforeId !== undefined) add('id < CAST(? AS UNSIGNED)', beforeId);
  const rows = await pool.query<AuditRow>(
    'SELECT id, actor, action, subject, before_json, after_json, created_at FROM audit_log' +
      ` WHERE ${conditions.join(' AND ')} ORDER BY id DESC LIMIT ?`,
    [...values, max],
  );
  return rows.map(storedOf);
}

const storedOf = (row: AuditRow): StoredAuditEntry => ({
  auditId: row.id,
  actor: row.actor,
  action: row.action,
  subject: row.subject,
  before: readJson(row.before_json),
  after: readJson(row.after_json),
  atMs: row.created_at.getTime(),
});

/** A row that somebody wrote by hand is shown as it is. */
function readJson(text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
