import { type MessageOptions, Message, type SendReceipt } from 'rocketmq-client-nodejs';
import { logFieldsOf, type Batch } from '../core/batch.js';
import { traceIdsOf, traceProperty } from '../core/trace-context.js';
import definition from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';
import { TOPICS } from '../core/topics.js';
import type { ChannelMetrics } from './metrics.js';
import type { Log } from '../core/ports/log.js';
import type { HalfMessage, PurchaseChannel } from '../core/ports/channels.js';
import { ChannelHealth } from './probe.js';
import { createChecker, type CheckerOptions } from './checker.js';
import { isCertainlyNotStored, isForgottenTransaction, mayGoToAnotherBroker, wasNeverSent } from './classify-error.js';
import { baseClientOptions } from './client-options.js';
import { PatchedProducer } from './clients-with-workarounds.js';
import { type ProducerOptions, signedMessage } from './signed-message.js';
import { startClient, stopClient } from './start-client.js';

const { TransactionResolution } = definition;

/** A proxy rotates over the queues itself. A topic has eight per broker, so the ninth send goes to another broker. */
const SENDS_MAX = 9;
/** A buyer waits for all sends together. If a connection is refused, that usually takes less than a millisecond. */
const SEND_AGAIN_WITHIN_MS = 1_000;

export interface PurchaseChannelOptions extends ProducerOptions, CheckerOptions {
  /** Default: `seckill-purchase`. Must be of type TRANSACTION. */
  readonly topic?: string;
  readonly metrics: ChannelMetrics;
}

export interface OpenPurchaseChannel extends PurchaseChannel {
  /** Outcome of the last calls, for `/readyz`. */
  readonly health: ChannelHealth;
  /** Ends the client within seconds. The check-back ends open half messages. Never rejects. */
  close(): Promise<void>;
}

/** @throws OperationalError if the producer does not start */
export async function createPurchaseChannel(options: PurchaseChannelOptions): Promise<OpenPurchaseChannel> {
  const { log } = options;
  const address = { endpoint: options.endpoint, topic: options.topic ?? TOPICS.purchase };
  const base = baseClientOptions(address, options);
  const checker = createChecker(options);
  // The topic is declared here rather than at the first send, because an undeclared topic gets no check-backs.
  const make = () => new PatchedProducer({ ...base, topics: [address.topic], checker });
  const producer = await startClient(make, address, log, { ...options.start, tls: options.tls });
  return new RocketmqPurchaseChannel(producer, address.topic, options);
}

class RocketmqPurchaseChannel implements OpenPurchaseChannel {
  readonly health = new ChannelHealth();
  readonly #producer: PatchedProducer;
  readonly #topic: string;
  readonly #log: Log;
  readonly #metrics: ChannelMetrics;
  readonly #signatures: ProducerOptions['signatures'];
  /** Used in place of every message when a transaction ends, because the client reads only the topic. */
  readonly #ending: Message;

  constructor(producer: PatchedProducer, topic: string, options: PurchaseChannelOptions) {
    this.#producer = producer;
    this.#topic = topic;
    this.#log = options.log;
    this.#metrics = options.metrics;
    this.#signatures = options.signatures;
    this.#ending = new Message({ topic, body: Buffer.alloc(0) });
  }

  async sendHalf(batch: Batch): Promise<HalfMessage | 'unavailable' | 'outcome_unknown'> {
    const startedAt = performance.now();
    try {
      const receipt = await this.#sendToSomeBroker(batchMessage(this.#topic, batch, this.#signatures), startedAt);
      // Without a transaction id, only the check-back can end this message.
      if (!receipt?.transactionId) throw new Error('the broker answered without a transaction id');
      this.health.succeeded();
      this.#metrics.halfSent('stored', performance.now() - startedAt);
      return this.#halfMessage(receipt, batch);
    } catch (error) {
      const outcome = isCertainlyNotStored(error) ? 'unavailable' : 'outcome_unknown';
      this.#metrics.halfSent(outcome, performance.now() - startedAt);
      this.#logFailure({ ...logFieldsOf(batch), outcome, error: String(error) }, 'half message not sent');
      this.health.failed(error);
      return outcome;
    }
  }

  close(): Promise<void> {
    return stopClient(this.#producer, this.#log);
  }

  /** Sends again as long as there is another broker and no broker can have stored the message. */
  async #sendToSomeBroker(message: MessageOptions, startedAt: number): Promise<SendReceipt> {
    for (let sends = 1; ; sends++) {
      try {
        return await this.#producer.send(message, this.#producer.beginTransaction());
      } catch (error) {
        const others = wasNeverSent(error) ? this.#producer.addresses : this.#producer.brokers;
        const mayTryAgain = sends < SENDS_MAX && performance.now() - startedAt < SEND_AGAIN_WITHIN_MS;
        if (!mayTryAgain || others < 2 || !mayGoToAnotherBroker(error)) throw error;
      }
    }
  }

  #halfMessage(receipt: SendReceipt, batch: Batch): HalfMessage {
    return {
      commit: async () => {
        await this.#end('commit', receipt, batch);
      },
      rollback: () => this.#end('rollback', receipt, batch),
    };
  }

  async #end(verb: 'commit' | 'rollback', receipt: SendReceipt, batch: Batch): Promise<boolean> {
    const resolution = verb === 'commit' ? TransactionResolution.COMMIT : TransactionResolution.ROLLBACK;
    const { endpoints, messageId, transactionId } = receipt;
    try {
      await this.#producer.endTransaction(endpoints, this.#ending, messageId, transactionId, resolution);
      return true;
    } catch (error) {
      this.#metrics.endFailed(verb);
      const fields = { ...logFieldsOf(batch), verb, error: String(error) };
      if (isForgottenTransaction(error)) this.#log.debug(fields, 'the proxy no longer knows the half message');
      else this.#logFailure(fields, 'could not end a half message; a check-back ends it');
      return false;
    }
  }

  /** Warns once when failures begin. While they last, only the metrics count them. */
  #logFailure(fields: object, message: string): void {
    if (this.health.isFailing()) this.#log.debug(fields, message);
    else this.#log.warn(fields, message);
  }
}

/** Trace ids per message. Each is an entry in a broker index, which holds twenty million. */
const TRACE_KEYS_MAX = 16;

/**
 * The keys are the batch id and the first trace ids, so people find the message with `queryMsgByKey`, even as a half
 * message or after a rollback.
 */
export function batchMessage(topic: string, batch: Batch, signatures: ProducerOptions['signatures']): MessageOptions {
  const { batchId, saleId, epoch, body, traceparent, purchases } = batch;
  const properties = { saleId, batchId, epoch: String(epoch), ...traceProperty(traceparent) };
  const keys = [batchId, ...traceIdsOf(purchases).slice(0, TRACE_KEYS_MAX)];
  return { topic, keys, ...signedMessage(topic, body, properties, signatures) };
}
