import type { Batch } from '../core/batch.js';
import { TOPICS } from '../core/topics.js';
import type { RedriveChannel } from '../core/ports/channels.js';
import { batchMessage } from './batch-message.js';
import type { ChannelHealth } from './channel-health.js';
import type { ConnectionOptions } from './client-options.js';
import { startPlainProducer } from './plain-producer.js';

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
  const topic = options.topic ?? TOPICS.redrive;
  const { health, send, close } = await startPlainProducer(topic, options);
  return {
    health,
    publish: (batch: Batch) => send(batchMessage(topic, batch), `batch ${batch.batchId}`),
    close,
  };
}
