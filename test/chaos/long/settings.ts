/** Time to pay for an order. In production, all of these times are minutes or longer. */
const PAYMENT_WINDOW_MS = 20_000;
/** Time after the end of a sale until it is at rest: its orders have ended, and their units are returned. */
export const SETTLED_AFTER_MS = PAYMENT_WINDOW_MS + 10_000;
const RETIRE_AFTER_MS = 100_000;
const MARKER_LIFE_MS = 120_000;
const ARCHIVE_AFTER_MS = 5_000;
/** Wait of the keeper between retiring and forgetting a sale: a minute, plus the life of snapshots in apis. */
const FORGET_AFTER_MS = 66_000;

/** Shortens minutes and days of production to seconds. */
export const RUN_ENV = {
  PAYMENT_PROVIDER: 'simulator',
  ORDER_PAYMENT_WINDOW_MS: String(PAYMENT_WINDOW_MS),
  KEEPER_EVERY_MS: '500',
  OUTBOX_KEEP_MS: '60000',
  RETIRE_AFTER_MS: String(RETIRE_AFTER_MS),
  ARCHIVE_AFTER_MS: String(ARCHIVE_AFTER_MS),
  ARCHIVE_PER_SECOND: '20000', // more than two cores can sell
  MARKER_LIFE_MS: String(MARKER_LIFE_MS),
  REDRIVE_AFTER_MS: '30000', // longer than a check-back takes
  RECONCILE_SAFE_AGE_MS: '20000',
  RECONCILE_MARKER_AGE_MS: String(MARKER_LIFE_MS),
  RECONCILE_KEEP_MS: '60000',
  CONSOLE_HISTORY_MS: '60000', // at the end Redis must be as at the start
  WORKER_INVISIBLE_MS: '30000',
  MYSQL_QUERY_TIMEOUT_MS: '10000',
  // a larger cache would fill during the whole run, and its 10 MiB would look like a leak
  JWT_CACHE_MAX: '1000',
  LOG_LEVEL: 'warn',
  NODE_OPTIONS: '--max-semi-space-size=64', // as the supervisor sets it
} as const;

/** Time after the end of a sale until its orders are in the archive, if nothing is late. */
export const LIFE_AFTER_CLOSE_MS = RETIRE_AFTER_MS + FORGET_AFTER_MS + ARCHIVE_AFTER_MS + 5_000;
/** Additional delay, because each kill of a server costs tens of seconds. */
const LATE_MAX_MS = 240_000;
/** A sale that closed this long ago no longer has rows in hot tables. */
export const COLD_AFTER_MS = LIFE_AFTER_CLOSE_MS + LATE_MAX_MS;
