import type { BrokerCredentials } from '../credentials.js';
import { askRemoting, exchange, refusal, REQUEST, type RemotingAddress, type RequestFields } from './remoting.js';
import type { GroupConfig, GroupEntry, TopicConfig, TopicEntry } from './topic-lists.js';

/** Name of a cluster in a broker's own default configuration, and in ours. */
export const DEFAULT_CLUSTER = 'DefaultCluster';

/** `host:port`. @throws Error for anything else */
export function parseAddress(text: string, credentials: BrokerCredentials | null = null): RemotingAddress {
  const match = /^([^:]+):(\d+)$/.exec(text.trim());
  if (match === null) throw new Error(`${text} is not host:port`);
  return { host: match[1] ?? '', port: Number(match[2]), ...(credentials ? { credentials } : {}) };
}

/**
 * The master brokers that a name server knows, of one cluster; they are asked with the credentials of the name server.
 * @throws Error when the name server does not answer
 */
export async function masterBrokers(namesrv: RemotingAddress, cluster: string): Promise<BrokerAddress[]> {
  const { credentials } = namesrv;
  const masters = parseMasters(await askRemoting(namesrv, REQUEST.clusterInfo), cluster);
  return credentials ? masters.map((master) => ({ ...master, credentials })) : masters;
}

/** A master broker, and its name in the cluster. */
export interface BrokerAddress extends RemotingAddress {
  readonly name: string;
}

/** Broker ids come as bare numbers, `{0:"host:port"}`, which JSON does not allow; 0 is the master. */
export function parseMasters(body: string, cluster: string): BrokerAddress[] {
  const info = JSON.parse(body.replace(/([{,])(\d+):/g, '$1"$2":')) as {
    brokerAddrTable?: Record<string, { cluster?: string; brokerAddrs?: Record<string, string> }>;
  };
  return Object.entries(info.brokerAddrTable ?? {}).flatMap(([name, broker]) => {
    const master = broker.brokerAddrs?.['0'];
    return broker.cluster !== cluster || master === undefined ? [] : [{ name, ...parseAddress(master) }];
  });
}

/** What `clusterList` prints as ACTIVATED: the broker has loaded its store and serves. */
export async function isBrokerActive(broker: RemotingAddress): Promise<boolean> {
  return (await readRuntime(broker)).brokerActive === 'true';
}

/** What a broker says of itself: version, rates, its disk. @throws Error when it does not answer or refuses */
export async function readRuntime(broker: RemotingAddress): Promise<Readonly<Record<string, string>>> {
  const { table } = JSON.parse(await askRemoting(broker, REQUEST.brokerRuntimeInfo)) as {
    table?: Record<string, string>;
  };
  return table ?? {};
}

/** Topics stored by a broker, by name; its system topics are among them. */
export async function readTopics(broker: RemotingAddress): Promise<Record<string, TopicConfig>> {
  const body = JSON.parse(await askRemoting(broker, REQUEST.allTopicConfigs)) as {
    topicConfigTable?: Record<string, TopicConfig>;
  };
  return body.topicConfigTable ?? {};
}

/** Consumer groups stored by a broker, by name. */
export async function readGroups(broker: RemotingAddress): Promise<Record<string, GroupConfig>> {
  const body = JSON.parse(await askRemoting(broker, REQUEST.allGroupConfigs)) as {
    subscriptionGroupTable?: Record<string, GroupConfig>;
  };
  return body.subscriptionGroupTable ?? {};
}

/** Creates a topic or changes it to this. @throws Error when the broker does not answer or refuses */
export async function createTopic(broker: RemotingAddress, topic: TopicEntry): Promise<void> {
  const attributes = Object.entries(topic.attributes).map(([key, value]) => `${key}=${value}`);
  await order(broker, REQUEST.updateTopic, '', {
    topic: topic.topicName,
    defaultTopic: 'TBW102', // the field is required, its value is not used
    readQueueNums: String(topic.readQueueNums),
    writeQueueNums: String(topic.writeQueueNums),
    perm: String(topic.perm),
    topicFilterType: 'SINGLE_TAG',
    topicSysFlag: '0',
    order: 'false',
    attributes: attributes.join(','),
  });
}

/** Creates a consumer group or changes it to this. @throws Error when the broker does not answer or refuses */
export async function createGroup(broker: RemotingAddress, group: GroupEntry): Promise<void> {
  await order(broker, REQUEST.updateGroup, JSON.stringify(group));
}

async function order(broker: RemotingAddress, code: number, body: string, fields: RequestFields = {}): Promise<void> {
  const frame = await exchange(broker, code, body, fields);
  if (frame.code !== 0) throw refusal(broker, frame);
}
