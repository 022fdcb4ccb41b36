import { PAUSE_MAX_MS, WAIT_SLACK_MS } from '../../../src/mysql/knex.js';

/**
 * Works like `waitOver` in SQL. A wait that ends later than the longest possible wait began before the clock was set
 * back.
 */
export const isWaitOver = (untilMs: number, nowMs: number, longestMs = PAUSE_MAX_MS): boolean =>
  untilMs <= nowMs || untilMs > nowMs + longestMs + WAIT_SLACK_MS;
