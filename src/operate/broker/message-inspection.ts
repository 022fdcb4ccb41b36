import { DEAD_LETTERS, GROUP_TOPICS, GROUPS } from '../../core/topics.js';
import type { StoredMessage } from '../../rocketmq/admin/decode-messages.js';

// The contents of RocketMQ, as operators see them.

export interface BrokerReport {
  readonly name: string;
  /** `host:port` of its admin port. */
  readonly address: string;
  /** Null: the broker answers. Otherwise why it does not answer, and nothing else is known about it. */
  readonly down: string | null;
  readonly version: string;
  /** Messages stored and read per second, measured by the broker over the last ten seconds. */
  readonly putPerSecond: number;
  readonly getPerSecond: number;
  /** Used share of the disk with the commit log, 0 to 1. */
  readonly diskUsed: number;
}

/** A topic over all brokers. */
export interface TopicReport {
  readonly topic: string;
  /** `TRANSACTION`, `NORMAL` …; empty: the broker does not say. */
  readonly type: string;
  readonly queues: number;
  /** Number of messages kept. */
  readonly kept: number;
  /** When the newest message was stored, Unix ms. Null: no message is kept. */
  readonly lastStoredAtMs: number | null;
}

/** A group and its topic. */
export interface NamedGroup {
  readonly group: string;
  /** Null: not known; then only topics that the group has read are found. */
  readonly topic: string | null;
}

/** Our own groups: the consumers, and the collectors of their dead letters. */
export const OWN_GROUPS: readonly NamedGroup[] = [
  ...Object.values(GROUPS).map((group) => ({ group, topic: GROUP_TOPICS[group] })),
  ...Object.values(DEAD_LETTERS).map(({ collector, topic }) => ({ group: collector, topic })),
];

/** A consumer group and one topic that it reads, over all brokers. */
export interface GroupReport {
  readonly group: string;
  readonly topic: string;
  /** Messages not yet delivered to any consumer. Delivered messages without an ack are not counted. */
  readonly lag: number;
  /** Age of the oldest undelivered message, ms. Null: there is no such message. */
  readonly oldestMs: number | null;
  /** Number of clients that consume with this group now. */
  readonly clients: number;
}

/** A dead-letter topic over all brokers. */
interface DeadLetterReport {
  readonly topic: string;
  /** Number of messages kept, including messages already collected into MySQL, until the broker forgets them. */
  readonly kept: number;
}

/** A message as a broker keeps it. */
export interface FoundMessage extends Omit<StoredMessage, 'body'> {
  readonly broker: string;
  readonly body: string;
}

/** Where browsing begins: at one place of a queue, or in every queue with messages stored at this time or later. */
export type BrowseFrom = { readonly queueId: number; readonly offset: number } | { readonly sinceMs: number };

export interface BrowseLimits {
  readonly max: number;
  /**
   * Total size of the bodies, in characters: a single body may have 4 MiB. The first message is always returned,
   * whatever its size.
   */
  readonly bodiesMax: number;
}

/** Oldest first. */
export interface Browsed {
  readonly messages: readonly FoundMessage[];
  /** Whether there are more messages beyond the limits. */
  readonly more: boolean;
}

/** A half message without an answer recorded by the broker. */
export interface InspectedHalf {
  readonly broker: string;
  /** The topic of the message once committed. */
  readonly topic: string;
  /** The batch id, for our own messages. */
  readonly key: string;
  readonly messageId: string;
  /** Age since the sender made it, ms. */
  readonly ageMs: number;
  /** How often the broker asked a producer about it. */
  readonly checks: number;
  readonly saleId: string | null;
  readonly purchases: number | null;
}

/** A half message that the broker has given up. */
export interface DiscardedHalf extends InspectedHalf {
  /** Unix ms. */
  readonly discardedAtMs: number;
  /** Latest possible time of its return to the open half messages, Unix ms. Null: it did not return. */
  readonly resumedAtMs: number | null;
  /** Its place in the log of the broker, used to put it back. */
  readonly offsetId: string;
}

/** Oldest first. */
export interface OpenHalves {
  readonly open: readonly InspectedHalf[];
  /** Whether there are more open half messages than one inspection reads. */
  readonly more: boolean;
}

/** The cluster figures that the keeper publishes. */
export interface ClusterFigures {
  readonly brokers: readonly BrokerReport[];
  readonly groups: readonly GroupReport[];
  readonly halves: {
    readonly open: number;
    readonly oldestMs: number | null;
    readonly checksMost: number;
    readonly more: boolean;
  };
  /** Number of half messages that the broker gave up. */
  readonly discarded: number;
}

/** The status page of a cluster. */
export interface ClusterStatus extends ClusterFigures {
  readonly deadLetters: readonly DeadLetterReport[];
  /** Number of clients that answer check-backs, by topic. */
  readonly producers: Readonly<Record<string, number>>;
}
