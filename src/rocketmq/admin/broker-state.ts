import { askRemoting, encodeRequest, exchange, REQUEST, type RemotingAddress, type RequestFields } from './remoting.js';
import type { GroupEntry, TopicEntry } from './topic-lists.js';

export interface TopicConfig {
  readonly topicName: string;
  readonly readQueueNums: number;
  readonly writeQueueNums: number;
  /** 4 may be read, 2 may be written, 6 both. */
  readonly perm: number;
  readonly attributes: Readonly<Record<string, string>>;
}

export interface GroupConfig {
  readonly groupName: string;
  readonly retryMaxTimes: number;
}

/** Name of a cluster in a broker's own default configuration, and in ours. */
export const DEFAULT_CLUSTER = 'DefaultCluster';

/** `host:port`. @throws Error for anything else */
export function parseAddress(text: string): RemotingAddress {
  const match = /^([^:]+):(\d+)$/.exec(text.trim());
  if (match === null) throw new Error(`${text} is not host:port`);
  return { host: match[1] ?? '', port: Number(match[2]) };
}

/**
 * The master brokers that a name server knows, of one cluster.
 * @throws Error when the name server does not answer
 */
export async function masterBrokers(namesrv: RemotingAddress, cluster: string): Promise<RemotingAddress[]> {
  return parseMasters(await askRemoting(namesrv, REQUEST.clusterInfo), cluster);
}

/** Broker ids come as bare numbers, `{0:"host:port"}`, which JSON does not allow; 0 is the master. */
export function parseMasters(body: string, cluster: string): RemotingAddress[] {
  const info = JSON.parse(body.replace(/([{,])(\d+):/g, '$1"$2":')) as {
    brokerAddrTable?: Record<string, { cluster?: string; brokerAddrs?: Record<string, string> }>;
  };
  return Object.values(info.brokerAddrTable ?? {})
    .filter((broker) => broker.cluster === cluster)
    .map((broker) => broker.brokerAddrs?.['0'])
    .filter((address) => address !== undefined)
    .map(parseAddress);
}

/** What `clusterList` prints as ACTIVATED: the broker has loaded its store and serves. */
export async function isBrokerActive(broker: RemotingAddress): Promise<boolean> {
  const { table } = JSON.parse(await askRemoting(broker, REQUEST.brokerRuntimeInfo)) as {
    table?: Record<string, string>;
  };
  return table?.brokerActive === 'true';
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
  const frame = await exchange(broker, encodeRequest(code, body, fields));
  if (frame.code !== 0) throw new Error(frame.remark ?? `the broker refused with code ${frame.code}`);
}
