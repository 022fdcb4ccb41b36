import { integer, text, url, word, type Keys } from '../key.js';

// How orders are made and how buyers are notified.

export const worker = {
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
    doc:
      'A received message is delivered again after this time if its worker died; renewed while it is being written. ' +
      'The proxy refuses less than its minInvisibleTimeMillsForRecv, 10000 by default.',
    unit: 'ms',
    fallback: 30000,
    min: 1000,
    max: 43200000,
  }),
  retryFirstMs: integer({
    env: 'WORKER_RETRY_FIRST_MS',
    doc: 'Pause before the second try of a batch that MySQL refuses; the next are 5, 15, 30 and 60 times as long.',
    unit: 'ms',
    fallback: 1000,
    min: 10,
    max: 60000,
  }),
} as const satisfies Keys;

export const order = {
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
} as const satisfies Keys;

export const payment = {
  provider: word({
    env: 'PAYMENT_PROVIDER',
    doc: 'Who takes the money of POST …/pay (docs/payments.md). `simulator` moves none and is refused where NODE_ENV is production.',
    words: ['none', 'simulator', 'http', 'stripe'],
    fallback: 'none',
  }),
  apiKey: text({
    env: 'PAYMENT_API_KEY',
    doc: 'What the provider knows us by. Stripe: the secret key (`sk_…`), or better a restricted one (`rk_…`) that may write PaymentIntents and Refunds. `http`: a bearer token.',
    optional: true,
    minLength: 16,
    secret: true,
    range: '16 characters or more',
  }),
  apiUrl: url({
    env: 'PAYMENT_API_URL',
    doc: 'Where the provider is reached: needed for `http`; for Stripe only to test against another server. https, except on this machine.',
    optional: true,
    protocols: ['https:', 'http:'],
  }),
  webhookSecret: text({
    env: 'PAYMENT_WEBHOOK_SECRET',
    doc: 'Secret that the payment provider signs its webhook calls with; without it every call is refused.',
    optional: true,
    minLength: 32,
    secret: true,
    range: '32 characters or more',
  }),
  webhookSecretBefore: text({
    env: 'PAYMENT_WEBHOOK_SECRET_BEFORE',
    doc: 'While the secret of the webhook is changed: the one before, which is accepted too. Remove it when the provider signs with the new one.',
    optional: true,
    minLength: 32,
    secret: true,
    range: '32 characters or more',
  }),
  webhookMode: word({
    env: 'PAYMENT_WEBHOOK_MODE',
    doc: 'Which payments the webhook accepts: `live` ones are real money (`"live": true`), `test` ones are those of a trial mode of the provider.',
    words: ['live', 'test'],
    fallback: 'live',
  }),
} as const satisfies Keys;

export const notifications = {
  pollMaxMs: integer({
    env: 'NOTIFICATIONS_POLL_MAX_MS',
    doc: 'A purchase that a buyer waits for is read again after this time at the latest, even without a notification.',
    unit: 'ms',
    fallback: 5000,
    min: 100,
    max: 60000,
  }),
  streamsMax: integer({
    env: 'EVENTS_STREAMS_MAX',
    doc: 'Event streams open at once in one api; one more is answered 503 overloaded. Each is a connection, so fewer than HTTP_CONNECTIONS_MAX.',
    unit: 'streams',
    fallback: 4000,
    min: 0,
    max: 100000,
  }),
  streamsPerBuyerMax: integer({
    env: 'EVENTS_STREAMS_PER_BUYER_MAX',
    doc: 'Event streams that one buyer may have open at one api; one more is answered 503 overloaded.',
    unit: 'streams',
    fallback: 10,
    min: 1,
    max: 1000,
  }),
  streamsPerAddressMax: integer({
    env: 'EVENTS_STREAMS_PER_ADDRESS_MAX',
    doc: 'The same for buyers at one address; addresses in HTTP_UNLIMITED_NETWORKS are not counted.',
    unit: 'streams',
    fallback: 200,
    min: 1,
    max: 100000,
  }),
  streamMaxMs: integer({
    env: 'EVENTS_STREAM_MAX_MS',
    doc: 'A stream ends after this time, and its client connects again.',
    unit: 'ms',
    fallback: 300000,
    min: 100,
    max: 3600000,
  }),
  heartbeatMs: integer({
    env: 'EVENTS_HEARTBEAT_MS',
    doc: 'Pause between two comments that keep a stream alive. At each the token is checked again. Shorter than the idle time-out of proxies and of our own server.',
    unit: 'ms',
    fallback: 15000,
    min: 100,
    max: 30000,
  }),
  retryMs: integer({
    env: 'EVENTS_RETRY_MS',
    doc: 'How long a client whose stream has ended is asked to wait before it connects again.',
    unit: 'ms',
    fallback: 2000,
    min: 100,
    max: 60000,
  }),
} as const satisfies Keys;
