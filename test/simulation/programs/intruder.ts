import { sealBatch } from '../../../src/core/batch.js';
import { readKeyring } from '../../../src/core/hmac.js';
import { MessageSignatures, SIGNATURE_PROPERTY } from '../../../src/core/message-signatures.js';
import { encodeOrderEvents } from '../../../src/core/order-event.js';
import { encodePaymentDeadline } from '../../../src/core/payment-deadline.js';
import { DEAD_LETTERS, GROUP_TOPICS, GROUPS, type Topic, TOPICS } from '../../../src/core/topics.js';
import { TEST_SIGNATURES } from '../../helpers/signatures.js';
import type { Rng } from '../engine/rng.js';
import { SALE_ID } from '../shape.js';
import type { SimulatedSystem } from '../simulated-system.js';

/** The buyer in forged messages. */
const BUYER = 'mallory';
const FOREIGN = new MessageSignatures(readKeyring('test:a-key-of-somebody-else-of-forty-bytes'));
const MESSAGES_MAX = 6;

/** The real topics of messages, and the topics in their signatures. */
const WAYS: readonly { readonly to: string; readonly topic: Topic }[] = [
  ...Object.values(TOPICS).map((topic) => ({ to: topic, topic })),
  ...([GROUPS.writer, GROUPS.redriveWriter] as const).map((group) => ({
    to: DEAD_LETTERS[group].topic,
    topic: GROUP_TOPICS[group],
  })),
];

/** An intruder who publishes messages that are unsigned, tampered with, or signed for another topic. */
export class Intruder {
  readonly #system: SimulatedSystem;
  readonly #rng: Rng;

  /** @param rng separate, so that runs without an intruder stay the same */
  constructor(system: SimulatedSystem, rng: Rng) {
    this.#system = system;
    this.#rng = rng;
    for (let left = rng.range(1, MESSAGES_MAX); left > 0; left--) {
      system.scheduler.after(rng.range(1, system.shape.chaosMs), () => this.#send(left));
    }
  }

  /** Checks at rest that a purchase that no api has accepted has no row. */
  check(): void {
    const { repositories } = this.#system;
    const row = repositories.allOrders.find(({ userId }) => userId === BUYER);
    if (row !== undefined) this.#system.fail('FORGED', `order ${row.orderId} was made by a forged message`);
  }

  #send(nth: number): void {
    const rng = this.#rng;
    const { to, topic } = rng.pick(WAYS) as (typeof WAYS)[number];
    const body = this.#bodyFor(topic, nth);
    const other = topic === TOPICS.redrive ? TOPICS.purchase : TOPICS.redrive;
    const signature = rng.pick([
      null,
      FOREIGN.sign(topic, body),
      TEST_SIGNATURES.sign(topic, `${body} `),
      TEST_SIGNATURES.sign(other, body),
    ]);
    this.#system.count('intruder: sent');
    this.#system.broker.publishRaw(to, body, signature === null ? {} : { [SIGNATURE_PROPERTY]: signature });
  }

  #bodyFor(topic: Topic, nth: number): string {
    const { repositories, broker, shape, scheduler } = this.#system;
    const rng = this.#rng;
    const batchId = `forged-${nth}`;
    const orders = repositories.allOrders.map(({ orderId }) => orderId);
    const order = rng.pick(orders) ?? '1';
    switch (topic) {
      case TOPICS.paymentDeadline:
        return encodePaymentDeadline({ batchId, saleId: SALE_ID, deadlineAtMs: scheduler.nowMs, orders: [order] });
      case TOPICS.orderEvent:
        return encodeOrderEvents([{ eventId: batchId, type: 'order.paid', saleId: SALE_ID, orders: [order], atMs: 1 }]);
      case TOPICS.purchase:
      case TOPICS.redrive: {
        const purchase = { userId: BUYER, requestId: `k${nth}`, quantity: 1 };
        const known = rng.chance(0.5) ? rng.pick(broker.published(TOPICS.purchase)) : undefined;
        if (known !== undefined) {
          const batch = JSON.parse(known) as { purchases: unknown[] };
          return JSON.stringify({ ...batch, purchases: [...batch.purchases, [BUYER, `k${nth}`, 1]] });
        }
        const bucket = rng.range(0, shape.sale.buckets - 1);
        const parts = { saleId: SALE_ID, bucket, epoch: 1, createdAtMs: scheduler.nowMs, traceparent: '' };
        return sealBatch({ ...parts, batchId, purchases: [purchase] }).body;
      }
    }
  }
}
