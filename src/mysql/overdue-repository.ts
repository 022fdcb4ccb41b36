import type { AgedState, Overdue, OverdueRepository } from '../core/ports/overdue-repository.js';
import { OUTBOX_KINDS } from '../core/ports/outbox.js';
import type { MysqlPool } from './pool.js';

/** Counted no further: an alert needs to know that they are many, not how many. */
const COUNTED_MAX = 10_000;
const OLD = '<= UTC_TIMESTAMP(3) - INTERVAL ? MICROSECOND';

/** The rows of a state, by an index each, and the column that says since when they wait. */
const QUERIES: Record<Exclude<AgedState, 'outbox'>, { readonly since: string; readonly from: string }> = {
  dead_letter: { since: 'created_at', from: "dead_letters WHERE state = 'parked'" },
  refund: { since: 'created_at', from: "refunds WHERE state = 'due'" },
  compensation: { since: 'available_at', from: "compensation_jobs WHERE state = 'pending'" },
  sale_over: { since: 'closes_at', from: "sales WHERE state IN ('warm', 'open', 'paused')" },
};

/** What waits too long, in MySQL. */
export function createOverdueRepository(pool: MysqlPool): OverdueRepository {
  const count = async (since: string, from: string, afterMs: number): Promise<Overdue> => {
    const [row] = await pool.query<{ readonly n: string; readonly oldest_us: string | null }>(
      `SELECT COUNT(*) AS n, TIMESTAMPDIFF(MICROSECOND, MIN(since), UTC_TIMESTAMP(3)) AS oldest_us FROM` +
        ` (SELECT ${since} AS since FROM ${from} AND ${since} ${OLD} LIMIT ${COUNTED_MAX}) AS late`,
      [afterMs * 1000],
    );
    const number = Number(row?.n ?? 0);
    return { count: number, oldestMs: number === 0 ? 0 : Math.floor(Number(row?.oldest_us) / 1000) - afterMs };
  };
  return {
    async overdue(state, afterMs): Promise<Overdue> {
      if (state !== 'outbox') return count(QUERIES[state].since, QUERIES[state].from, afterMs);
      // Kind by kind: the index `due` begins with it, and of undone rows alone there are few.
      let [number, oldestMs] = [0, 0];
      for (const kind of OUTBOX_KINDS) {
        const late = await count('created_at', `outbox WHERE kind = '${kind}' AND done_at IS NULL`, afterMs);
        number += late.count;
        oldestMs = Math.max(oldestMs, late.oldestMs);
      }
      return { count: number, oldestMs };
    },
  };
}
