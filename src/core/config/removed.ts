/** Returns the end of a sentence that says that a value is fixed. */
export const fixedAt = (value: number, unit: string): string =>
  `its value is fixed at ${value}${unit === '' ? '' : ` ${unit}`}`;

/** Settings of earlier releases. Old environment files may name them, so programs only warn. `load.ts` adds more. */
export const REMOVED: Readonly<Record<string, string>> = {
  OPERATORS_CONNECTIONS_MAX: fixedAt(400, 'connections'),
  CONSOLE_STREAMS_MAX: fixedAt(100, 'streams'),
  ACCESS_LOG_PER_SECOND_MAX: fixedAt(2000, 'lines'),
  TRACES_PER_SECOND_MAX: fixedAt(100, 'purchases'),
  JWKS_REFRESH_MS: fixedAt(300_000, 'ms'),
  JWT_CLOCK_TOLERANCE_MS: fixedAt(5000, 'ms'),
  GATE_CARD_MEMORY_MS: fixedAt(1000, 'ms'),
  GATE_CARD_CACHE_MS: fixedAt(5000, 'ms'),
  GATE_SOLD_OUT_LIFE_MS: fixedAt(500, 'ms'),
  GATE_SOLD_OUT_KEYS_MAX: fixedAt(500_000, 'buyers'),
  HOT_SALE_AUTO_PER_SECOND: fixedAt(10_000, 'purchases'),
  HOT_SALE_AUTO_BUCKETS_MAX: fixedAt(16, 'buckets'),
  BATCH_ROUNDS_MAX: fixedAt(5, 'batches'),
  REDIS_CONNECT_TIMEOUT_MS: fixedAt(3000, 'ms'),
  REDRIVE_MAX: fixedAt(2000, 'batches'),
  EVENTS_STREAMS_PER_BUYER_MAX: fixedAt(10, 'streams'),
  EVENTS_STREAMS_PER_ADDRESS_MAX: fixedAt(200, 'streams'),
  OVERDUE_OUTBOX_MS: fixedAt(60_000, 'ms'),
  OVERDUE_DEAD_LETTER_MS: fixedAt(3_600_000, 'ms'),
  OVERDUE_REFUND_MS: fixedAt(86_400_000, 'ms'),
  OVERDUE_PAYMENT_MS: fixedAt(1_200_000, 'ms'),
  OVERDUE_COMPENSATION_MS: fixedAt(600_000, 'ms'),
  OVERDUE_SHUT_MS: fixedAt(60_000, 'ms'),
  OVERDUE_SALE_MS: fixedAt(86_400_000, 'ms'),
  RECONCILE_OUTBOX_AGE_MS: fixedAt(600_000, 'ms'),
  RECONCILE_WAITING_MAX_MS: fixedAt(3_600_000, 'ms'),
  RECONCILE_READS_MAX: fixedAt(1000, 'requests'),
  RECONCILE_MARKER_AGE_MS: 'MARKER_LIFE_MS sets it now',
  REPAIR_LEASE_MS: 'its value is 15000 ms, or more if MYSQL_QUERY_TIMEOUT_MS needs it',
};
