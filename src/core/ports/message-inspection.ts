import { DEAD_LETTERS, GROUP_TOPICS, GROUPS } from '../topics.js';

// What RocketMQ holds, as an operator looks at it.

/** One broker of the cluster. */
export interface BrokerReport {
  readonly name: string;
  /** `host:port` of its admin port. */
  readonly address: string;
  /** Null: it answers. Else why it does not, and nothing else is known of it. */
  readonly down: string | null;
  readonly version: string;
  /** Messages stored and read per second, as the broker counts them over the last ten seconds. */
  readonly putPerSecond: number;
  readonly getPerSecond: number;
  /** Share of the disk of its commit log that is full, 0 to 1. */
  readonly diskUsed: number;
}

/** A topic over all brokers. */
export interface TopicReport {
  readonly topic: string;
  /** `TRANSACTION`, `NORMAL` …; empty: the broker does not say. */
  readonly type: string;
  readonly queues: number;
  /** Messages that are kept. */
  readonly kept: number;
  /** When the newest one was stored, Unix ms; null: none is kept. */
  readonly lastStoredAtMs: number | null;
}

/** A group, and the topic that it works on. */
export interface NamedGroup {
  readonly group: string;
  /** Null: not known; then only topics that it has read are found. */
  readonly topic: string | null;
}

/** Groups of ours: those that work, and those that collect their dead letters. */
export const OWN_GROUPS: readonly NamedGroup[] = [
  ...Object.values(GROUPS).map((group) => ({ group, topic: GROUP_TOPICS[group] })),
  ...Object.values(DEAD_LETTERS).map(({ collector, topic }) => ({ group: collector, topic })),
];

/** A consumer group and one topic that it reads, over all brokers. */
export interface GroupReport {
  readonly group: string;
  readonly topic: string;
  /** Messages that nobody was given yet. Those that were given and not acked are not in it. */
  readonly lag: number;
  /** Age of the oldest of them, ms; null: there is none. */
  readonly oldestMs: number | null;
  /** Clients that consume by this group now. */
  readonly clients: number;
}

/** A dead-letter topic over all brokers. */
interface DeadLetterReport {
  readonly topic: string;
  /** Messages that are kept there: collected into MySQL ones too, until the broker forgets them. */
  readonly kept: number;
}

/** A message as a broker keeps it. */
export interface FoundMessage {
  readonly broker: string;
  readonly topic: string;
  readonly queueId: number;
  readonly queueOffset: number;
  /** Where it begins in the commit log, bytes. */
  readonly physicalOffset: number;
  /** Names this place: address of the broker and `physicalOffset`, in hex. The id that tools of RocketMQ take. */
  readonly offsetId: string;
  /** Unix ms on the clock of the sender, and on that of the broker. */
  readonly bornAtMs: number;
  readonly storedAtMs: number;
  /** How often a consumer was given it before. */
  readonly deliveries: number;
  readonly body: string;
  /** Those of the broker (`KEYS`, `UNIQ_KEY`, `TAGS` …) and those of the sender. */
  readonly properties: Readonly<Record<string, string>>;
}

/** Where a look at a topic begins: at one place of a queue, or in every queue with what was stored at this time or later. */
export type BrowseFrom = { readonly queueId: number; readonly offset: number } | { readonly sinceMs: number };

/** How much of a topic one look gives. */
export interface BrowseLimits {
  readonly max: number;
  /** Bodies together, in characters: one may have 4 MiB. One message is given, whatever its body has. */
  readonly bodiesMax: number;
}

/** Oldest first. */
export interface Browsed {
  readonly messages: readonly FoundMessage[];
  /** Whether there are others that the look would give without its limits. */
  readonly more: boolean;
}

/** A half message that has no answer that the broker has written down. */
export interface InspectedHalf {
  readonly broker: string;
  /** The topic that it is meant for. */
  readonly topic: string;
  /** Of one of ours: the id of its batch. */
  readonly key: string;
  readonly messageId: string;
  /** Since its sender made it, ms. */
  readonly ageMs: number;
  /** How often a producer was asked about it. */
  readonly checks: number;
  readonly saleId: string | null;
  readonly purchases: number | null;
}

/** A half message that the broker has given up. */
export interface DiscardedHalf extends InspectedHalf {
  /** Unix ms. */
  readonly discardedAtMs: number;
  /** When it was put back among the open ones, at the latest, Unix ms; null: it was not. */
  readonly resumedAtMs: number | null;
  /** Its place in the log of the broker, by which it is put back. */
  readonly offsetId: string;
}

/** Oldest first. */
export interface OpenHalves {
  readonly open: readonly InspectedHalf[];
  /** Whether there are more than one inspection looks at. */
  readonly more: boolean;
}

/** A client that is connected. */
export interface BrokerClient {
  readonly clientId: string;
  readonly address: string;
  readonly language: string;
}

export interface ProducerClient extends BrokerClient {
  /** By our client that is the topic. */
  readonly group: string;
}

/** What the keeper publishes of a cluster. */
export interface ClusterFigures {
  readonly brokers: readonly BrokerReport[];
  readonly groups: readonly GroupReport[];
  readonly halves: {
    readonly open: number;
    readonly oldestMs: number | null;
    readonly checksMost: number;
    readonly more: boolean;
  };
  /** Half messages that were given up. */
  readonly discarded: number;
}

/** One screen of a cluster. */
export interface ClusterStatus extends ClusterFigures {
  readonly deadLetters: readonly DeadLetterReport[];
  /** Clients that can be asked about half messages, by topic. */
  readonly producers: Readonly<Record<string, number>>;
}

/**
 * Looks at a cluster of RocketMQ, and changes nothing but by `resume`. Several brokers are one cluster to whoever looks; what
 * one that does not answer holds is missing. Every method throws OperationalError rocketmq when no name server answers, or a
 * broker that was up refuses or goes on not to answer.
 */
export interface MessageInspection {
  status(groups: readonly NamedGroup[]): Promise<ClusterStatus>;

  /** The largest lag first. @param groups null: all that the brokers know */
  groups(groups: readonly NamedGroup[] | null): Promise<GroupReport[]>;

  topics(): Promise<TopicReport[]>;

  /** Half messages without an answer, oldest first. */
  halves(): Promise<OpenHalves>;

  /** Half messages that were given up, newest first: the newest `max`, or those of a key. */
  discarded(which: { readonly max: number } | { readonly key: string }): Promise<DiscardedHalf[]>;

  /** Has the broker ask for the outcome of a half message again. */
  resume(half: DiscardedHalf): Promise<void>;

  /** Clients that can be asked about half messages among them. */
  producers(): Promise<ProducerClient[]>;

  /** Who consumes by a group now. */
  consumers(group: string): Promise<BrokerClient[]>;

  /** The messages of a topic that carry a key, oldest first; 32 of a broker at most. */
  messagesOfKey(topic: string, key: string): Promise<FoundMessage[]>;

  /**
   * Oldest first: a message that was delivered again, or a half message that was asked about, has copies of one id.
   * @param id what its sender named it (`UNIQ_KEY`), or the id of a place in the log of a broker (`offsetId`)
   */
  messagesOfId(topic: string, id: string): Promise<FoundMessage[]>;

  /**
   * The newest messages of a topic, or the first ones from somewhere on; oldest first.
   * @param from null: the newest of every queue
   */
  browse(topic: string, from: BrowseFrom | null, limits: BrowseLimits): Promise<Browsed>;
}
