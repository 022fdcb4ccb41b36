import type { Delivery, DeliverySource } from '../../../src/core/ports/channels.js';
import { TOPICS } from '../../../src/core/topics.js';
import type { SimulatedProcess } from '../engine/simulated-process.js';
import type { SimulatedSystem } from '../simulated-system.js';

export interface SourceOptions {
  readonly topic: string;
  readonly group: string;
  readonly invisibleMs: number;
}

/** Topics whose messages may get lost, because a re-drive publishes their batches again. */
const WRITER_TOPICS: readonly string[] = [TOPICS.purchase, TOPICS.redrive];
const REPEAT_MAX_MS = 30_000;

/** Receives the messages of a topic late, twice, in any order, or not at all. */
export function sourceOf(
  proc: SimulatedProcess,
  system: SimulatedSystem,
  { topic, group, invisibleMs }: SourceOptions,
): DeliverySource {
  const source = system.broker.source(topic, group, invisibleMs, 0);
  const take = async (max: number): Promise<Delivery[]> => {
    await system.arrival(topic, group);
    if (!proc.alive) return []; // the process died during its wait
    const deliveries = await source.receive(max);
    for (const { body, properties } of deliveries) {
      if (system.faults.happens('message_repeated')) repeat(system, topic, body, properties);
    }
    if (deliveries.length > 1 && system.faults.happens('messages_reordered')) system.rng.shuffle(deliveries);
    const delivered: Delivery[] = [];
    for (const delivery of deliveries) {
      const ofWriters = WRITER_TOPICS.includes(topic);
      if (ofWriters && system.faults.happens('message_lost')) await delivery.ack();
      else if (!ofWriters || !system.faults.happens('delivery_lost')) delivered.push(delivery);
    }
    return delivered;
  };
  return {
    receive: async (max) => {
      const deliveries = await proc.call('rocketmq', 'receive', () => take(max), [group]);
      return deliveries.map((delivery) => reached(proc, system, delivery));
    },
  };
}

function reached(proc: SimulatedProcess, system: SimulatedSystem, delivery: Delivery): Delivery {
  const { messageId } = delivery;
  const ack = async (): Promise<boolean> => {
    const taken = await delivery.ack();
    system.count(taken ? 'ack: taken' : 'ack: too late');
    return taken;
  };
  return {
    ...delivery,
    ack: () => proc.call('rocketmq', 'ack', ack, [messageId], () => false),
    hold: (ms) =>
      proc.call(
        'rocketmq',
        'hold',
        () => delivery.hold(ms),
        [messageId, ms],
        () => false,
      ),
    retryAfter: (ms) =>
      proc.call(
        'rocketmq',
        'retryAfter',
        () => delivery.retryAfter(ms),
        [messageId],
        () => undefined,
      ),
  };
}

function repeat(system: SimulatedSystem, topic: string, body: string, properties: ReadonlyMap<string, string>): void {
  const atMs = system.scheduler.nowMs + system.rng.range(0, REPEAT_MAX_MS);
  system.broker.publishRaw(topic, body, Object.fromEntries(properties), atMs);
}
