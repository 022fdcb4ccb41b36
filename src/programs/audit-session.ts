import type { Section } from '../core/config/schema.js';
import { createAuditLog } from '../mysql/audit-log.js';
import { openMysqlPool } from '../mysql/pool.js';
import type { AuditLog } from '../core/ports/audit-log.js';

/** Opens the audit log for one piece of work, as a command line needs it, and closes it again. */
export async function withAuditLog<T>(options: Section<'mysql'>, work: (log: AuditLog) => Promise<T>): Promise<T> {
  const mysql = openMysqlPool(options);
  try {
    return await work(createAuditLog(mysql));
  } finally {
    await mysql.close();
  }
}
