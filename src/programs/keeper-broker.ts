import type { Config } from '../core/config/schema.js';
import { DEAD_LETTERS, GROUP_TOPICS, GROUPS, type Group } from '../core/topics.js';
import type { DeliverySource } from '../core/ports/delivery-source.js';
import type { Log } from '../core/ports/log.js';
import { createDeliverySource } from '../rocketmq/delivery-source.js';
import { createDeadlineChannel, createOrderEventChannel } from '../rocketmq/order-channels.js';
import { createRedriveChannel } from '../rocketmq/redrive-channel.js';
import { brokerConnection } from './broker-connection.js';

/** A message is ours for so long; who works on many renews those that wait. */
export const INVISIBLE_MS = 30_000;

/** The dead-letter topic of one group. */
export interface DeadLetterSource {
  readonly group: Group;
  readonly topic: string;
  readonly source: DeliverySource;
}

export type KeeperBroker = Awaited<ReturnType<typeof openKeeperBroker>>;

/**
 * Every client of the broker that the keeper has, each for one topic.
 * @throws OperationalError when one does not start
 */
export async function openKeeperBroker(config: Config<'rocketmq'>['rocketmq'], log: Log) {
  const shared = brokerConnection(config, log);
  const sourceOf = (topic: string, group: string) =>
    createDeliverySource({ ...shared, topic, group, invisibleMs: INVISIBLE_MS, awaitMs: config.receiveWaitMs });
  const groups = Object.values(GROUPS);
  const [redrives, deadlines, events, expirer, coupon, notifier, ...dead] = await Promise.all([
    createRedriveChannel(shared),
    createDeadlineChannel(shared),
    createOrderEventChannel(shared),
    sourceOf(GROUP_TOPICS[GROUPS.expirer], GROUPS.expirer),
    sourceOf(GROUP_TOPICS[GROUPS.coupon], GROUPS.coupon),
    sourceOf(GROUP_TOPICS[GROUPS.notifier], GROUPS.notifier),
    ...groups.map((group) => sourceOf(DEAD_LETTERS[group].topic, DEAD_LETTERS[group].collector)),
  ]);
  const sources = [expirer, coupon, notifier, ...dead];
  const deadLetters = groups.map((group, index): DeadLetterSource => {
    return { group, topic: GROUP_TOPICS[group], source: dead[index] as DeliverySource };
  });
  return {
    ...{ redrives, deadlines, events, expirer, coupon, notifier, deadLetters },
    /** Nothing new is received; what is open may be ended. Never rejects. */
    async closeSources(): Promise<void> {
      await Promise.all(sources.map((source) => source.close()));
    },
    /** Never rejects. */
    async closeChannels(): Promise<void> {
      await Promise.all([redrives, deadlines, events].map((channel) => channel.close()));
    },
  };
}
