import { decodeOrderEvents, type OrderEvent } from '../../../src/core/order-event.js';
import { TOPICS } from '../../../src/core/topics.js';
import { silentLog } from '../../../src/core/ports/log.js';
import { createDeliverySource, type OpenDeliverySource } from '../../../src/rocketmq/delivery-source.js';
import type { StackEnv } from '../../../deploy/local/stack/env.js';

/** Of its own, so that no program takes its messages; whoever boots the stack creates it. */
export const EAR_GROUP = 'seckill-test-ear';
const INVISIBLE_MS = 10_000;
/** After a receive that failed: the test may have stopped the broker. */
const PAUSE_MS = 200;

/** Hears every order event, as one more group would. */
export class EventEar {
  readonly #source: OpenDeliverySource;
  readonly #heard: OrderEvent[] = [];
  readonly #messageIds = new Set<string>();
  readonly #listening: Promise<void>;
  #closed = false;

  private constructor(source: OpenDeliverySource) {
    this.#source = source;
    this.#listening = this.#listen();
  }

  static async open(env: StackEnv): Promise<EventEar> {
    const { ROCKETMQ_ENDPOINT: endpoint } = env;
    const topic = { topic: TOPICS.orderEvent, group: EAR_GROUP, invisibleMs: INVISIBLE_MS, awaitMs: 1_000 };
    return new EventEar(await createDeliverySource({ ...topic, endpoint, log: silentLog }));
  }

  /** Events of one sale as they were published: one that was published twice stands twice, a redelivery does not. */
  eventsOf(saleId: string): OrderEvent[] {
    return this.#heard.filter((event) => event.saleId === saleId);
  }

  /** Ids of the orders that heard this word, sorted. */
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
          if (!this.#messageIds.has(delivery.messageId)) this.#heard.push(...decoded.events);
          this.#messageIds.add(delivery.messageId);
          await delivery.ack();
        }
      } catch {
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    }
  }
}
