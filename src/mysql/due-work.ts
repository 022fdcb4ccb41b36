import { statesBefore } from '../core/order.js';
import { OUTBOX_KINDS } from '../core/ports/outbox.js';
import type { DueWork, ReadDueWork } from '../core/ports/due-work.js';
import { PAUSE_MAX_MS, quoted, waitOver } from './knex.js';
import { OUTBOX_PAUSE_MAX_MS } from './outbox.js';
import type { MysqlPool } from './pool.js';
import { WEBHOOKS_DUE } from './webhook-queue.js';

const NOW = 'UTC_TIMESTAMP(3)';
const OVER = waitOver('available_at', PAUSE_MAX_MS);
const OUTBOX_OVER = waitOver('available_at', OUTBOX_PAUSE_MAX_MS);
const EXPIRING = quoted(statesBefore('expired'));

/** Each kind has an index. A lease may find fewer rows, because it skips locked rows. */
const DUE: Record<DueWork, string> = {
  ...(Object.fromEntries(
    OUTBOX_KINDS.map((kind) => [kind, `outbox WHERE kind = '${kind}' AND done_at IS NULL AND ${OUTBOX_OVER}`]),
  ) as Record<(typeof OUTBOX_KINDS)[number], string>),
  compensation: `compensation_jobs WHERE state = 'pending' AND ${OVER}`,
  edit: `sale_edits WHERE state = 'begun'`,
  expiry: `orders FORCE INDEX (expiry) WHERE state IN (${EXPIRING}) AND expires_at <= ${NOW}`,
  payment: `payment_attempts WHERE state = 'open' AND ${OVER}`,
  refund: `refunds WHERE state = 'due' AND ${OVER}`,
  order_refund: `order_refunds WHERE state = 'due' AND ${OVER}`,
  webhook: WEBHOOKS_DUE,
};

/** Built only once, because the keeper runs this query twice a second, even when idle. */
const READ = Object.entries(DUE)
  .map(([work, rows]) => `(SELECT '${work}' AS work FROM ${rows} LIMIT 1)`)
  .join(' UNION ALL ');

/** Reads all kinds with one statement, because a statement for each would dominate the cost of an idle keeper. */
export const createDueWork =
  (pool: MysqlPool): ReadDueWork =>
  async () =>
    new Set((await pool.query<{ work: DueWork }>(READ)).map(({ work }) => work));
