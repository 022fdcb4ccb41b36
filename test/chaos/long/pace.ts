import { createOutbox } from '../../../src/mysql/outbox.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import type { StackControls } from '../harness/stack-controls.js';
import type { PlannedSale } from './plan.js';
import { LIFE_AFTER_CLOSE_MS } from './settings.js';

/** How far the system lags behind its buyers, in ms, and for the archive in orders. */
export interface Backlog {
  /** Age of the oldest batch that holds units and is not known to be in MySQL. */
  readonly pending: number;
  /** Age of the oldest row of the outbox that is not done. */
  readonly outbox: number;
  /** How long ago the oldest unpaid order should have ended. */
  readonly expiry: number;
  /** Orders of sales that should have been retired, forgotten and archived. A sale may wait for minutes after a fault. */
  readonly archive: number;
}

/** If any of these limits is exceeded, buyers wait, so that workers and keeper get the machine. */
const BACKLOG_MAX: Backlog = { pending: 2_000, outbox: 8_000, expiry: 5_000, archive: 30_000 };
/** A sale counts as late once it is this much past its time. A large sale takes a minute, and others wait behind it. */
const ARCHIVE_LATE_MS = 60_000;
/** Requests under way while something is late. Few make small batches, which cost nearly as much as large ones. */
const OPEN_MIN = 1;
/** Requests that each step adds when nothing is late. */
const UP = 128;

export async function readBacklog(
  { redis, mysql }: StackControls,
  selling: readonly Pick<PlannedSale & { saleId: string }, 'saleId' | 'buckets'>[],
): Promise<Backlog> {
  const [clock] = await redis.redis.time();
  const nowMs = Number(clock) * 1000;
  const pending = selling.flatMap(({ saleId, buckets }) =>
    Array.from({ length: buckets }, async (_, bucket) => {
      const [, at] = await redis.redis.zrange(bucketKeys({ saleId, bucket }).pending, '0', '0', 'WITHSCORES');
      return at === undefined ? 0 : nowMs - Number(at);
    }),
  );
  const [due] = await mysql.query<{ late_ms: string | null }>(
    "SELECT TIMESTAMPDIFF(MICROSECOND, MIN(expires_at), NOW(3)) DIV 1000 AS late_ms FROM orders WHERE state = 'pending_payment'",
  );
  const [over] = await mysql.query<{ orders: string | null }>(
    "SELECT SUM(orders) AS orders FROM order_ranges WHERE sale_id IN (SELECT id FROM sales WHERE state = 'closed'" +
      " AND retirement <> 'archived' AND closes_at <= NOW(3) - INTERVAL ? SECOND)",
    [Math.ceil((LIFE_AFTER_CLOSE_MS + ARCHIVE_LATE_MS) / 1000)],
  );
  return {
    pending: Math.max(0, ...(await Promise.all(pending))),
    outbox: Math.max(0, ...(await createOutbox(mysql).backlog()).map(({ oldestMs }) => Math.round(oldestMs))),
    expiry: Math.max(0, Number(due?.late_ms ?? 0)),
    archive: Number(over?.orders ?? 0),
  };
}

/** Decides how many requests of buyers may be under way: almost none while something waits too long. */
export class Pace {
  open: number;
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
    this.open = Math.ceil(max / 4); // programs that have just started are slow
  }

  /** @returns the names of everything that is late */
  follow(backlog: Backlog): (keyof Backlog)[] {
    const late = (Object.keys(BACKLOG_MAX) as (keyof Backlog)[]).filter((what) => backlog[what] > BACKLOG_MAX[what]);
    this.open = late.length > 0 ? OPEN_MIN : Math.min(this.#max, this.open + UP);
    return late;
  }
}
