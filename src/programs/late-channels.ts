import type { Section } from '../core/config/schema.js';
import type { Log } from '../core/ports/log.js';
import type { DeadlineChannel, OrderEventChannel, RedriveChannel } from '../core/ports/channels.js';
import { createDeadlineChannel, createOrderEventChannel } from '../rocketmq/order-channels.js';
import { createRedriveChannel } from '../rocketmq/redrive-channel.js';
import { brokerConnection } from './broker-connection.js';

type MessageOf<C extends Channel<never>> = Parameters<C['publish']>[0];

interface Channel<M> {
  publish(message: M): Promise<void>;
}

interface OpenChannel<M> extends Channel<M> {
  /** Never rejects. */
  close(): Promise<void>;
}

/** Producers of operators, who seldom need one: each starts with its first message. */
export function lateChannels(rocketmq: Section<'rocketmq'>, log: Log) {
  const connection = brokerConnection(rocketmq, log);
  return {
    redrives: () => new LateChannel<MessageOf<RedriveChannel>>(() => createRedriveChannel(connection)),
    deadlines: () => new LateChannel<MessageOf<DeadlineChannel>>(() => createDeadlineChannel(connection)),
    events: () => new LateChannel<MessageOf<OrderEventChannel>>(() => createOrderEventChannel(connection)),
  };
}

/** A topic with a producer from the first message on; one that did not start is tried anew. */
class LateChannel<M> implements OpenChannel<M> {
  readonly #start: () => Promise<OpenChannel<M>>;
  #opening: Promise<OpenChannel<M>> | null = null;

  constructor(start: () => Promise<OpenChannel<M>>) {
    this.#start = start;
  }

  async publish(message: M): Promise<void> {
    const channel = await (this.#opening ??= this.#open());
    return channel.publish(message);
  }

  async close(): Promise<void> {
    const channel = await this.#opening?.catch(() => null);
    await channel?.close();
  }

  async #open(): Promise<OpenChannel<M>> {
    try {
      return await this.#start();
    } catch (error) {
      this.#opening = null;
      throw error;
    }
  }
}
