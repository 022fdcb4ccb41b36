import type { Config } from '../core/config/schema.js';
import type { MessageSignatures, SignedMessages } from '../core/message-signatures.js';
import type { LoopedSource } from '../core/ports/channels.js';
import { DEAD_LETTERS, GROUP_TOPICS, GROUPS, type Group, type Topic } from '../core/topics.js';
import type { Log } from '../core/ports/log.js';
import { createDeliverySource, type OpenDeliverySource } from '../rocketmq/delivery-source.js';
import { createDeadlineChannel, createOrderEventChannel, createRedriveChannel } from '../rocketmq/plain-channels.js';
import { brokerConnection } from '../process/servers.js';

/** The broker hides a received message for this long. A consumer renews messages that wait for their turn. */
export const INVISIBLE_MS = 30_000;

/** The dead-letter topic of one group, and the topic to which its messages were published. */
export interface DeadLetterSource extends Origin {
  readonly source: LoopedSource;
}

interface Origin {
  readonly group: Group;
  readonly topic: Topic;
}

export type KeeperBroker = Awaited<ReturnType<typeof openKeeperBroker>>;

/** No source hands out a forged message. @throws OperationalError if a client does not start */
export async function openKeeperBroker(
  config: Config<'rocketmq' | 'brokerAccess'>,
  { signatures, messages }: { readonly signatures: MessageSignatures; readonly messages: SignedMessages },
  log: Log,
) {
  const connection = brokerConnection(config, log);
  const producer = { ...connection, signatures };
  const opened: OpenDeliverySource[] = [];
  /** @param origin the topic and group from which its messages originally come */
  const open = async (topic: string, group: string, origin: Origin): Promise<LoopedSource> => {
    const awaitMs = config.rocketmq.receiveWaitMs;
    const source = await createDeliverySource({ ...connection, topic, group, invisibleMs: INVISIBLE_MS, awaitMs });
    opened.push(source);
    const signed = messages.of(source, origin);
    return { loops: source.brokers, receive: (max) => signed.receive(max) };
  };
  const sourceOf = (group: Group): Promise<LoopedSource> => {
    const topic = GROUP_TOPICS[group];
    return open(topic, group, { group, topic });
  };
  const deadLettersOf = async (group: Group): Promise<DeadLetterSource> => {
    const { topic, collector } = DEAD_LETTERS[group];
    const origin = { group, topic: GROUP_TOPICS[group] };
    return { ...origin, source: await open(topic, collector, origin) };
  };
  const [redrives, deadlines, events, expirer, coupon, notifier, deadLetters] = await Promise.all([
    createRedriveChannel(producer),
    createDeadlineChannel(producer),
    createOrderEventChannel(producer),
    sourceOf(GROUPS.expirer),
    sourceOf(GROUPS.coupon),
    sourceOf(GROUPS.notifier),
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
    /** Stops receiving. Work in progress may still finish its messages. Never rejects. */
    async closeSources(): Promise<void> {
      await Promise.all(opened.map((source) => source.close()));
    },
    /** Never rejects. */
    async closeChannels(): Promise<void> {
      await Promise.all([redrives, deadlines, events].map((channel) => channel.close()));
    },
  };
}
