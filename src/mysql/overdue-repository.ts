import { CLOCK_SKEW_MAX_MS } from '../core/clock-skew.js';
import type { AgedState, Overdue, OverdueRepository } from '../core/waiting-states.js';
import { statesBefore } from '../core/order.js';
import { OUTBOX_KINDS } from '../core/ports/outbox.js';
import { LIVE_STATES } from '../core/sale.js';
import { quoted } from './knex.js';
import type { MysqlPool } from './pool.js';

/** Columns that never contain a future time. */
const WRITTEN: ReadonlySet<string> = new Set(['created_at', 'opened_at', 'retired_at', 'state_since']);

/** Maximum of each count. Beyond it, an alert needs no exact number. */
const COUNTED_MAX = 10_000;

/** The rows of each state, each found through an index, and the column with the time since which they wait. */
const WAITING: Readonly<Record<AgedState, readonly (readonly [rows: string, since: string])[]>> = {
  pending_payment: [[`orders WHERE state IN (${quoted(statesBefore('expired'))})`, 'expires_at']],
  // Kind by kind, because the index `due_at` begins with the kind, and there are few undone rows.
  outbox: OUTBOX_KINDS.map((kind) => [`outbox WHERE kind = '${kind}' AND done_at IS NULL`, 'created_at']),
  dead_letter: [[`dead_letters WHERE state = 'parked'`, 'created_at']],
  refund: ['refunds', 'order_refunds'].map((table) => [`${table} WHERE state = 'due'`, 'created_at']),
  payment_open: [[`payment_attempts WHERE state = 'open'`, 'opened_at']],
  payment_case: [[`payment_cases WHERE state = 'open'`, 'created_at']],
  compensation: [[`compensation_jobs WHERE state = 'pending'`, 'available_at']],
  sale_over: [[`sales WHERE state IN (${quoted(LIVE_STATES)})`, 'closes_at']],
  sale_kept: [[`sales WHERE state = 'closed' AND retirement = 'none'`, 'closes_at']],
  sale_unarchived: [[`sales WHERE state = 'closed' AND retirement IN ('done', 'archiving')`, 'retired_at']],
  webhook_paused: [[`webhook_endpoints WHERE state = 'failed'`, 'state_since']],
};

const COUNTS = (Object.keys(WAITING) as AgedState[]).flatMap((state) =>
  WAITING[state].map(([rows, since]) => ({ state, sql: countOf(state, rows, since) })),
);

export function createOverdueRepository(pool: MysqlPool): OverdueRepository {
  return {
    async overdue<S extends AgedState>(afterMs: Readonly<Record<S, number>>): Promise<Record<S, Overdue>> {
      const limits: Readonly<Partial<Record<AgedState, number>>> = afterMs;
      const counts = COUNTS.filter(({ state }) => limits[state] !== undefined);
      const rows = await pool.query<{ state: S; n: string; oldest_us: string | null }>(
        counts.map(({ sql }) => sql).join(' UNION ALL '),
        counts.map(({ state }) => Math.round((limits[state] ?? 0) * 1000)),
      );
      const found = {} as Record<S, Overdue>;
      for (const { state, n, oldest_us } of rows) {
        const { count, oldestMs } = found[state] ?? { count: 0, oldestMs: 0 };
        const lateMs = oldest_us === null ? 0 : Math.floor(Number(oldest_us) / 1000) - afterMs[state];
        found[state] = { count: count + Number(n), oldestMs: Math.max(oldestMs, lateMs) };
      }
      return found;
    },
  };
}

/** Counts the rows that have waited for at least `?` microseconds. */
function countOf(state: AgedState, rows: string, since: string): string {
  // Includes rows that were written before the clock of MySQL was set back, because their age is unknown.
  const unknown = `OR ${since} > UTC_TIMESTAMP(3) + INTERVAL ${CLOCK_SKEW_MAX_MS * 1000} MICROSECOND`;
  const isOld = `(${since} <= UTC_TIMESTAMP(3) - INTERVAL ? MICROSECOND ${WRITTEN.has(since) ? unknown : ''})`;
  const old = `SELECT ${since} AS since FROM ${rows} AND ${isOld} LIMIT ${COUNTED_MAX}`;
  const oldest = 'TIMESTAMPDIFF(MICROSECOND, MIN(since), UTC_TIMESTAMP(3))';
  return `(SELECT '${state}' AS state, COUNT(*) AS n, ${oldest} AS oldest_us FROM (${old}) AS old)`;
}
