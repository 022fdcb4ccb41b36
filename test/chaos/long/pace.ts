import { createOutbox } from '../../../src/mysql/outbox.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import type { StackControls } from '../harness/stack-controls.js';
import type { PlannedSale } from './plan.js';
import { LIFE_AFTER_CLOSE_MS } from './settings.js';

/** The lag of the system behind its buyers, in ms, and of the archive in orders. */
export interface Backlog {
  /** Age of the oldest unrecorded batch. */
  readonly pending: number;
  /** Age of the oldest unfinished row of the outbox. */
  readonly outbox: number;
  /** Delay of the oldest overdue order. */
  readonly expiry: number;
  /** Orders of sales that are late to be retired, forgotten and archived, as after a fault. */
  readonly archive: number;
}

/** Beyond any of these limits, buyers wait for workers and keeper. */
const BACKLOG_MAX: Backlog = { pending: 2_000, outbox: 8_000, expiry: 5_000, archive: 30_000 };
/** Allowed delay of a sale. A large sale takes a minute, and other sales wait behind it. */
const ARCHIVE_LATE_MS = 60_000;
/** Requests under way while something is late. A few would make small batches at nearly the full cost. */
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

/** Limits the requests of buyers under way, to almost none while something is late. */
export class Pace {
  open: number;
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
    this.open = Math.ceil(max / 4); // new programs are slow
  }

  /** @returns the names of everything that is late */
  follow(backlog: Backlog): (keyof Backlog)[] {
    const late = (Object.keys(BACKLOG_MAX) as (keyof Backlog)[]).filter((what) => backlog[what] > BACKLOG_MAX[what]);
    this.open = late.length > 0 ? OPEN_MIN : Math.min(this.#max, this.open + UP);
    return late;
  }
}
