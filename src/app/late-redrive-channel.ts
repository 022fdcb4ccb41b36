import type { Section } from '../config/schema.js';
import type { Log } from '../ports/log.js';
import type { RedriveChannel } from '../ports/purchase-channel.js';
import { createRedriveChannel, type OpenRedriveChannel } from '../rocketmq/redrive-channel.js';

/** The re-drive topic, with a producer from the first message on; one that did not start is tried anew. */
export class LateRedriveChannel implements RedriveChannel {
  readonly #options: Section<'rocketmq'>;
  readonly #log: Log;
  #opening: Promise<OpenRedriveChannel> | null = null;

  constructor(options: Section<'rocketmq'>, log: Log) {
    this.#options = options;
    this.#log = log;
  }

  async publish(batch: Parameters<RedriveChannel['publish']>[0]): Promise<void> {
    const channel = await (this.#opening ??= this.#open());
    return channel.publish(batch);
  }

  async close(): Promise<void> {
    const channel = await this.#opening?.catch(() => null);
    await channel?.close();
  }

  async #open(): Promise<OpenRedriveChannel> {
    const { endpoint, requestTimeoutMs, startTimeoutMs } = this.#options;
    const start = { startupTimeoutMs: startTimeoutMs };
    try {
      return await createRedriveChannel({ endpoint, requestTimeoutMs, log: this.#log, start });
    } catch (error) {
      this.#opening = null;
      throw error;
    }
  }
}
