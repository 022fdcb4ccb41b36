import type { AuditEntry, AuditLog } from '../core/ports/audit-log.js';
import { bigint, execute, knex, readJson, select } from './knex.js';
import type { MysqlPool, Transaction } from './pool.js';
import { withoutUndefined } from '../core/without-undefined.js';

/** Maps current names to the older names, which every release stores, so that a filter finds all entries. */
const STORED: Readonly<Record<string, string>> = {
  'sale.resharded': 'sale.scattered',
  'refund.claimed': 'refund.taken_on',
  'rules:admission': 'rules:entry',
};
const SHOWN: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(STORED).map(([shown, stored]) => [stored, shown]),
);
const storedName = (name: string): string => STORED[name] ?? name;
const shownName = (stored: string): string => SHOWN[stored] ?? stored;

const ACTOR_MAX = 128;

export const actorColumn = (actor: string): string => actor.slice(0, ACTOR_MAX);

/** Call it in the transaction of the change, so that both are committed or neither. */
export async function insertAudit(tx: Transaction, ...entries: readonly AuditEntry[]): Promise<void> {
  const rows = entries.map(({ actor, action, subject, before, after }) => ({
    actor: actorColumn(actor),
    action: storedName(action),
    subject: storedName(subject),
    before_json: JSON.stringify(before),
    after_json: JSON.stringify(after),
  }));
  if (rows.length > 0) await execute(tx, knex('audit_log').insert(rows));
}

export function createAuditLog(pool: MysqlPool): AuditLog {
  return {
    append: (entry) => pool.transaction((tx) => insertAudit(tx, entry)),
    /** Lists the newest first. Turns a start time into the lowest id of that time, because each index ends in the id. */
    async list(filter, { beforeId, max }) {
      const { subject, actor, action, sinceMs } = filter;
      let entries = knex('audit_log')
        .select('id', 'actor', 'action', 'subject', 'before_json', 'after_json', 'created_at')
        .where(
          withoutUndefined({ subject: subject && storedName(subject), actor, action: action && storedName(action) }),
        );
      if (sinceMs !== undefined) {
        const first = await firstSince(pool, sinceMs - OUT_OF_ORDER_MS);
        if (first === null) return [];
        entries = entries.where('created_at', '>=', new Date(sinceMs)).where('id', '>=', bigint(first));
      }
      if (beforeId !== undefined) entries = entries.where('id', '<', bigint(beforeId));
      const rows = await select(pool, entries.orderBy('id', 'desc').limit(max));
      return rows.map((row) => ({
        auditId: row.id,
        actor: row.actor,
        action: shownName(row.action),
        subject: shownName(row.subject),
        before: readJson(row.before_json),
        after: readJson(row.after_json),
        atMs: row.created_at.getTime(),
      }));
    },
  };
}

/** Several processes write at once, so ids and times can be in a different order, at most this far apart. */
const OUT_OF_ORDER_MS = 60_000;

async function firstSince(pool: MysqlPool, sinceMs: number): Promise<string | null> {
  const since = knex('audit_log').select('id').where('created_at', '>=', new Date(sinceMs));
  const [row] = await select(pool, since.orderBy(['created_at', 'id']).limit(1));
  return row?.id ?? null;
}
