import {
  OUTBOX_KINDS,
  type Outbox,
  type OutboxBacklog,
  type OutboxKind,
  type OutboxPayloads,
  type OutboxRow,
} from '../core/ports/outbox.js';
import type { MysqlPool } from './pool.js';

interface Row {
  readonly id: string;
  readonly payload: string;
  readonly attempts: number;
  readonly created_at: Date;
}

/** What committed transactions have promised, in MySQL. Its clock says what is due. */
export function createOutbox(pool: MysqlPool): Outbox {
  return {
    lease: (kind, max, leaseMs) => lease(pool, kind, max, leaseMs),
    async markDone(outboxIds): Promise<void> {
      if (outboxIds.length === 0) return;
      const sql = 'UPDATE outbox SET done_at = UTC_TIMESTAMP(3) WHERE id IN (?) AND done_at IS NULL';
      await pool.execute(sql, [outboxIds]);
    },
    async postpone(outboxIds, delayMs): Promise<void> {
      if (outboxIds.length === 0) return;
      const until = 'UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND';
      const sql = `UPDATE outbox SET available_at = ${until} WHERE id IN (?) AND done_at IS NULL`;
      await pool.execute(sql, [Math.round(delayMs * 1000), outboxIds]);
    },
    backlog: () => backlog(pool),
    removeDone: (olderThanMs, max) => removeDone(pool, olderThanMs, max),
  };
}

/**
 * The lock lasts for these two statements, the lease in `available_at` for the work: nothing is published while a row
 * is locked. What another keeper is taking in this moment is passed over, not waited for.
 */
function lease<K extends OutboxKind>(pool: MysqlPool, kind: K, max: number, leaseMs: number): Promise<OutboxRow<K>[]> {
  return pool.transaction(async (tx) => {
    const rows = await tx.query<Row>(
      'SELECT id, payload, attempts, created_at FROM outbox' +
        ' WHERE kind = ? AND done_at IS NULL AND available_at <= UTC_TIMESTAMP(3)' +
        ' ORDER BY id LIMIT ? FOR UPDATE SKIP LOCKED',
      [kind, max],
    );
    if (rows.length === 0) return [];
    await tx.execute(
      'UPDATE outbox SET attempts = attempts + 1, available_at = UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND' +
        ' WHERE id IN (?)',
      [leaseMs * 1000, rows.map(({ id }) => id)],
    );
    return rows.map(({ id, payload, attempts, created_at: createdAt }) => ({
      ...{ outboxId: id, kind, attempts: attempts + 1, createdAtMs: createdAt.getTime() },
      payload: readPayload<K>(payload),
    }));
  });
}

/** Our own words, so their shape is not checked; but a row that somebody broke by hand must not stop the others. */
function readPayload<K extends OutboxKind>(payload: string): OutboxPayloads[K] | null {
  try {
    return JSON.parse(payload) as OutboxPayloads[K] | null;
  } catch {
    return null;
  }
}

/** The index `due` alone answers the first statement, however many rows wait; the second reads one row per kind. */
async function backlog(pool: MysqlPool): Promise<OutboxBacklog[]> {
  const counts = await pool.query<{ readonly kind: OutboxKind; readonly undone: string; readonly first: string }>(
    'SELECT kind, COUNT(*) AS undone, MIN(id) AS first FROM outbox WHERE kind IN (?) AND done_at IS NULL GROUP BY kind',
    [OUTBOX_KINDS],
  );
  const ages = new Map<string, number>();
  if (counts.length > 0) {
    const rows = await pool.query<{ readonly id: string; readonly age: string }>(
      'SELECT id, TIMESTAMPDIFF(MICROSECOND, created_at, UTC_TIMESTAMP(3)) AS age FROM outbox WHERE id IN (?)',
      [counts.map(({ first }) => first)],
    );
    for (const { id, age } of rows) ages.set(id, Number(age) / 1000);
  }
  return OUTBOX_KINDS.map((kind) => {
    const count = counts.find((one) => one.kind === kind);
    if (count === undefined) return { kind, undone: 0, oldestMs: 0 };
    return { kind, undone: Number(count.undone), oldestMs: ages.get(count.first) ?? 0 };
  });
}

/** By kind, since `due` begins with it: without it every DELETE would read the whole table. */
async function removeDone(pool: MysqlPool, olderThanMs: number, max: number): Promise<number> {
  let removed = 0;
  for (const kind of OUTBOX_KINDS) {
    const { affectedRows } = await pool.execute(
      'DELETE FROM outbox WHERE kind = ? AND done_at < UTC_TIMESTAMP(3) - INTERVAL ? MICROSECOND' +
        ' ORDER BY done_at LIMIT ?',
      [kind, olderThanMs * 1000, max],
    );
    removed += affectedRows;
  }
  return removed;
}
