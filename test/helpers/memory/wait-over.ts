import { PAUSE_MAX_MS, WAIT_SLACK_MS } from '../../../src/mysql/knex.js';

/** As `waitOver` in SQL: a wait that ends later than the longest could was begun before the clock was set back. */
export const isWaitOver = (untilMs: number, nowMs: number, longestMs = PAUSE_MAX_MS): boolean =>
  untilMs <= nowMs || untilMs > nowMs + longestMs + WAIT_SLACK_MS;
