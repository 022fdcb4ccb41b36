import { encodeOrderEvents } from '../core/order-event.js';
import { encodePaymentDeadline } from '../core/payment-deadline.js';
import { TOPICS } from '../core/topics.js';
import type { DeadlineChannel, OrderEventChannel } from '../core/ports/channels.js';
import type { ChannelHealth } from './channel-health.js';
import type { ConnectionOptions } from './client-options.js';
import { startPlainProducer } from './plain-producer.js';

interface Opened {
  readonly health: ChannelHealth;
  /** Ends the client within some seconds. Never rejects. */
  close(): Promise<void>;
}
export type OpenDeadlineChannel = DeadlineChannel & Opened;
export type OpenOrderEventChannel = OrderEventChannel & Opened;

/** The timer of the broker works in whole seconds and may round down: before its time a message is of no use. */
const TIMER_PRECISION_MS = 1_000;

/**
 * Starts the producer of the topic of payment deadlines, which must be of type DELAY.
 * @throws OperationalError when it does not start
 */
export async function createDeadlineChannel(options: ConnectionOptions): Promise<OpenDeadlineChannel> {
  const topic = TOPICS.paymentDeadline;
  const { health, send, close } = await startPlainProducer(topic, options);
  return {
    health,
    publish: (deadline) =>
      send(
        {
          keys: [deadline.batchId],
          properties: propertiesOf({ topic, saleId: deadline.saleId, batchId: deadline.batchId }),
          deliveryTimestamp: new Date(deadline.deadlineAtMs + TIMER_PRECISION_MS),
          body: Buffer.from(encodePaymentDeadline(deadline), 'utf8'),
        },
        `deadline of batch ${deadline.batchId}`,
      ),
    close,
  };
}

/**
 * Starts the producer of the topic of order events, which must be of type NORMAL.
 * @throws OperationalError when it does not start
 */
export async function createOrderEventChannel(options: ConnectionOptions): Promise<OpenOrderEventChannel> {
  const topic = TOPICS.orderEvent;
  const { health, send, close } = await startPlainProducer(topic, options);
  return {
    health,
    publish: (events) =>
      send(
        {
          keys: events.map(({ eventId }) => eventId),
          properties: propertiesOf({ topic, saleId: events[0]?.saleId ?? '' }),
          body: Buffer.from(encodeOrderEvents(events), 'utf8'),
        },
        `event ${events[0]?.eventId}`,
      ),
    close,
  };
}

/** For a dead letter, which does not say where it came from. */
const propertiesOf = (properties: Readonly<Record<string, string>>): Map<string, string> =>
  new Map(Object.entries(properties));
