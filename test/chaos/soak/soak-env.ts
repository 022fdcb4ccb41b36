/** Short, so that orders expire all the time; longer than an outage and a look for the order take together. */
export const PAYMENT_WINDOW_MS = 60_000;

/** What every program of a soak runs with, besides what the harness sets. */
export const SOAK_ENV = {
  PAYMENT_PROVIDER: 'simulator',
  ORDER_PAYMENT_WINDOW_MS: String(PAYMENT_WINDOW_MS),
  JWT_CACHE_MAX: '1000', // full after a minute: 20,000 fill for a quarter of an hour, and look like a leak of 8 MiB
  REDRIVE_AFTER_MS: '30000', // longer than a check-back takes; the end of a soak waits for it
} as const;
