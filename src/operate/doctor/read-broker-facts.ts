import { readGroups, readRuntime, readTopics, type BrokerAddress } from '../../rocketmq/admin/broker-state.js';
import { askRemoting, exchange, RemotingError, REQUEST, type RemotingAddress } from '../../rocketmq/admin/remoting.js';
import type { TopicLists } from '../../rocketmq/admin/topic-lists.js';
import type { BrokerFacts, BrokerSettings } from './rocketmq-checks.js';

// Reads facts about a broker for `seckill doctor`. Writes nothing.

export interface BrokerSays extends BrokerFacts {
  /** Port for its replicas. Null if the broker does not report it. */
  readonly replicaPort: number | null;
  /** Whether the broker is sending data to any replica. */
  readonly feedsReplicas: boolean;
}

/** @throws RemotingError if the broker does not answer or refuses us */
export async function readBrokerFacts(broker: BrokerAddress, wanted: TopicLists): Promise<BrokerSays> {
  const askedMs = Date.now();
  const runtime = await readRuntime(broker);
  const answeredMs = Date.now();
  const [topics, groups, lines, strangers] = await Promise.all([
    readTopics(broker),
    readGroups(broker),
    readSettings(broker),
    strangersAt(broker),
  ]);
  const brokerMs = clockIn(runtime);
  return {
    server: broker.name,
    version: versionIn(runtime.brokerVersionDesc ?? ''),
    diskUsed: Number.parseFloat(runtime.commitLogDiskRatio ?? '') || 0,
    skewMs: brokerMs === null ? null : Math.round((askedMs + answeredMs) / 2 - brokerMs),
    settings: lines === null ? null : settingsIn(lines),
    topics: wanted.topics.map(({ topicName: topic, attributes }) => {
      const found = topics[topic];
      return {
        topic,
        wantedType: attributes['+message.type'],
        found:
          found === undefined
            ? null
            : {
                type: found.attributes?.['message.type'] ?? '',
                readQueues: found.readQueueNums,
                writeQueues: found.writeQueueNums,
                perm: found.perm,
              },
      };
    }),
    groups: wanted.groups.map(({ groupName: group, retryMaxTimes: wantedRetries }) => {
      const found = groups[group];
      const has = found === undefined ? null : { retries: found.retryMaxTimes, consumes: found.consumeEnable ?? true };
      return { group, wantedRetries, found: has };
    }),
    strangers,
    replicaPort: lines === null ? null : numberIn(lines, 'haListenPort'),
    feedsReplicas: lines === null || (numberIn(lines, 'haTransferBatchSize') ?? 1) > 0,
  };
}

/** Turns `V5_4_0` into `5.4.0`. */
const versionIn = (described: string): string => described.replace(/^V/, '').replaceAll('_', '.');

/** Matches `[ 1,003 days, 2 hours, 3 minutes, 4 seconds ]`, measured on the broker's clock. */
const RUNNING = /([\d,]+) days, (\d+) hours, (\d+) minutes, (\d+) seconds/;

/** A broker reports its start time and its uptime in seconds, but not its clock. @returns Unix ms, or null */
export function clockIn({ bootTimestamp, runtime = '' }: Readonly<Record<string, string>>): number | null {
  const [, days, ...rest] = RUNNING.exec(runtime) ?? [];
  if (days === undefined || bootTimestamp === undefined) return null;
  const [hours, minutes, seconds] = rest.map(Number) as [number, number, number];
  const ranS = ((Number(days.replaceAll(',', '')) * 24 + hours) * 60 + minutes) * 60 + seconds;
  return Number(bootTimestamp) + ranS * 1000 + 500;
}

type Lines = Readonly<Record<string, string>>;

/** Reads settings, including secrets. Null if our key may not read them. @throws RemotingError */
async function readSettings(broker: RemotingAddress): Promise<Lines | null> {
  let text: string;
  try {
    text = await askRemoting(broker, REQUEST.brokerConfig);
  } catch (error) {
    if (error instanceof RemotingError && error.isRefusal) return null;
    throw error;
  }
  return Object.fromEntries(
    text.split('\n').map((line) => {
      const at = line.indexOf('=');
      return [line.slice(0, Math.max(0, at)), line.slice(at + 1).trim()];
    }),
  );
}

const numberIn = (lines: Lines, name: string): number | null => {
  const value = Number(lines[name] || NaN);
  return Number.isFinite(value) ? value : null;
};

const flagIn = (lines: Lines, name: string): boolean | null =>
  lines[name] === undefined ? null : lines[name] === 'true';

const settingsIn = (lines: Lines): BrokerSettings => ({
  transactionCheckMax: numberIn(lines, 'transactionCheckMax'),
  transactionCheckInterval: numberIn(lines, 'transactionCheckInterval'),
  transactionTimeOut: numberIn(lines, 'transactionTimeOut'),
  transactionOpBatchInterval: numberIn(lines, 'transactionOpBatchInterval'),
  fileReservedTime: numberIn(lines, 'fileReservedTime'),
  autoCreateTopicEnable: flagIn(lines, 'autoCreateTopicEnable'),
  autoCreateSubscriptionGroup: flagIn(lines, 'autoCreateSubscriptionGroup'),
  timerWheelEnable: flagIn(lines, 'timerWheelEnable'),
});

/** Asks the admin port without a key. @throws RemotingError if the broker does not answer */
async function strangersAt({ host, port, tls = null }: RemotingAddress): Promise<BrokerFacts['strangers']> {
  const { code } = await exchange({ host, port, tls }, REQUEST.brokerRuntimeInfo);
  return code === 0 ? 'served' : 'refused';
}
