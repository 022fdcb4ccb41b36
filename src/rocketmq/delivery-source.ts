import type { MessageView } from 'rocketmq-client-nodejs';
import { pause } from '../core/after.js';
import { assert, OperationalError } from '../core/errors.js';
import type { Delivery, DeliverySource } from '../core/ports/channels.js';
import { OutageLog } from '../core/outage-log.js';
import type { Log } from '../core/ports/log.js';
import { ChannelHealth } from './probe.js';
import {
  baseClientOptions,
  REQUEST_TIMEOUT_MS_DEFAULT,
  type ClientAddress,
  type ConnectionOptions,
  type StartLimits,
} from './client-options.js';
import { PatchedConsumer } from './clients-with-workarounds.js';
import { adviceFor, startClient, stopClient, within } from './start-client.js';

/** Maximum number of messages that the broker delivers at once. */
const RECEIVE_MAX = 32;
/** A proxy with default settings holds an empty receive for 5 to 20 s, whatever the request says. */
const AWAIT_MS_DEFAULT = 5_000;
/**
 * A consumer whose receives fail for this long is replaced: after a long stall, the proxy may have forgotten the
 * client, whose receives would fail forever.
 */
const REPLACE_AFTER_MS = 60_000;
/** How long `close` waits for deliveries that are still being processed. */
const DRAIN_MS = 5_000;
const DRAIN_POLL_MS = 20;
/** The broker counts check-backs here. A message without any lacks it. */
const CHECKED_BACK = 'TRANSACTION_CHECK_TIMES';

/** Options of a delivery source. A receive gets `requestTimeoutMs` in addition to `awaitMs`. */
export interface DeliverySourceOptions extends ConnectionOptions {
  readonly topic: string;
  readonly group: string;
  /** How long a delivery stays ours without `hold`, ms. The proxy requires at least 10000 by default. */
  readonly invisibleMs: number;
  /** How long an empty receive waits, ms. Default 5000; at most 20000. */
  readonly awaitMs?: number;
}

export interface OpenDeliverySource extends DeliverySource {
  readonly health: ChannelHealth;
  /** Receives that must run at a time to wait at every broker. With fewer, messages of some brokers wait. */
  readonly brokers: number;
  /**
   * Stops the source: `receive` then returns an empty list at once. Receives under way still return messages, which can
   * be acked. The client ends once these messages are done, or after a time limit. Other messages are delivered again
   * after their invisible time. Never rejects.
   */
  close(): Promise<void>;
}

/** @throws OperationalError if the consumer does not start */
export async function createDeliverySource(options: DeliverySourceOptions): Promise<OpenDeliverySource> {
  const source = new RocketmqDeliverySource(options);
  await source.start();
  return source;
}

class RocketmqDeliverySource implements OpenDeliverySource {
  readonly health = new ChannelHealth();
  readonly #options: DeliverySourceOptions;
  readonly #address: ClientAddress;
  readonly #log: Log;
  readonly #receives = new Set<Promise<unknown>>();
  /** Messages returned, but neither acked nor given back, and until when they are ours (`performance.now()`). */
  readonly #handedOut = new Map<MessageView, number>();
  /** Counts new consumers until one receives. */
  readonly #outage: OutageLog;
  #consumer!: PatchedConsumer;
  /** Since when every receive has failed. Null after a successful receive. */
  #failingSinceMs: number | null = null;
  #replacing: Promise<void> | null = null;
  #closing = false;

  constructor(options: DeliverySourceOptions) {
    this.#options = options;
    this.#log = options.log;
    this.#address = { endpoint: options.endpoint, topic: options.topic, group: options.group };
    const messages = {
      begins: 'no call of receive has returned for too long; starting a new consumer each minute',
      ends: 'a new consumer receives messages',
    };
    this.#outage = new OutageLog(options.log, messages, this.#address);
  }

  async start(): Promise<void> {
    this.#consumer = await this.#startConsumer(this.#options.start);
  }

  get brokers(): number {
    return this.#consumer.brokers;
  }

  async receive(max: number): Promise<Delivery[]> {
    assert(max >= 1 && max <= RECEIVE_MAX, `max must be 1 to ${RECEIVE_MAX}`);
    if (this.#closing) return [];
    if (this.#hasLostProxy()) await (this.#replacing ??= this.#replaceConsumer());
    const startedAtMs = performance.now();
    const call = this.#consumer.receive(max, this.#options.invisibleMs);
    this.#receives.add(call);
    try {
      const views = await call;
      this.#failingSinceMs = null;
      this.health.succeeded();
      this.#outage.end();
      return views.filter((view) => this.#isWhole(view)).map((view) => this.#toDelivery(view));
    } catch (cause) {
      this.#failingSinceMs ??= startedAtMs;
      this.health.failed(cause);
      const { topic, group } = this.#address;
      const message = `receive failed (topic ${topic}, group ${group}): ${String(cause)}. ${adviceFor(String(cause))}`;
      throw new OperationalError('rocketmq', message, { retryable: true, cause });
    } finally {
      this.#receives.delete(call);
    }
  }

  async close(): Promise<void> {
    this.#closing = true;
    const { awaitMs = AWAIT_MS_DEFAULT, requestTimeoutMs = REQUEST_TIMEOUT_MS_DEFAULT } = this.#options;
    await within(Promise.allSettled(this.#receives), awaitMs + requestTimeoutMs);
    const drainedBy = performance.now() + DRAIN_MS;
    while (this.#handedOut.size > 0 && performance.now() < drainedBy) await pause(DRAIN_POLL_MS);
    await stopClient(this.#consumer, this.#log);
  }

  #startConsumer(limits: StartLimits = {}): Promise<PatchedConsumer> {
    const { topic, group, awaitMs = AWAIT_MS_DEFAULT } = this.#options;
    const make = () =>
      new PatchedConsumer({
        ...baseClientOptions(this.#address, this.#options),
        consumerGroup: group,
        subscriptions: new Map([[topic, '*']]),
        awaitDuration: awaitMs,
        maxRetryAttempts: 1, // our own loops back off, and log it
      });
    return startClient(make, this.#address, this.#log, { ...limits, tls: this.#options.tls });
  }

  #hasLostProxy(): boolean {
    return this.#failingSinceMs !== null && performance.now() - this.#failingSinceMs >= REPLACE_AFTER_MS;
  }

  /** The new client can ack messages of the old one, because a receipt belongs to the group. */
  async #replaceConsumer(): Promise<void> {
    this.#outage.failed(this.health.lastError);
    try {
      const old = this.#consumer;
      this.#consumer = await this.#startConsumer({ ...this.#options.start, attempts: 1 });
      this.#failingSinceMs = null;
      void stopClient(old, this.#log); // time-limited, never rejects
    } catch (error) {
      this.#failingSinceMs = performance.now(); // the old client runs on, and the next attempt waits REPLACE_AFTER_MS
      throw error;
    } finally {
      this.#replacing = null;
    }
  }

  /** A body without the right checksum is not returned: the broker delivers it again after its invisible time. */
  #isWhole(view: MessageView): boolean {
    if (!view.corrupted) return true;
    this.#log.error(
      { ...this.#address, messageId: view.messageId },
      'a message arrived damaged; the broker delivers it again',
    );
    return false;
  }

  #toDelivery(view: MessageView): Delivery {
    this.#forgetExpired();
    this.#handedOut.set(view, performance.now() + this.#options.invisibleMs);
    let done = false; // the client would accept an ack of a message that was given back
    const once = async (verb: string, call: () => Promise<void>): Promise<boolean> => {
      if (done) return false;
      done = await this.#end(view, verb, call);
      return done;
    };
    return {
      messageId: view.messageId,
      body: view.body.toString('utf8'),
      attempt: view.deliveryAttempt ?? 1,
      checkedBack: view.properties.has(CHECKED_BACK),
      properties: view.properties,
      ack: () => once('ack', () => this.#consumer.ackOne(view)),
      hold: async (ms) => {
        if (done || !(await this.#wasAccepted(view, 'hold', () => this.#consumer.hideFor(view, ms)))) return false;
        this.#handedOut.set(view, performance.now() + ms);
        return true;
      },
      retryAfter: async (delayMs) => {
        await once('retry', () => this.#consumer.hideFor(view, delayMs));
      },
    };
  }

  async #end(view: MessageView, verb: string, call: () => Promise<void>): Promise<boolean> {
    const accepted = await this.#wasAccepted(view, verb, call);
    this.#handedOut.delete(view);
    return accepted;
  }

  async #wasAccepted(view: MessageView, verb: string, call: () => Promise<void>): Promise<boolean> {
    try {
      await call();
      return true;
    } catch (error) {
      const fields = { ...this.#address, messageId: view.messageId, verb, error: String(error) };
      this.#log.warn(fields, 'the broker did not accept it and delivers the message again');
      return false;
    }
  }

  #forgetExpired(): void {
    const now = performance.now();
    for (const [view, untilMs] of this.#handedOut) if (untilMs <= now) this.#handedOut.delete(view);
  }
}
