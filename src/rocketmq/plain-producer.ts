import type { MessageOptions } from 'rocketmq-client-nodejs';
import { OperationalError } from '../core/errors.js';
import { ChannelHealth } from './channel-health.js';
import { baseClientOptions, type ConnectionOptions } from './client-options.js';
import { FencedProducer } from './fenced-clients.js';
import { startClient, stopClient } from './start-client.js';

/** A producer of one topic whose messages need no transaction. */
export interface PlainProducer {
  readonly health: ChannelHealth;
  /**
   * @param what names the message in the error
   * @throws OperationalError rocketmq; the message may have been stored
   */
  send(message: Omit<MessageOptions, 'topic'>, what: string): Promise<void>;
  /** Ends the client within some seconds. Never rejects. */
  close(): Promise<void>;
}

/**
 * Starts a producer of one topic. `requestTimeoutMs` is for one try of a send; the client makes up to 3.
 * @throws OperationalError when it does not start
 */
export async function startPlainProducer(topic: string, options: ConnectionOptions): Promise<PlainProducer> {
  const { log } = options;
  const address = { endpoint: options.endpoint, topic };
  const base = baseClientOptions(address, options);
  const make = () => new FencedProducer({ ...base, topics: [topic] });
  const producer = await startClient(make, address, log, options.start);
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
