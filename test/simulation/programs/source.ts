import type { Delivery, DeliverySource } from '../../../src/core/ports/channels.js';
import { TOPICS } from '../../../src/core/topics.js';
import type { Life } from '../engine/simulated-process.js';
import type { Site } from '../simulated-system.js';

export interface SourceOptions {
  readonly topic: string;
  readonly group: string;
  readonly invisibleMs: number;
}

/** Topics whose messages may get lost in the broker: what they carry is published again from the ledger. */
const WRITER_TOPICS: readonly string[] = [TOPICS.purchase, TOPICS.redrive];
const REPEAT_MAX_MS = 30_000;

/** The consumer side of a topic as one process reaches it: messages come late, twice, in any order, or not at all. */
export function sourceOf(life: Life, site: Site, { topic, group, invisibleMs }: SourceOptions): DeliverySource {
  const source = site.broker.source(topic, group, invisibleMs, 0);
  const take = async (max: number): Promise<Delivery[]> => {
    await site.arrival(topic, group);
    if (!life.alive) return []; // nobody asks any more
    const deliveries = await source.receive(max);
    for (const { body, properties } of deliveries) {
      if (site.faults.befalls('message_repeated')) repeat(site, topic, body, properties);
    }
    if (deliveries.length > 1 && site.faults.befalls('messages_reordered')) site.rng.shuffle(deliveries);
    const kept: Delivery[] = [];
    for (const delivery of deliveries) {
      const ofWriters = WRITER_TOPICS.includes(topic);
      if (ofWriters && site.faults.befalls('message_lost')) await delivery.ack();
      else if (!ofWriters || !site.faults.befalls('delivery_unheard')) kept.push(delivery);
    }
    return kept;
  };
  return {
    receive: async (max) => {
      const deliveries = await life.call('rocketmq', 'receive', () => take(max), [group]);
      return deliveries.map((delivery) => reached(life, site, delivery));
    },
  };
}

function reached(life: Life, site: Site, delivery: Delivery): Delivery {
  const { messageId } = delivery;
  const ack = async (): Promise<boolean> => {
    const taken = await delivery.ack();
    site.count(taken ? 'ack: taken' : 'ack: loan ran out');
    return taken;
  };
  return {
    ...delivery,
    ack: () => life.call('rocketmq', 'ack', ack, [messageId], () => false),
    hold: (ms) =>
      life.call(
        'rocketmq',
        'hold',
        () => delivery.hold(ms),
        [messageId, ms],
        () => false,
      ),
    retryAfter: (ms) =>
      life.call(
        'rocketmq',
        'retryAfter',
        () => delivery.retryAfter(ms),
        [messageId],
        () => undefined,
      ),
  };
}

function repeat(site: Site, topic: string, body: string, properties: ReadonlyMap<string, string>): void {
  const atMs = site.scheduler.nowMs + site.rng.range(0, REPEAT_MAX_MS);
  site.broker.publishRaw(topic, body, Object.fromEntries(properties), atMs);
}
