import type { StackEnv } from '../../../deploy/local/stack/settings.js';
import { decodeOrderEvents, type OrderEvent } from '../../../src/core/order-event.js';
import { brokerOf } from '../../helpers/broker.js';
import { silentLog } from '../../helpers/silent-log.js';
import { TOPICS } from '../../../src/core/topics.js';
import { createDeliverySource, type OpenDeliverySource } from '../../../src/rocketmq/delivery-source.js';

/** A separate group, so that no program takes its messages. `createTopics` creates it. */
export const LISTENER_GROUP = 'seckill-test-listener';
const INVISIBLE_MS = 10_000;
/** Pause after a failed receive, because the test may have stopped the broker. */
const PAUSE_MS = 200;

/** Receives every order event, as an additional consumer group. */
export class OrderEventListener {
  readonly #source: OpenDeliverySource;
  readonly #events: OrderEvent[] = [];
  readonly #messageIds = new Set<string>();
  readonly #listening: Promise<void>;
  #closed = false;

  private constructor(source: OpenDeliverySource) {
    this.#source = source;
    this.#listening = this.#listen();
  }

  static async open(env: StackEnv): Promise<OrderEventListener> {
    const topic = { topic: TOPICS.orderEvent, group: LISTENER_GROUP, invisibleMs: INVISIBLE_MS, awaitMs: 1_000 };
    return new OrderEventListener(await createDeliverySource({ ...topic, ...brokerOf(env), log: silentLog }));
  }

  /** Events of one sale as they were published: an event published twice appears twice, a redelivery does not. */
  eventsOf(saleId: string): OrderEvent[] {
    return this.#events.filter((event) => event.saleId === saleId);
  }

  /** Ids of the orders in events of this type, sorted. */
  ordersOf(saleId: string, type: OrderEvent['type']): string[] {
    const events = this.eventsOf(saleId).filter((event) => event.type === type);
    return events.flatMap(({ orders }) => orders).sort();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#source.close();
    await this.#listening;
  }

  async #listen(): Promise<void> {
    while (!this.#closed) {
      try {
        for (const delivery of await this.#source.receive(32)) {
          const decoded = decodeOrderEvents(delivery.body);
          if (decoded.outcome !== 'decoded') throw new Error(decoded.detail);
          if (!this.#messageIds.has(delivery.messageId)) this.#events.push(...decoded.events);
          this.#messageIds.add(delivery.messageId);
          await delivery.ack();
        }
      } catch {
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    }
  }
}
