import { fixed, integer, text, url, word, type Keys } from '../key.js';

// Settings of orders: how workers write them, how buyers pay and are notified.

export const worker = {
  loops: integer({
    env: 'WORKER_LOOPS',
    doc: 'Number of parallel loops in which one worker consumes a topic.',
    unit: 'loops',
    fallback: 2,
    min: 1,
    max: 32,
  }),
  /** Maximum number of batches in one MySQL transaction. */
  receiveMax: fixed('WORKER_RECEIVE_MAX', 16),
  invisibleMs: integer({
    env: 'WORKER_INVISIBLE_MS',
    doc: 'If a worker dies, the broker delivers its messages again after this time. Must be at least twice MYSQL_QUERY_TIMEOUT_MS, and at least minInvisibleTimeMillsForRecv of the RocketMQ proxy (10,000 by default).',
    unit: 'ms',
    fallback: 30000,
    min: 1000,
    max: 43200000,
  }),
  /** Pause before the second attempt at a batch that MySQL refused. Later pauses are 5, 15, 30 and 60 times as long. */
  retryFirstMs: fixed('WORKER_RETRY_FIRST_MS', 1000),
} as const satisfies Keys;

export const order = {
  paymentWindowMs: integer({
    env: 'ORDER_PAYMENT_WINDOW_MS',
    doc: 'How long a buyer has to pay. After that, an unpaid order expires.',
    unit: 'ms',
    fallback: 900000,
    min: 1000,
    max: 86400000,
  }),
  /** If a worker dies, its slot for order ids stays blocked for this long. There are far more slots than workers. */
  slotLeaseMs: fixed('ORDER_SLOT_LEASE_MS', 60_000),
} as const satisfies Keys;

export const payment = {
  provider: word({
    env: 'PAYMENT_PROVIDER',
    doc: 'Service that takes payments ([payments](payments.md)). `simulator` moves no money and is refused if NODE_ENV is production.',
    words: ['none', 'simulator', 'http', 'stripe'],
    fallback: 'none',
  }),
  apiKey: text({
    env: 'PAYMENT_API_KEY',
    doc: 'Credential for the payment provider. Stripe: a secret key (`sk_…`), or better a restricted key (`rk_…`) that may write PaymentIntents and Refunds. `http`: a bearer token.',
    optional: true,
    minLength: 16,
    secret: true,
    range: '16 characters or more',
  }),
  apiUrl: url({
    env: 'PAYMENT_API_URL',
    doc: 'Address of the payment provider. `http` needs it; Stripe uses it for tests only. Must be https, except on this machine.',
    optional: true,
    protocols: ['https:', 'http:'],
  }),
  webhookSecret: text({
    env: 'PAYMENT_WEBHOOK_SECRET',
    doc: 'Secret with which the payment provider signs webhook calls. Not set: the api refuses every call.',
    optional: true,
    minLength: 32,
    secret: true,
    range: '32 characters or more',
  }),
  webhookSecretBefore: text({
    env: 'PAYMENT_WEBHOOK_SECRET_BEFORE',
    doc: 'Previous webhook secret, also accepted while you change it.',
    optional: true,
    minLength: 32,
    secret: true,
    range: '32 characters or more',
  }),
  webhookMode: word({
    env: 'PAYMENT_WEBHOOK_MODE',
    doc: 'Payments that the webhook accepts: real money (`live`), or the test mode of the provider (`test`).',
    words: ['live', 'test'],
    fallback: 'live',
  }),
} as const satisfies Keys;

export const notifications = {
  /** While a buyer waits, the purchase is read again after this time, in case a notification was lost. */
  pollMaxMs: fixed('NOTIFICATIONS_POLL_MAX_MS', 5000),
  streamsMax: integer({
    env: 'EVENTS_STREAMS_MAX',
    doc: 'Maximum number of open event streams at one api, below HTTP_CONNECTIONS_MAX. Others get 503 `overloaded`.',
    unit: 'streams',
    fallback: 4000,
    min: 0,
    max: 100000,
  }),
  /** Maximum lifetime of a stream. Its client then reconnects, perhaps to another api. */
  streamMaxMs: fixed('EVENTS_STREAM_MAX_MS', 300_000),
  heartbeatMs: integer({
    env: 'EVENTS_HEARTBEAT_MS',
    doc: 'Pause between two comments that keep an event stream alive, and between two checks of its token. Must be shorter than the idle timeout of every proxy.',
    unit: 'ms',
    fallback: 15000,
    min: 100,
    max: 30000,
  }),
  /** How long a client waits before it reconnects. */
  retryMs: fixed('EVENTS_RETRY_MS', 2000),
} as const satisfies Keys;
