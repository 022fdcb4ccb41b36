import type { Batch } from '../domain/batch.js';
import { OperationalError } from '../domain/errors.js';
import { TOPICS } from '../domain/topics.js';
import type { RedriveChannel } from '../ports/purchase-channel.js';
import { batchMessage } from './batch-message.js';
import { ChannelHealth } from './channel-health.js';
import { baseClientOptions, type ConnectionOptions } from './client-options.js';
import { FencedProducer } from './fenced-clients.js';
import { startClient, stopClient } from './start-client.js';

/** `requestTimeoutMs` is for one try of a send; the client makes up to 3. */
export interface RedriveChannelOptions extends ConnectionOptions {
  /** Default `seckill-purchase-redrive`. Must be of type NORMAL: a TRANSACTION topic refuses plain messages. */
  readonly topic?: string;
}

export interface OpenRedriveChannel extends RedriveChannel {
  readonly health: ChannelHealth;
  /** Ends the client within some seconds. Never rejects. */
  close(): Promise<void>;
}

/**
 * Starts the producer of the re-drive topic.
 * @throws OperationalError when it does not start
 */
export async function createRedriveChannel(options: RedriveChannelOptions): Promise<OpenRedriveChannel> {
  const { log } = options;
  const address = { endpoint: options.endpoint, topic: options.topic ?? TOPICS.redrive };
  const base = baseClientOptions(address, options);
  const make = () => new FencedProducer({ ...base, topics: [address.topic] });
  const producer = await startClient(make, address, log, options.start);
  const health = new ChannelHealth();
  return {
    health,
    async publish(batch: Batch): Promise<void> {
      try {
        await producer.send(batchMessage(address.topic, batch));
        health.succeeded();
      } catch (cause) {
        health.failed(cause);
        throw new OperationalError('rocketmq', `batch ${batch.batchId} not published to ${address.topic}`, {
          retryable: !(cause instanceof TypeError),
          cause,
        });
      }
    },
    close: () => stopClient(producer, log),
  };
}
