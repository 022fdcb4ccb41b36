import { endpoint, integer, text, url, word, type Key } from './key.js';

/**
 * Every key of the configuration, in the order of the path of a purchase. A number says its unit and where it comes
 * from; a program reads only the sections that it uses.
 */
export const SCHEMA = {
  http: {
    host: text({
      env: 'HTTP_HOST',
      doc: 'Address to listen on.',
      fallback: '127.0.0.1',
      minLength: 1,
      range: 'address',
    }),
    port: integer({
      env: 'PORT',
      doc: 'Port of the api; 0 picks a free one.',
      unit: '',
      fallback: 8080,
      min: 0,
      max: 65535,
    }),
    maxConnections: integer({
      env: 'HTTP_CONNECTIONS_MAX',
      doc: 'Open connections; one more is closed at once.',
      unit: 'connections',
      fallback: 10000,
      min: 1,
      max: 100000,
    }),
    headersTimeoutMs: integer({
      env: 'HTTP_HEADERS_TIMEOUT_MS',
      doc: 'A client must have sent its headers by then.',
      unit: 'ms',
      fallback: 5000,
      min: 100,
      max: 60000,
    }),
    requestTimeoutMs: integer({
      env: 'HTTP_REQUEST_TIMEOUT_MS',
      doc: 'A client must have sent its body by then.',
      unit: 'ms',
      fallback: 10000,
      min: 100,
      max: 60000,
    }),
    keepAliveTimeoutMs: integer({
      env: 'HTTP_KEEP_ALIVE_TIMEOUT_MS',
      doc: 'A connection without a request is closed after this.',
      unit: 'ms',
      fallback: 30000,
      min: 100,
      max: 600000,
    }),
    drainMs: integer({
      env: 'HTTP_DRAIN_MS',
      doc: 'What is in flight at SIGTERM is answered within this time.',
      unit: 'ms',
      fallback: 8000,
      min: 0,
      max: 60000,
    }),
  },
  auth: {
    algorithm: word({
      env: 'JWT_ALGORITHM',
      doc: 'The one algorithm that tokens may have.',
      words: ['HS256', 'RS256'],
      fallback: 'HS256',
    }),
    key: text({
      env: 'JWT_SECRET',
      doc: 'HS256: the shared secret, at least 32 characters. RS256: the public key, PEM.',
      minLength: 32,
      secret: true,
      range: '32 characters or more',
    }),
    cacheMax: integer({
      env: 'JWT_CACHE_MAX',
      doc: 'Verified tokens kept in memory.',
      unit: 'tokens',
      fallback: 20000,
      min: 0,
      max: 1000000,
    }),
  },
  gate: {
    cardMemoryMs: integer({
      env: 'GATE_CARD_MEMORY_MS',
      doc: 'A sale card in memory is believed this long.',
      unit: 'ms',
      fallback: 1000,
      min: 10,
      max: 60000,
    }),
    cardCacheMs: integer({
      env: 'GATE_CARD_CACHE_MS',
      doc: 'A sale card in Redis is believed this long.',
      unit: 'ms',
      fallback: 5000,
      min: 100,
      max: 600000,
    }),
    soldOutLifeMs: integer({
      env: 'GATE_SOLD_OUT_LIFE_MS',
      doc: 'A seen sold-out is believed this long; released units are offered again within it.',
      unit: 'ms',
      fallback: 500,
      min: 10,
      max: 1000,
    }),
    soldOutKeysMax: integer({
      env: 'GATE_SOLD_OUT_KEYS_MAX',
      doc: 'Winning keys kept per bucket, so that a winner who asks again is not refused from memory.',
      unit: 'keys',
      fallback: 500000,
      min: 0,
      max: 5000000,
    }),
  },
  batch: {
    sizeMax: integer({
      env: 'BATCH_SIZE_MAX',
      doc: 'Purchases in one half message. 1 switches group commit off.',
      unit: 'purchases',
      fallback: 128,
      min: 1,
      max: 512,
    }),
    inFlightMax: integer({
      env: 'BATCH_IN_FLIGHT_MAX',
      doc: 'Batches of one sale and bucket under way at once.',
      unit: 'batches',
      fallback: 4,
      min: 1,
      max: 128,
    }),
    queueMax: integer({
      env: 'BATCH_QUEUE_MAX',
      doc: 'Purchases waiting in one process; one more hears overloaded.',
      unit: 'purchases',
      fallback: 8192,
      min: 1,
      max: 1000000,
    }),
    waitMaxMs: integer({
      env: 'BATCH_WAIT_MAX_MS',
      doc: 'A purchase that waited longer hears overloaded.',
      unit: 'ms',
      fallback: 2000,
      min: 10,
      max: 30000,
    }),
    roundsMax: integer({
      env: 'BATCH_ROUNDS_MAX',
      doc: 'Batches one purchase may go through before it hears overloaded.',
      unit: 'batches',
      fallback: 5,
      min: 1,
      max: 20,
    }),
  },
  redis: {
    url: url({
      env: 'REDIS_URL',
      doc: 'The Redis that holds the stock.',
      protocols: ['redis:', 'rediss:'],
      secret: true,
    }),
    replyTimeoutMs: integer({
      env: 'REDIS_REPLY_TIMEOUT_MS',
      doc: 'After it the outcome of a command is unknown.',
      unit: 'ms',
      fallback: 1500,
      min: 50,
      max: 30000,
    }),
    connectTimeoutMs: integer({
      env: 'REDIS_CONNECT_TIMEOUT_MS',
      doc: 'How long a connect may take.',
      unit: 'ms',
      fallback: 3000,
      min: 50,
      max: 30000,
    }),
  },
  rocketmq: {
    endpoint: endpoint({ env: 'ROCKETMQ_ENDPOINT', doc: 'gRPC endpoint of the RocketMQ proxy.' }),
    requestTimeoutMs: integer({
      env: 'ROCKETMQ_REQUEST_TIMEOUT_MS',
      doc: 'How long half message, commit and rollback may take.',
      unit: 'ms',
      fallback: 3000,
      min: 1000,
      max: 30000,
    }),
    startTimeoutMs: integer({
      env: 'ROCKETMQ_START_TIMEOUT_MS',
      doc: 'How long one try to start a client may take; a hung start is tried again.',
      unit: 'ms',
      fallback: 20000,
      min: 1000,
      max: 120000,
    }),
    checksInParallel: integer({
      env: 'ROCKETMQ_CHECKS_IN_PARALLEL',
      doc: 'Check-backs answered at once; the client starts all of them together.',
      unit: 'checks',
      fallback: 32,
      min: 1,
      max: 1000,
    }),
  },
  worker: {
    loops: integer({
      env: 'WORKER_LOOPS',
      doc: 'Consume loops of one worker process and topic.',
      unit: 'loops',
      fallback: 2,
      min: 1,
      max: 32,
    }),
    receiveMax: integer({
      env: 'WORKER_RECEIVE_MAX',
      doc: 'Batches written in one MySQL transaction at most.',
      unit: 'messages',
      fallback: 16,
      min: 1,
      max: 32,
    }),
    invisibleMs: integer({
      env: 'WORKER_INVISIBLE_MS',
      doc: 'A received message comes again after this time; longer than the slowest transaction.',
      unit: 'ms',
      fallback: 30000,
      min: 10000,
      max: 43200000,
    }),
  },
  mysql: {
    url: url({
      env: 'MYSQL_URL',
      doc: 'The MySQL or MariaDB that holds the orders.',
      protocols: ['mysql:'],
      secret: true,
    }),
    poolMax: integer({
      env: 'MYSQL_POOL_MAX',
      doc: 'Connections of one process.',
      unit: 'connections',
      fallback: 8,
      min: 1,
      max: 200,
    }),
    queryTimeoutMs: integer({
      env: 'MYSQL_QUERY_TIMEOUT_MS',
      doc: 'How long one statement may take.',
      unit: 'ms',
      fallback: 10000,
      min: 100,
      max: 120000,
    }),
  },
  order: {
    paymentWindowMs: integer({
      env: 'ORDER_PAYMENT_WINDOW_MS',
      doc: 'How long a buyer may take to pay.',
      unit: 'ms',
      fallback: 900000,
      min: 1000,
      max: 86400000,
    }),
    slotLeaseMs: integer({
      env: 'ORDER_SLOT_LEASE_MS',
      doc: 'How long a worker keeps its slot for order ids without renewing it.',
      unit: 'ms',
      fallback: 60000,
      min: 5000,
      max: 3600000,
    }),
  },
  keeper: {
    redriveAfterMs: integer({
      env: 'REDRIVE_AFTER_MS',
      doc: 'A batch deducted this long ago and not settled is published again; longer than a check-back takes.',
      unit: 'ms',
      fallback: 60000,
      min: 1000,
      max: 3600000,
    }),
    redriveMax: integer({
      env: 'REDRIVE_MAX',
      doc: 'Batches published again in one run, so that a slow worker is not stormed.',
      unit: 'batches',
      fallback: 100,
      min: 1,
      max: 10000,
    }),
    everyMs: integer({
      env: 'KEEPER_EVERY_MS',
      doc: 'Pause between two runs of a job.',
      unit: 'ms',
      fallback: 2000,
      min: 50,
      max: 600000,
    }),
  },
  metrics: {
    port: integer({
      env: 'METRICS_PORT',
      doc: 'Port for /metrics, /healthz and /readyz of worker and keeper; 0 picks a free one.',
      unit: '',
      fallback: 0,
      min: 0,
      max: 65535,
    }),
  },
  log: {
    level: word({
      env: 'LOG_LEVEL',
      doc: 'Least level that is written.',
      words: ['debug', 'info', 'warn', 'error', 'silent'],
      fallback: 'info',
    }),
  },
} as const satisfies Record<string, Record<string, Key<string> | Key<number>>>;

export type Schema = typeof SCHEMA;
export type SectionName = keyof Schema;
type ValueOf<K> = K extends Key<infer T> ? T : never;
export type Section<S extends SectionName> = { readonly [K in keyof Schema[S]]: ValueOf<Schema[S][K]> };
export type Config<S extends SectionName = SectionName> = { readonly [N in S]: Section<N> };

/** Sections that each program reads. */
export const PROGRAM_SECTIONS = {
  api: ['http', 'auth', 'gate', 'batch', 'redis', 'rocketmq', 'mysql', 'log'],
  worker: ['redis', 'rocketmq', 'worker', 'mysql', 'order', 'metrics', 'log'],
  keeper: ['redis', 'rocketmq', 'keeper', 'mysql', 'metrics', 'log'],
} as const satisfies Record<string, readonly SectionName[]>;
