import { OperationalError } from '../../core/errors.js';
import { HALF_TOPICS } from '../../core/topics.js';
import {
  addressOf,
  brokersKnownTo,
  NoBrokerKnown,
  readGroups,
  readRuntime,
  readTopics,
  SeenBrokers,
  type BrokerAddress,
} from '../../rocketmq/admin/broker-state.js';
import type { StoredMessage } from '../../rocketmq/admin/decode-messages.js';
import {
  readConsumers,
  readGroupQueues,
  readMessages,
  readMessagesOfId,
  readMessagesOfKey,
  readOffsetAt,
  readProducers,
  readQueues,
  walkQueue,
  type BrokerClient,
  type GroupQueue,
  type ProducerClient,
  type QueueEnds,
} from '../../rocketmq/admin/inspect-broker.js';
import { RemotingError } from '../../rocketmq/admin/remoting.js';
import type { MessageFigures } from '../../recovery/metrics.js';
import type { BrokerAccess } from '../../rocketmq/credentials.js';
import { discardedHalves, openHalves, resumeHalf } from './half-messages.js';
import type {
  Browsed,
  BrokerReport,
  BrowseFrom,
  BrowseLimits,
  ClusterFigures,
  ClusterStatus,
  DiscardedHalf,
  FoundMessage,
  GroupReport,
  NamedGroup,
  OpenHalves,
  TopicReport,
} from './message-inspection.js';

const isOfRetries = (topic: string): boolean => topic.startsWith('%RETRY%');
const isOfDeadLetters = (topic: string): boolean => topic.startsWith('%DLQ%');

/** Number of attempts of an inspection while brokers come and go. */
const TRIES_MAX = 3;

interface Brokers {
  readonly up: readonly BrokerAddress[];
  /** A line for each broker, including brokers that are down. */
  readonly reports: readonly BrokerReport[];
}

export type MessageInspection = Omit<RocketmqInspection, 'figures'>;

/**
 * Inspects a cluster over the brokers' admin protocol. Only `resume` changes anything. Names silent brokers, and
 * brokers that earlier inspections saw but no name server knows any more. Every method throws OperationalError rocketmq
 * if no name server answers, or if a broker that was up refuses or stays silent.
 */
export class RocketmqInspection {
  readonly #namesrvAddr: string;
  readonly #access: BrokerAccess | null;
  readonly #cluster: string | null;
  readonly #onDown: (broker: BrokerReport) => void;
  readonly #seen: SeenBrokers;
  /** The brokers that a name server last named. */
  #last: readonly BrokerAddress[] = [];

  /**
   * @param namesrvAddr one or more `host:port`, separated by `;`
   * @param access null: no login, no encryption
   * @param onDown called once per inspection for each silent broker, whose data is missing
   * @param seen brokers that other inspections have seen
   */
  constructor(
    namesrvAddr: string,
    access: BrokerAccess | null,
    {
      cluster = null,
      onDown = () => undefined,
      seen = new SeenBrokers(),
    }: {
      readonly cluster?: string | null;
      readonly onDown?: (broker: BrokerReport) => void;
      readonly seen?: SeenBrokers;
    } = {},
  ) {
    this.#namesrvAddr = namesrvAddr;
    this.#access = access;
    this.#cluster = cluster;
    this.#onDown = onDown;
    this.#seen = seen;
  }

  async status(groups: readonly NamedGroup[]): Promise<ClusterStatus> {
    return this.#look((brokers) => statusOf(brokers, groups));
  }

  /** A cheaper `status` for the keeper. Without a name server, asks the brokers that it last named. */
  async figures(groups: readonly NamedGroup[]): Promise<MessageFigures> {
    try {
      return await this.#look(async (brokers) => {
        const held = brokers.up.length === 0 ? null : await figuresOf(brokers, groups);
        return { brokers: brokers.reports, held };
      });
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      const isSilent = !(error instanceof NoBrokerKnown);
      const asked = isSilent ? this.#last : [];
      const gone = this.#seen.gone([]).filter(({ name }) => !asked.some((broker) => broker.name === name));
      const brokers = [...(await Promise.all(asked.map(reportOf))), ...gone.map(({ why }) => ({ down: why }))];
      if (isSilent && brokers.every(({ down }) => down === null)) throw error;
      return { brokers: brokers.length > 0 ? brokers : [{ down: error.message }], held: null };
    }
  }

  /** Lists the largest lag first. @param groups null for all groups that the brokers know */
  async groups(groups: readonly NamedGroup[] | null): Promise<GroupReport[]> {
    return this.#look(async ({ up }) =>
      groupsOf(up, groups ?? (await groupNames(up)).map((group) => ({ group, topic: null }))),
    );
  }

  async topics(): Promise<TopicReport[]> {
    return this.#look(({ up }) => topicsOf(up));
  }

  /** Lists half messages that have not been answered, oldest first. */
  async halves(): Promise<OpenHalves> {
    return this.#look(({ up }) => openHalves(up));
  }

  /** Returns half messages that the broker has given up, newest first: the newest `max`, or all with a key. */
  async discarded(which: { readonly max: number } | { readonly key: string }): Promise<DiscardedHalf[]> {
    return this.#look(({ up }) => discardedHalves(up, which));
  }

  /** Makes the broker ask for the outcome of a half message again. */
  async resume(half: DiscardedHalf): Promise<void> {
    const { up } = await this.#brokers();
    const broker = up.find(({ name }) => name === half.broker);
    if (broker === undefined) {
      throw new OperationalError('rocketmq', `broker ${half.broker} does not answer`, { retryable: true });
    }
    await resumeHalf(broker, half).catch((error: unknown) => {
      throw asOperationalError(error);
    });
  }

  /** Lists the connected producers, including the clients that answer check-backs for half messages. */
  async producers(): Promise<ProducerClient[]> {
    return this.#look(({ up }) => clientsOf(up, readProducers));
  }

  async consumers(group: string): Promise<BrokerClient[]> {
    return this.#look(({ up }) => clientsOf(up, (broker) => readConsumers(broker, group)));
  }

  /** Finds the messages of a topic that have this key, oldest first; at most 32 per broker. */
  async messagesOfKey(topic: string, key: string): Promise<FoundMessage[]> {
    return this.#messages((broker) => readMessagesOfKey(broker, topic, key));
  }

  /**
   * Finds the messages with an id, with copies that were redelivered or checked back.
   * @param id `UNIQ_KEY` or `offsetId`
   */
  async messagesOfId(topic: string, id: string): Promise<FoundMessage[]> {
    return this.#messages((broker) => readMessagesOfId(broker, topic, id));
  }

  /** Reads the oldest first. @param from null for the newest messages of every queue */
  async browse(topic: string, from: BrowseFrom | null, limits: BrowseLimits): Promise<Browsed> {
    return this.#look(({ up }) => browse(up, topic, from, limits));
  }

  async #messages(read: (broker: BrokerAddress) => Promise<StoredMessage[]>): Promise<FoundMessage[]> {
    return this.#look(async ({ up }) => {
      const found = await Promise.all(up.map(async (broker) => (await read(broker)).map((one) => shown(broker, one))));
      return found.flat().sort((one, other) => one.storedAtMs - other.storedAtMs);
    });
  }

  /** Runs `work` with the brokers that answer. If a broker dies, the next attempt leaves it out. */
  async #look<T>(work: (brokers: Brokers) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      const brokers = await this.#brokers();
      try {
        const result = await work(brokers);
        for (const report of brokers.reports) if (report.down !== null) this.#onDown(report);
        return result;
      } catch (error) {
        const mayPass = error instanceof RemotingError && !error.isRefusal;
        if (tries === TRIES_MAX || !mayPass) throw asOperationalError(error);
      }
    }
  }

  /** @throws OperationalError if no name server knows a broker of the cluster */
  async #brokers(): Promise<Brokers> {
    const brokers = await brokersKnownTo(this.#namesrvAddr, this.#access, this.#cluster);
    this.#last = brokers;
    const answers = await Promise.all(brokers.map(reportOf));
    const gone = this.#seen.gone(brokers).map(({ name, address, why }) => downReport(name, address, why));
    const reports = [...answers, ...gone].sort((one, other) => (one.name < other.name ? -1 : 1));
    return { up: brokers.filter((_, index) => answers[index]?.down === null), reports };
  }
}

/** Turns a missing answer or a refusal of a broker into a fault of RocketMQ. Leaves other errors as they are. */
const asOperationalError = (error: unknown): unknown =>
  error instanceof RemotingError
    ? new OperationalError('rocketmq', error.message, { retryable: true, cause: error })
    : error;

async function reportOf(broker: BrokerAddress): Promise<BrokerReport> {
  try {
    const runtime = await readRuntime(broker);
    return {
      name: broker.name,
      address: addressOf(broker),
      down: null,
      version: runtime.brokerVersionDesc ?? '',
      putPerSecond: firstNumber(runtime.putTps),
      getPerSecond: firstNumber(runtime.getTransferredTps),
      diskUsed: firstNumber(runtime.commitLogDiskRatio),
    };
  } catch (error) {
    return downReport(broker.name, addressOf(broker), error instanceof Error ? error.message : String(error));
  }
}

const downReport = (name: string, address: string, down: string): BrokerReport => ({
  name,
  address,
  down,
  version: '',
  putPerSecond: 0,
  getPerSecond: 0,
  diskUsed: 0,
});

/** Returns the first of three rates, which cover ten seconds, a minute and ten minutes. */
const firstNumber = (text = ''): number => Number.parseFloat(text.split(' ')[0] ?? '') || 0;

async function figuresOf({ up, reports }: Brokers, groups: readonly NamedGroup[]): Promise<ClusterFigures> {
  const discarded = (await Promise.all(up.map((broker) => readQueues(broker, HALF_TOPICS.discarded)))).flat();
  return {
    brokers: reports,
    groups: await groupsOf(up, groups),
    halves: halvesOf(await openHalves(up)),
    discarded: discarded.reduce((sum, { first, end }) => sum + end - first, 0),
  };
}

async function statusOf(brokers: Brokers, groups: readonly NamedGroup[]): Promise<ClusterStatus> {
  const { up } = brokers;
  const topics = await topicsOf(up, isOfDeadLetters); // the number of kept messages is needed only for dead letters
  const producers: Record<string, number> = {};
  for (const { group } of await clientsOf(up, readProducers)) producers[group] = (producers[group] ?? 0) + 1;
  return {
    ...(await figuresOf(brokers, groups)),
    deadLetters: topics.map(({ topic, kept }) => ({ topic, kept })),
    producers,
  };
}

const halvesOf = ({ open, more }: OpenHalves): ClusterFigures['halves'] => ({
  open: open.length,
  oldestMs: open[0]?.ageMs ?? null,
  checksMost: open.reduce((most, { checks }) => Math.max(most, checks), 0),
  more,
});

async function browse(
  brokers: readonly BrokerAddress[],
  topic: string,
  from: BrowseFrom | null,
  limits: BrowseLimits,
): Promise<Browsed> {
  const kept = new KeptMessages(limits, from === null ? 'newest' : 'first');
  for (const broker of brokers) {
    for (const { queueId, first, end } of await readQueues(broker, topic)) {
      if (from !== null && 'queueId' in from && from.queueId !== queueId) continue;
      const begin = await beginOf(broker, { topic, queueId, first, end }, from, limits.max);
      let read = 0;
      for (const part of partsOf(begin, Math.min(end, begin + limits.max + 1), from === null)) {
        if (read > limits.bodiesMax) {
          kept.more = true; // the bodies read so far leave no room for the rest of this queue
          break;
        }
        for await (const message of walkQueue(broker, topic, queueId, part)) {
          const found = shown(broker, message);
          read += found.body.length;
          kept.add(found);
        }
      }
    }
  }
  return { messages: kept.oldestFirst(), more: kept.more };
}

const PART = 32;

/** Splits a range of offsets into parts, forwards from its beginning or backwards from its end. */
function partsOf(begin: number, end: number, isBackwards: boolean): { readonly from: number; readonly end: number }[] {
  const parts: { from: number; end: number }[] = [];
  if (isBackwards) for (let at = end; at > begin; at -= PART) parts.push({ from: Math.max(begin, at - PART), end: at });
  else for (let at = begin; at < end; at += PART) parts.push({ from: at, end: Math.min(end, at + PART) });
  return parts;
}

/** Keeps the first, or the newest, of many messages. Never holds more than twice as many as it returns in the end. */
class KeptMessages {
  more = false;
  readonly #limits: BrowseLimits;
  readonly #order: (one: FoundMessage, other: FoundMessage) => number;
  #messages: FoundMessage[] = [];
  #length = 0;

  constructor(limits: BrowseLimits, which: 'first' | 'newest') {
    this.#limits = limits;
    this.#order = which === 'first' ? inTime : (one, other) => inTime(other, one);
  }

  add(message: FoundMessage): void {
    const { max, bodiesMax } = this.#limits;
    this.#messages.push(message);
    this.#length += message.body.length;
    if (this.#messages.length > 2 * max || this.#length > 2 * bodiesMax) this.#trim();
  }

  oldestFirst(): FoundMessage[] {
    this.#trim();
    return this.#messages.sort(inTime);
  }

  #trim(): void {
    const { max, bodiesMax } = this.#limits;
    this.#messages.sort(this.#order);
    let length = 0;
    let count = 0;
    for (const { body } of this.#messages) {
      if (count === max || (count > 0 && length + body.length > bodiesMax)) break;
      length += body.length;
      count++;
    }
    this.more ||= count < this.#messages.length;
    this.#messages = this.#messages.slice(0, count);
    this.#length = length;
  }
}

const inTime = (one: FoundMessage, other: FoundMessage): number =>
  one.storedAtMs - other.storedAtMs || one.queueOffset - other.queueOffset;

async function topicsOf(
  brokers: readonly BrokerAddress[],
  isWanted: (topic: string) => boolean = () => true,
): Promise<TopicReport[]> {
  const byName = new Map<string, TopicReport>();
  for (const broker of brokers) {
    for (const [topic, { attributes }] of Object.entries(await readTopics(broker))) {
      if (!isWanted(topic)) continue;
      const queues = await readQueues(broker, topic);
      const before = byName.get(topic);
      const lastMs = Math.max(before?.lastStoredAtMs ?? 0, ...queues.map(({ lastStoredAtMs }) => lastStoredAtMs));
      byName.set(topic, {
        topic,
        type: attributes?.['message.type'] ?? '',
        queues: (before?.queues ?? 0) + queues.length,
        kept: queues.reduce((sum, { first, end }) => sum + end - first, before?.kept ?? 0),
        lastStoredAtMs: lastMs > 0 ? lastMs : null,
      });
    }
  }
  return [...byName.values()].sort((one, other) => (one.topic < other.topic ? -1 : 1));
}

async function groupNames(brokers: readonly BrokerAddress[]): Promise<string[]> {
  const names = await Promise.all(brokers.map(async (broker) => Object.keys(await readGroups(broker))));
  return [...new Set(names.flat())];
}

async function groupsOf(brokers: readonly BrokerAddress[], groups: readonly NamedGroup[]): Promise<GroupReport[]> {
  const nowMs = Date.now();
  const found: GroupReport[] = [];
  for (const { group, topic: named } of groups) {
    const clients = new Set(
      (await clientsOf(brokers, (broker) => readConsumers(broker, group))).map(({ clientId }) => clientId),
    ).size;
    const byTopic = new Map<string, { lag: number; oldestAtMs: number }>();
    for (const broker of brokers) {
      for (const { topic, queueId, end, given } of await queuesOf(broker, group, named)) {
        const sum = byTopic.get(topic) ?? { lag: 0, oldestAtMs: Infinity };
        byTopic.set(topic, sum);
        if (end <= given) continue;
        sum.lag += end - given;
        const [oldest] = await readMessages(broker, topic, { queueId, offset: given, max: 1 });
        sum.oldestAtMs = Math.min(sum.oldestAtMs, oldest?.storedAtMs ?? Infinity);
      }
    }
    for (const [topic, { lag, oldestAtMs }] of byTopic) {
      if (isOfRetries(topic) && lag === 0) continue; // a retry topic is usually empty
      const oldestMs = oldestAtMs === Infinity ? null : Math.max(0, nowMs - oldestAtMs);
      found.push({ group, topic, lag, oldestMs, clients });
    }
  }
  return found.sort((one, other) => other.lag - one.lag || (one.group < other.group ? -1 : 1));
}

/** Returns the queues that the group has read, and the queues of its topic, which the group may never have read. */
async function queuesOf(broker: BrokerAddress, group: string, topic: string | null): Promise<GroupQueue[]> {
  const queues = await readGroupQueues(broker, group);
  if (topic === null || queues.some((queue) => queue.topic === topic)) return queues;
  return [...queues, ...(await readGroupQueues(broker, group, topic))];
}

async function beginOf(
  broker: BrokerAddress,
  queue: Pick<QueueEnds, 'queueId' | 'first' | 'end'> & { readonly topic: string },
  from: BrowseFrom | null,
  max: number,
): Promise<number> {
  const { topic, queueId, first, end } = queue;
  if (from === null) return Math.max(first, end - max - 1); // one more message shows whether there are more
  const offset = 'queueId' in from ? from.offset : await readOffsetAt(broker, topic, queueId, from.sinceMs);
  return Math.max(first, offset);
}

const clientsOf = async <C>(
  brokers: readonly BrokerAddress[],
  read: (broker: BrokerAddress) => Promise<C[]>,
): Promise<C[]> => (await Promise.all(brokers.map(read))).flat();

const shown = ({ name }: BrokerAddress, { body, ...message }: StoredMessage): FoundMessage => ({
  ...message,
  broker: name,
  body: body.toString('utf8'),
});
