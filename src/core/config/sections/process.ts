import { integer, share, text, url, word, type Keys } from '../key.js';

// What every program has.

/** Where worker and keeper serve what the api serves beside its routes. One of each runs on a machine without a setting. */
const metricsOf = <const Port extends number>(program: string, port: Port) =>
  ({
    host: text({
      env: 'METRICS_HOST',
      doc: `Address of /metrics, /healthz and /readyz of a ${program}; 0.0.0.0 lets a Prometheus on another machine read them.`,
      fallback: '127.0.0.1',
      minLength: 1,
      range: 'address',
    }),
    port: integer({
      env: 'METRICS_PORT',
      doc: `Port for /metrics, /healthz and /readyz of a ${program}; 0 picks a free one.`,
      unit: '',
      fallback: port,
      min: 0,
      max: 65535,
    }),
  }) as const satisfies Keys;

export const workerMetrics = metricsOf('worker', 9101);
export const keeperMetrics = metricsOf('keeper', 9102);

export const metrics = {
  token: text({
    env: 'METRICS_TOKEN',
    doc: 'The bearer token that /metrics of api, worker and keeper asks for. Not set: none.',
    optional: true,
    secret: true,
    minLength: 16,
    range: '16 characters or more',
  }),
  cacheMs: integer({
    env: 'METRICS_CACHE_MS',
    doc: 'A page of /metrics is given again for this long, since buyers wait while it is collected; 0: each is collected.',
    unit: 'ms',
    fallback: 1000,
    min: 0,
    max: 60000,
  }),
} as const satisfies Keys;

/** The names that begin with OTEL are those of the standard; the exporter reads others of them itself (docs/tracing.md). */
export const tracing = {
  endpoint: url({
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    doc: 'The collector that spans are sent to, as OTLP over HTTP in JSON, at /v1/traces below this address. Not set: none are recorded.',
    protocols: ['http:', 'https:'],
    optional: true,
  }),
  sampledShare: share({
    env: 'OTEL_TRACES_SAMPLER_ARG',
    doc: 'The share of purchases that an api records whose caller sends no `traceparent`; where there is one, the caller has decided.',
    fallback: 0.01,
  }),
  perSecondMax: integer({
    env: 'TRACES_PER_SECOND_MAX',
    doc: 'Purchases of one second that an api records because their callers ask for it, since anybody can send a `traceparent`; and as many that chance has chosen.',
    unit: 'purchases',
    fallback: 100,
    min: 1,
    max: 100000,
  }),
  sendEveryMs: integer({
    env: 'OTEL_BSP_SCHEDULE_DELAY',
    doc: 'Spans wait up to so long, and are sent together.',
    unit: 'ms',
    fallback: 1000,
    min: 10,
    max: 60000,
  }),
  queueMax: integer({
    env: 'OTEL_BSP_MAX_QUEUE_SIZE',
    doc: 'Spans that wait for the collector; one more is dropped and counted. A span takes about 2 kB.',
    unit: 'spans',
    fallback: 2048,
    min: 16,
    max: 100000,
  }),
} as const satisfies Keys;

export const failPoint = {
  point: text({
    env: 'FAILPOINT',
    doc: 'Tests only: where this process stops, and at which pass; see src/programs/fail-points.ts.',
    fallback: '',
    minLength: 0,
    range: '<name>[:n]',
  }),
  act: word({
    env: 'FAILPOINT_DO',
    doc: 'What happens at the fail point. A point named drop_… loses its call or reply instead.',
    words: ['kill', 'hang', 'throw'],
    fallback: 'kill',
  }),
  environment: text({
    env: 'NODE_ENV',
    doc: 'In production FAILPOINT and the payment simulator are refused.',
    fallback: '',
    minLength: 0,
    range: 'any word',
  }),
} as const satisfies Keys;

export const log = {
  level: word({
    env: 'LOG_LEVEL',
    doc: 'Lowest level that is logged.',
    words: ['debug', 'info', 'warn', 'error', 'silent'],
    fallback: 'info',
  }),
} as const satisfies Keys;
