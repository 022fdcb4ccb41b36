import type { Knex } from 'knex';
import { CLOCK_SKEW_MAX_MS } from '../core/clock-skew.js';
import type { AgedState, Overdue, OverdueRepository } from '../core/waiting-states.js';
import { statesBefore } from '../core/order.js';
import { OUTBOX_KINDS } from '../core/ports/outbox.js';
import { LIVE_STATES } from '../core/sale.js';
import { inMs, knex, msAgo, select } from './knex.js';
import type { MysqlPool } from './pool.js';

/** Columns that never contain a future time. */
const WRITTEN: ReadonlySet<string> = new Set(['created_at', 'opened_at', 'retired_at', 'state_since']);

/** Maximum of the count. Beyond it, an alert needs no exact number. */
const COUNTED_MAX = 10_000;

/** The rows of each state, each found through an index, and the column with the time since which they wait. */
const WAITING: Record<Exclude<AgedState, 'outbox'>, { readonly rows: Knex.QueryBuilder; readonly since: string }> = {
  pending_payment: { rows: knex('orders').whereIn('state', statesBefore('expired')), since: 'expires_at' },
  dead_letter: { rows: knex('dead_letters').where({ state: 'parked' }), since: 'created_at' },
  refund: { rows: knex('refunds').where({ state: 'due' }), since: 'created_at' },
  payment_open: { rows: knex('payment_attempts').where({ state: 'open' }), since: 'opened_at' },
  payment_case: { rows: knex('payment_cases').where({ state: 'open' }), since: 'created_at' },
  compensation: { rows: knex('compensation_jobs').where({ state: 'pending' }), since: 'available_at' },
  sale_over: { rows: knex('sales').whereIn('state', LIVE_STATES), since: 'closes_at' },
  sale_kept: { rows: knex('sales').where({ state: 'closed', retirement: 'none' }), since: 'closes_at' },
  sale_unarchived: {
    rows: knex('sales').where({ state: 'closed' }).whereIn('retirement', ['done', 'archiving']),
    since: 'retired_at',
  },
  webhook_paused: { rows: knex('webhook_endpoints').where({ state: 'failed' }), since: 'state_since' },
};

const ORDER_REFUNDS = knex('order_refunds').where({ state: 'due' });

export function createOverdueRepository(pool: MysqlPool): OverdueRepository {
  return {
    async overdue(state, afterMs): Promise<Overdue> {
      if (state !== 'outbox') {
        const { rows, since } = WAITING[state];
        const found = await count(pool, rows, since, afterMs);
        if (state !== 'refund') return found;
        const ofOrders = await count(pool, ORDER_REFUNDS, since, afterMs);
        return { count: found.count + ofOrders.count, oldestMs: Math.max(found.oldestMs, ofOrders.oldestMs) };
      }
      // Kind by kind, because the index `due_at` begins with the kind, and there are few undone rows.
      let [number, oldestMs] = [0, 0];
      for (const kind of OUTBOX_KINDS) {
        const undone = knex('outbox').where({ kind }).whereNull('done_at');
        const found = await count(pool, undone, 'created_at', afterMs);
        number += found.count;
        oldestMs = Math.max(oldestMs, found.oldestMs);
      }
      return { count: number, oldestMs };
    },
  };
}

async function count(pool: MysqlPool, rows: Knex.QueryBuilder, since: string, afterMs: number): Promise<Overdue> {
  const isOld = rows.clone().where((old) => {
    void old.where(since, '<=', msAgo(afterMs));
    // Includes rows that were written before the clock of MySQL was set back, because their age is unknown.
    if (WRITTEN.has(since)) void old.orWhere(since, '>', inMs(CLOCK_SKEW_MAX_MS));
  });
  const old = isOld.select({ since }).limit(COUNTED_MAX).as('old');
  const counted = knex
    .from(old)
    .select<{ n: string; oldest_us: string | null }[]>(
      knex.raw('COUNT(*) AS n, TIMESTAMPDIFF(MICROSECOND, MIN(since), UTC_TIMESTAMP(3)) AS oldest_us'),
    );
  const [row] = await select(pool, counted);
  const number = Number(row?.n ?? 0);
  return {
    count: number,
    oldestMs: number === 0 ? 0 : Math.max(0, Math.floor(Number(row?.oldest_us) / 1000) - afterMs),
  };
}
