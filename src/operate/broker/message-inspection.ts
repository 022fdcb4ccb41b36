import { DEAD_LETTERS, GROUP_TOPICS, GROUPS } from '../../core/topics.js';
import type { StoredMessage } from '../../rocketmq/admin/decode-messages.js';

export interface BrokerReport {
  readonly name: string;
  /** `host:port` of its admin port. */
  readonly address: string;
  /** Why the broker does not answer; nothing else is known about it then. Null if it answers. */
  readonly down: string | null;
  readonly version: string;
  /** Messages stored and messages read per second, as the broker measured them over the last ten seconds. */
  readonly putPerSecond: number;
  readonly getPerSecond: number;
  /** Fraction of the disk with the commit log that is in use, 0 to 1. */
  readonly diskUsed: number;
}

/** A topic, over all brokers. */
export interface TopicReport {
  readonly topic: string;
  /** `TRANSACTION`, `NORMAL` …; empty if the broker does not say. */
  readonly type: string;
  readonly queues: number;
  /** Number of messages that are kept. */
  readonly kept: number;
  /** When the newest message was stored, Unix ms. Null if no message is kept. */
  readonly lastStoredAtMs: number | null;
}

export interface NamedGroup {
  readonly group: string;
  /** Null if unknown. In that case, only topics that the group has read are found. */
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
  /** Number of messages not yet delivered to any consumer. Delivered messages without an ack are not counted. */
  readonly lag: number;
  /** Age of the oldest undelivered message, ms. Null if there is none. */
  readonly oldestMs: number | null;
  readonly clients: number;
}

/** A dead-letter topic, over all brokers. */
interface DeadLetterReport {
  readonly topic: string;
  /** Number of messages, including collected ones, until the broker forgets them. */
  readonly kept: number;
}

export interface FoundMessage extends Omit<StoredMessage, 'body'> {
  readonly broker: string;
  readonly body: string;
}

/** A position in a queue, or in every queue the messages stored at or after this time. */
export type BrowseFrom = { readonly queueId: number; readonly offset: number } | { readonly sinceMs: number };

export function browseFrom({
  since,
  queue,
  offset,
}: {
  readonly since?: number | undefined;
  readonly queue?: number | undefined;
  readonly offset?: number | undefined;
}): BrowseFrom | null {
  if (since !== undefined) return { sinceMs: since };
  return queue === undefined || offset === undefined ? null : { queueId: queue, offset };
}

export interface BrowseLimits {
  readonly max: number;
  /** Total length of the bodies, in characters. Always returns the first message, however long it is. */
  readonly bodiesMax: number;
}

/** Oldest first. */
export interface Browsed {
  readonly messages: readonly FoundMessage[];
  /** Whether there are more messages beyond the limits. */
  readonly more: boolean;
}

/** A half message for which the broker has recorded no answer. */
export interface InspectedHalf {
  readonly broker: string;
  /** The topic that the message will have once it is committed. */
  readonly topic: string;
  /** The batch id, if the message is ours. */
  readonly key: string;
  readonly messageId: string;
  /** Time since the sender created it, ms. */
  readonly ageMs: number;
  /** How often the broker has asked a producer about it. */
  readonly checks: number;
  readonly saleId: string | null;
  readonly purchases: number | null;
}

/** A half message that the broker has given up. */
export interface DiscardedHalf extends InspectedHalf {
  /** Unix ms. */
  readonly discardedAtMs: number;
  /** Upper bound for the time at which it returned to the open half messages, Unix ms. Null if it did not return. */
  readonly resumedAtMs: number | null;
  /** Its position in the log of the broker, which is needed to put it back. */
  readonly offsetId: string;
}

/** Oldest first. */
export interface OpenHalves {
  readonly open: readonly InspectedHalf[];
  /** Whether there are more open half messages than one inspection reads. */
  readonly more: boolean;
}

/** Figures about the cluster, which the keeper publishes. */
export interface ClusterFigures {
  readonly brokers: readonly BrokerReport[];
  readonly groups: readonly GroupReport[];
  readonly halves: {
    readonly open: number;
    readonly oldestMs: number | null;
    readonly checksMost: number;
    readonly more: boolean;
  };
  /** Number of half messages that the broker has given up. */
  readonly discarded: number;
}

export interface ClusterStatus extends ClusterFigures {
  readonly deadLetters: readonly DeadLetterReport[];
  /** Number of clients that answer check-backs, by topic. */
  readonly producers: Readonly<Record<string, number>>;
}
