import { OperationalError } from '../../core/errors.js';
import { TOPICS } from '../../core/topics.js';
import type { BrokerAccess } from '../credentials.js';
import { askRemoting, parseAnswer, RemotingError, REQUEST, type RemotingAddress } from './remoting.js';
import type { GroupConfig, GroupEntry, TopicConfig, TopicEntry } from './topic-lists.js';

/** @throws Error unless `host:port` */
export function parseAddress(text: string, access: BrokerAccess | null = null): RemotingAddress {
  const match = /^([^:]+):(\d+)$/.exec(text.trim());
  if (match === null) throw new Error(`${text} is not host:port`);
  return { host: match[1] ?? '', port: Number(match[2]), ...wayOf(access?.credentials, access?.adminTls) };
}

const wayOf = (credentials: RemotingAddress['credentials'], tls: RemotingAddress['tls']) => ({
  ...(credentials ? { credentials } : {}),
  ...(tls ? { tls } : {}),
});

/**
 * Returns the masters of one cluster, to be asked with the name server's credentials.
 * @param cluster null: the only cluster, or the cluster with our topics
 * @throws RemotingError if the name server does not answer, or knows several clusters, none with our topics
 */
export async function masterBrokers(namesrv: RemotingAddress, cluster: string | null): Promise<BrokerAddress[]> {
  const masters = parseMasters(await askRemoting(namesrv, REQUEST.clusterInfo));
  const known = new Set(masters.map((master) => master.cluster));
  const ours = cluster !== null ? new Set([cluster]) : known.size <= 1 ? known : await clustersOfRoute(namesrv, known);
  return masters
    .filter((master) => ours.has(master.cluster))
    .map(({ name, ...at }) => ({ name, host: at.host, port: at.port, ...wayOf(namesrv.credentials, namesrv.tls) }));
}

/** Returns the clusters that have the topic of purchases. */
async function clustersOfRoute(namesrv: RemotingAddress, known: ReadonlySet<string>): Promise<ReadonlySet<string>> {
  try {
    const route = parseAnswer<{ brokerDatas?: readonly { readonly cluster: string }[] }>(
      withTextKeys(await askRemoting(namesrv, REQUEST.routeOfTopic, '', { topic: TOPICS.purchase })),
    );
    return new Set((route.brokerDatas ?? []).map(({ cluster }) => cluster));
  } catch (error) {
    if (!(error instanceof RemotingError && error.isRefusal)) throw error;
    const names = [...known].sort().join(', ');
    throw new RemotingError(
      `it knows the clusters ${names}, but none has the topic ${TOPICS.purchase}: choose a cluster with --cluster`,
    );
  }
}

/** Thrown if a name server answers, but none knows a broker: no broker runs, or none has registered yet. */
export class NoBrokerKnown extends OperationalError {}

/**
 * Asks name servers one by one until one knows a broker, because each knows all brokers.
 * @param namesrvAddr one or more `host:port`, separated by `;`
 * @param cluster null: the cluster with our topics
 * @returns brokers sorted by name
 * @throws NoBrokerKnown; OperationalError rocketmq, if no name server answers
 */
export async function brokersKnownTo(
  namesrvAddr: string,
  access: BrokerAccess | null,
  cluster: string | null,
): Promise<BrokerAddress[]> {
  let cause: unknown;
  let hasAnswer = false;
  for (const address of namesrvAddr.split(';')) {
    try {
      const found = await masterBrokers(parseAddress(address, access), cluster);
      if (found.length > 0) return found.sort((one, other) => (one.name < other.name ? -1 : 1));
      hasAnswer = true;
      cause = new RemotingError(
        cluster === null ? 'it knows no broker' : `it knows no broker of the cluster ${cluster}`,
      );
    } catch (error) {
      cause = error;
    }
  }
  const why = cause instanceof Error ? cause.message : String(cause);
  const Fault = hasAnswer ? NoBrokerKnown : OperationalError;
  throw new Fault('rocketmq', `NAMESRV_ADDR ${namesrvAddr}: ${why}`, { retryable: true, cause });
}

export interface BrokerAddress extends RemotingAddress {
  readonly name: string;
}

export const addressOf = ({ host, port }: RemotingAddress): string => `${host}:${port}`;

/** How long a broker is listed after the name servers have forgotten it. */
const GONE_NAMED_MS = 3_600_000;

interface GoneBroker {
  readonly name: string;
  readonly address: string;
  readonly why: string;
}

/** Remembers brokers ever seen, although a name server forgets a dead one at once, for inspections that share this. */
export class SeenBrokers {
  /** Brokers by name. `knownMs` is when a name server last knew the broker. */
  readonly #brokers = new Map<string, { readonly address: string; readonly knownMs: number }>();

  /** @returns brokers known within the last hour but not now */
  gone(known: readonly BrokerAddress[]): GoneBroker[] {
    const nowMs = performance.now();
    for (const broker of known) this.#brokers.set(broker.name, { address: addressOf(broker), knownMs: nowMs });
    const names = new Set(known.map(({ name }) => name));
    const gone: GoneBroker[] = [];
    for (const [name, { address, knownMs }] of this.#brokers) {
      if (nowMs - knownMs > GONE_NAMED_MS) this.#brokers.delete(name);
      else if (!names.has(name)) gone.push({ name, address, why: 'no name server knows this broker any more' });
    }
    return gone;
  }
}

/** Quotes broker ids. They come as bare numbers, as in `{0:"host:port"}`, which JSON does not allow. */
const withTextKeys = (body: string): string => body.replace(/([{,])(\d+):/g, '$1"$2":');

/** Returns the masters, which are broker 0 of each name. */
export function parseMasters(body: string): (BrokerAddress & { readonly cluster: string })[] {
  const info = parseAnswer<{
    brokerAddrTable?: Record<string, { cluster?: string; brokerAddrs?: Record<string, string> }>;
  }>(withTextKeys(body));
  return Object.entries(info.brokerAddrTable ?? {}).flatMap(([name, broker]) => {
    const master = broker.brokerAddrs?.['0'];
    return master === undefined ? [] : [{ name, cluster: broker.cluster ?? '', ...parseAddress(master) }];
  });
}

/** `clusterList` prints this as ACTIVATED: the broker has loaded its store and serves requests. */
export async function isBrokerActive(broker: RemotingAddress): Promise<boolean> {
  return (await readRuntime(broker)).brokerActive === 'true';
}

/** Reads version, rates, disk. @throws RemotingError if the broker does not answer or refuses */
export async function readRuntime(broker: RemotingAddress): Promise<Readonly<Record<string, string>>> {
  const { table } = parseAnswer<{ table?: Record<string, string> }>(
    await askRemoting(broker, REQUEST.brokerRuntimeInfo),
  );
  return table ?? {};
}

/** Returns the topics that a broker has stored, by name, including its system topics. */
export async function readTopics(broker: RemotingAddress): Promise<Record<string, TopicConfig>> {
  const body = parseAnswer<{ topicConfigTable?: Record<string, TopicConfig> }>(
    await askRemoting(broker, REQUEST.allTopicConfigs),
  );
  return body.topicConfigTable ?? {};
}

export async function readGroups(broker: RemotingAddress): Promise<Record<string, GroupConfig>> {
  const body = parseAnswer<{ subscriptionGroupTable?: Record<string, GroupConfig> }>(
    await askRemoting(broker, REQUEST.allGroupConfigs),
  );
  return body.subscriptionGroupTable ?? {};
}

/** Creates or updates a topic. @throws RemotingError if the broker does not answer or refuses */
export async function createTopic(broker: RemotingAddress, topic: TopicEntry): Promise<void> {
  const attributes = Object.entries(topic.attributes).map(([key, value]) => `${key}=${value}`);
  await askRemoting(broker, REQUEST.updateTopic, '', {
    topic: topic.topicName,
    defaultTopic: 'TBW102', // the field is required, but its value is not used
    readQueueNums: String(topic.readQueueNums),
    writeQueueNums: String(topic.writeQueueNums),
    perm: String(topic.perm),
    topicFilterType: 'SINGLE_TAG',
    topicSysFlag: '0',
    order: 'false',
    attributes: attributes.join(','),
  });
}

/** Creates or updates a consumer group. @throws RemotingError if the broker does not answer or refuses */
export async function createGroup(broker: RemotingAddress, group: GroupEntry): Promise<void> {
  await askRemoting(broker, REQUEST.updateGroup, JSON.stringify(group));
}
