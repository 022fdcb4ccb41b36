import type { ReleaseOutbox, ReleaseTask } from '../ports/outbox.js';
import type { Release } from '../ports/settlement-ledger.js';
import type { MysqlPool } from './pool.js';

/** Promised releases, in MySQL. */
export function createReleaseOutbox(pool: MysqlPool): ReleaseOutbox {
  return {
    dueReleases: (max) => dueReleases(pool, max),
    async markDone(outboxIds): Promise<void> {
      if (outboxIds.length === 0) return;
      // Again for a row that is done: changes nothing, so two keepers may do the same work.
      await pool.execute('UPDATE outbox SET done_at = UTC_TIMESTAMP(3) WHERE id IN (?) AND done_at IS NULL', [
        outboxIds,
      ]);
    },
  };
}

async function dueReleases(pool: MysqlPool, max: number): Promise<ReleaseTask[]> {
  const rows = await pool.query<{ readonly id: string; readonly payload: string }>(
    "SELECT id, payload FROM outbox WHERE kind = 'release' AND done_at IS NULL AND available_at <= UTC_TIMESTAMP(3)" +
      ' ORDER BY id LIMIT ?',
    [max],
  );
  return rows.map(({ id, payload }) => ({ outboxId: id, releases: JSON.parse(payload) as Release[] }));
}
