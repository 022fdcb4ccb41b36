import { fixed, integer, share, text, url, word, type Keys } from '../key.js';

// Settings of all programs.

/** Worker and keeper have different default ports, so both run on one machine. */
const metricsOf = <const Port extends number>(port: Port) =>
  ({
    host: text({
      env: 'METRICS_HOST',
      doc: 'Address on which worker and keeper serve /metrics, /healthz and /readyz.',
      fallback: '127.0.0.1',
      minLength: 1,
      range: 'address',
    }),
    port: integer({
      env: 'METRICS_PORT',
      doc: 'Port on which a worker (default 9101) or a keeper (default 9102) serves /metrics, /healthz and /readyz. 0 picks a free port.',
      unit: '',
      fallback: port,
      min: 0,
      max: 65535,
    }),
  }) as const satisfies Keys;

export const workerMetrics = metricsOf(9101);
export const keeperMetrics = metricsOf(9102);

export const metrics = {
  token: text({
    env: 'METRICS_TOKEN',
    doc: 'Bearer token for /metrics. Not set: no token is needed.',
    optional: true,
    secret: true,
    minLength: 16,
    range: '16 characters or more',
  }),
  /** How long a collected page of /metrics is reused. Collecting it delays buyers. */
  cacheMs: fixed('METRICS_CACHE_MS', 1000),
} as const satisfies Keys;

/** OpenTelemetry defines the names with OTEL. Its exporter reads further variables (docs/monitoring.md). */
export const tracing = {
  endpoint: url({
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    doc: 'Address of the collector of spans (OTLP over HTTP in JSON, at /v1/traces). Not set: no spans are recorded.',
    protocols: ['http:', 'https:'],
    optional: true,
  }),
  sampledShare: share({
    env: 'OTEL_TRACES_SAMPLER_ARG',
    doc: 'Fraction of purchases without a `traceparent` that an api traces.',
    fallback: 0.01,
  }),
  /** Maximum time that spans wait so that they can be sent together. */
  sendEveryMs: fixed('OTEL_BSP_SCHEDULE_DELAY', 1000),
  queueMax: integer({
    env: 'OTEL_BSP_MAX_QUEUE_SIZE',
    doc: 'Maximum number of spans that wait for the collector, about 2 kB each. Others are dropped.',
    unit: 'spans',
    fallback: 2048,
    min: 16,
    max: 100000,
  }),
} as const satisfies Keys;

export const environment = {
  overrides: word({
    env: 'TEST_OVERRIDES',
    doc: 'Tests only: with `on`, the environment can replace values that are otherwise fixed.',
    words: ['off', 'on'],
    fallback: 'off',
  }),
  kind: text({
    env: 'NODE_ENV',
    doc: 'Kind of environment. In `production`, programs refuse TEST_OVERRIDES and the payment simulator.',
    fallback: '',
    minLength: 0,
    range: 'any word',
  }),
} as const satisfies Keys;

export const log = {
  level: word({
    env: 'LOG_LEVEL',
    doc: 'Lowest level of log lines.',
    words: ['debug', 'info', 'warn', 'error', 'silent'],
    fallback: 'info',
  }),
} as const satisfies Keys;
