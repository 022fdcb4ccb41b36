// Consumes the events of orders, as a service of yours would: docs/events.md. Prints one line of JSON per event.
//
//   eval "$(npm run -s stack -- env)"
//   node examples/order-events/main.mjs
//
// ROCKETMQ_ENDPOINT is where the broker is, ROCKETMQ_ACCESS_KEY and ROCKETMQ_ACCESS_SECRET are as whom it is read,
// GROUP is the consumer group (shop-orders), TOPIC what it reads (seckill-order-event).

import { SimpleConsumer } from 'rocketmq-client-nodejs';

const { ROCKETMQ_ENDPOINT = '127.0.0.1:8081', GROUP = 'shop-orders', TOPIC = 'seckill-order-event' } = process.env;
// For a broker with access control, as the local one is.
const { ROCKETMQ_ACCESS_KEY: accessKey, ROCKETMQ_ACCESS_SECRET: accessSecret } = process.env;
// By TLS; its authority is what GRPC_DEFAULT_SSL_ROOTS_FILE_PATH names, or one that Node trusts.
const sslEnabled = (process.env.ROCKETMQ_TLS ?? 'off') !== 'off';

/** How long a message is ours: longer than `handle` may ever take. If we die, it comes again after that. */
const INVISIBLE_MS = 30_000;
/** A receive without messages lasts so long. */
const AWAIT_MS = 5_000;
const START_MAX_MS = 20_000;
const PAUSE_MS = 1_000;
/** After a failure a message rests for 1, 2, 4 … 60 s. */
const RETRY_MAX_MS = 60_000;
const ADVICE = `\n  Create it: seckill topics --group ${GROUP}`;

/**
 * Ids of events that are done. Yours belong into your database: a unique key, written in the transaction of what follows
 * from the event. In memory they help against copies that come soon after each other, and not after a restart.
 */
const done = new Set();
const DONE_MAX = 100_000;

/** What you do for an event. It may reject; then its message comes again. */
async function handle(event) {
  console.log(JSON.stringify(event));
}

/** @returns the events of a body; throws for one of a version that this program does not know */
function eventsOf(body) {
  const { v, events } = JSON.parse(body);
  if (v !== 1) throw new Error(`version ${v} of the body, known is 1`);
  return events;
}

/** A message is whole or not at all: the events of it that were done before it failed are skipped when it comes again. */
async function work(consumer, message) {
  try {
    for (const event of eventsOf(message.body.toString('utf8'))) {
      if (done.has(event.eventId)) continue;
      await handle(event); // a type that you do not know is no error: do nothing for it
      done.add(event.eventId);
      if (done.size > DONE_MAX) done.delete(done.values().next().value);
    }
    await consumer.ack(message);
  } catch (error) {
    const attempt = message.deliveryAttempt ?? 1;
    console.error(`message ${message.messageId}, attempt ${attempt}: ${error.message}`);
    // If this call is lost, the message comes again after INVISIBLE_MS. After the last attempt it is a dead letter.
    const restMs = Math.min(1_000 * 2 ** (attempt - 1), RETRY_MAX_MS);
    await consumer.changeInvisibleDuration(message, restMs).catch(() => undefined);
  }
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

let stopping = false;
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => (stopping = true));
// The client may raise an error of a stream that it has closed itself.
process.on('uncaughtException', (error) => {
  if (stopping && error.code === 1) return;
  console.error(error);
  process.exit(1);
});

const quiet = () => undefined;
const consumer = new SimpleConsumer({
  endpoints: ROCKETMQ_ENDPOINT,
  namespace: '',
  sslEnabled,
  ...(accessKey && accessSecret ? { sessionCredentials: { accessKey, accessSecret } } : {}),
  consumerGroup: GROUP,
  subscriptions: new Map([[TOPIC, '*']]), // one topic per client
  awaitDuration: AWAIT_MS,
  logger: { debug: quiet, info: quiet, warn: quiet, error: quiet, close: quiet }, // else it writes files below HOME
});

const started = consumer.startup().then(
  () => null,
  (error) => error.message,
);
const problem = await Promise.race([started, sleep(START_MAX_MS).then(() => 'no answer')]);
if (problem !== null) {
  console.error(`${ROCKETMQ_ENDPOINT}: ${problem}. Does the group exist?${ADVICE}`);
  process.exit(1);
}
console.error(`Group ${GROUP} waits for messages of ${TOPIC}.`);
while (!stopping) {
  try {
    const messages = await consumer.receive(16, INVISIBLE_MS);
    await Promise.all(messages.map((message) => work(consumer, message)));
  } catch (error) {
    console.error(`receive: ${error.message}${/group .* does not exist/.test(error.message) ? ADVICE : ''}`);
    await sleep(PAUSE_MS);
  }
}
await Promise.race([consumer.shutdown().catch(() => undefined), sleep(AWAIT_MS)]);
process.exit(0);
