import { encodeOrderEvents } from '../core/order-event.js';
import { encodePaymentDeadline } from '../core/payment-deadline.js';
import { TOPICS } from '../core/topics.js';
import { traceProperty } from '../core/trace-context.js';
import type { DeadlineChannel, OrderEventChannel, RedriveChannel } from '../core/ports/channels.js';
import { ChannelHealth } from './probe.js';
import { type ConnectionOptions, baseClientOptions } from './client-options.js';
import type { Batch } from '../core/batch.js';
import { batchMessage } from './purchase-channel.js';
import type { MessageOptions } from 'rocketmq-client-nodejs';
import { OperationalError } from '../core/errors.js';
import { PatchedProducer } from './clients-with-workarounds.js';
import { type ProducerOptions, signedMessage } from './signed-message.js';
import { startClient, stopClient } from './start-client.js';

interface Opened {
  readonly health: ChannelHealth;
  /** Ends the client within some seconds. Never rejects. */
  close(): Promise<void>;
}

export interface PlainProducer extends Opened {
  /**
   * @param what names the message in an error
   * @throws OperationalError rocketmq; the message may be stored
   */
  send(message: Omit<MessageOptions, 'topic'>, what: string): Promise<void>;
}

/**
 * Starts a producer for one topic. The client makes up to 3 attempts, each within `requestTimeoutMs`.
 * @throws OperationalError if the producer does not start
 */
export async function startPlainProducer(topic: string, options: ConnectionOptions): Promise<PlainProducer> {
  const { log } = options;
  const address = { endpoint: options.endpoint, topic };
  const base = baseClientOptions(address, options);
  const make = () => new PatchedProducer({ ...base, topics: [topic] });
  const producer = await startClient(make, address, log, { ...options.start, tls: options.tls });
  const health = new ChannelHealth();
  return {
    health,
    async send(message, what): Promise<void> {
      try {
        await producer.send({ ...message, topic });
        health.succeeded();
      } catch (cause) {
        health.failed(cause);
        const retryable = !(cause instanceof TypeError);
        throw new OperationalError('rocketmq', `${what} not published to ${topic}`, { retryable, cause });
      }
    },
    close: () => stopClient(producer, log),
  };
}

export interface OpenRedriveChannel extends RedriveChannel, Opened {}

/**
 * Starts the producer of batches that are published again. The topic is of type NORMAL: a TRANSACTION topic refuses
 * plain messages.
 * @throws OperationalError if the producer does not start
 */
export async function createRedriveChannel(options: ProducerOptions): Promise<OpenRedriveChannel> {
  const topic = TOPICS.redrive;
  const { health, send, close } = await startPlainProducer(topic, options);
  return {
    health,
    publish: (batch: Batch) => send(batchMessage(topic, batch, options.signatures), `batch ${batch.batchId}`),
    close,
  };
}

export interface OpenDeadlineChannel extends DeadlineChannel, Opened {}
export interface OpenOrderEventChannel extends OrderEventChannel, Opened {}

/** The broker's timer works in whole seconds and may round down. An early message is of no use. */
const TIMER_PRECISION_MS = 1_000;

/** The topic must be of type DELAY. @throws OperationalError if the producer does not start */
export async function createDeadlineChannel(options: ProducerOptions): Promise<OpenDeadlineChannel> {
  const topic = TOPICS.paymentDeadline;
  const { health, send, close } = await startPlainProducer(topic, options);
  return {
    health,
    publish: (deadline, traceparent) => {
      const { batchId, saleId, deadlineAtMs } = deadline;
      const body = encodePaymentDeadline(deadline);
      const deliveryTimestamp = new Date(deadlineAtMs + TIMER_PRECISION_MS);
      const properties = { saleId, batchId, ...traceProperty(traceparent) };
      const message = signedMessage(topic, body, properties, options.signatures);
      return send({ ...message, keys: [batchId], deliveryTimestamp }, `deadline of batch ${batchId}`);
    },
    close,
  };
}

/** The topic must be of type NORMAL. @throws OperationalError if the producer does not start */
export async function createOrderEventChannel(options: ProducerOptions): Promise<OpenOrderEventChannel> {
  const topic = TOPICS.orderEvent;
  const { health, send, close } = await startPlainProducer(topic, options);
  return {
    health,
    publish: (events, traceparent) => {
      const saleId = events[0]?.saleId ?? '';
      const properties = { saleId, ...traceProperty(traceparent) };
      const message = signedMessage(topic, encodeOrderEvents(events), properties, options.signatures);
      return send({ ...message, keys: events.map(({ eventId }) => eventId) }, `event ${events[0]?.eventId}`);
    },
    close,
  };
}
