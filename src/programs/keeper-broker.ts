import type { Section } from '../core/config/schema.js';
import { DEAD_LETTERS, GROUP_TOPICS, GROUPS, type Group } from '../core/topics.js';
import type { Log } from '../core/ports/log.js';
import { createDeliverySource, type OpenDeliverySource } from '../rocketmq/delivery-source.js';
import { createDeadlineChannel, createOrderEventChannel, createRedriveChannel } from '../rocketmq/plain-channels.js';
import { brokerConnection } from './servers.js';

/** A message is hidden from other consumers for so long; a consumer that works on many renews those that wait. */
export const INVISIBLE_MS = 30_000;

/** The dead-letter topic of one group. */
export interface DeadLetterSource {
  readonly group: Group;
  readonly topic: string;
  readonly source: OpenDeliverySource;
}

export type KeeperBroker = Awaited<ReturnType<typeof openKeeperBroker>>;

/**
 * Every client of the broker that the keeper has, each for one topic.
 * @throws OperationalError when one does not start
 */
export async function openKeeperBroker(rocketmq: Section<'rocketmq'>, log: Log) {
  const connection = brokerConnection(rocketmq, log);
  const sourceOf = (topic: string, group: string) =>
    createDeliverySource({ ...connection, topic, group, invisibleMs: INVISIBLE_MS, awaitMs: rocketmq.receiveWaitMs });
  const deadLettersOf = async (group: Group): Promise<DeadLetterSource> => {
    const { topic, collector } = DEAD_LETTERS[group];
    return { group, topic: GROUP_TOPICS[group], source: await sourceOf(topic, collector) };
  };
  const [redrives, deadlines, events, expirer, coupon, notifier, deadLetters] = await Promise.all([
    createRedriveChannel(connection),
    createDeadlineChannel(connection),
    createOrderEventChannel(connection),
    sourceOf(GROUP_TOPICS[GROUPS.expirer], GROUPS.expirer),
    sourceOf(GROUP_TOPICS[GROUPS.coupon], GROUPS.coupon),
    sourceOf(GROUP_TOPICS[GROUPS.notifier], GROUPS.notifier),
    Promise.all(Object.values(GROUPS).map(deadLettersOf)),
  ]);
  return {
    redrives,
    deadlines,
    events,
    expirer,
    coupon,
    notifier,
    deadLetters,
    /** Nothing new is received; what is open may be ended. Never rejects. */
    async closeSources(): Promise<void> {
      const sources = [expirer, coupon, notifier, ...deadLetters.map(({ source }) => source)];
      await Promise.all(sources.map((source) => source.close()));
    },
    /** Never rejects. */
    async closeChannels(): Promise<void> {
      await Promise.all([redrives, deadlines, events].map((channel) => channel.close()));
    },
  };
}
